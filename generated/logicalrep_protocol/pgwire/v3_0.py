"""Protocol version 3.0, of PostgreSQL 10 and later.

Version 3.0, which all servers support.

Generated from the spec by `python -m codegen regen`; do not edit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from struct import Struct as Format
from struct import error as FormatError
from typing import ClassVar, Literal

from construct import (
    Array,
    Const,
    GreedyBytes,
    Int8ub,
    Int16sb,
    Int16ub,
    Int32sb,
    Int32ub,
    OneOf,
    Rebuild,
    len_,
    this,
)

from logicalrep_protocol.pgwire.layouts import PGWIRE, CopyFormat, FormatCode
from logicalrep_runtime.any_message import Discriminated, StructChoice, Tagged, Whole
from logicalrep_runtime.constructs import (
    AnyChar,
    Char,
    DataclassStruct,
    FixedBytes,
    MessageLength,
    NullableBytes,
    String,
    Typed,
    UntilZero,
    length_or_null,
)
from logicalrep_runtime.dictionaries import Dictionaries
from logicalrep_runtime.encode_faults import encode_error
from logicalrep_runtime.errors import MalformedError
from logicalrep_runtime.layout_walk import decode_error
from logicalrep_runtime.make import setters
from logicalrep_runtime.native import reader as native_reader
from logicalrep_runtime.scalars import Buffer, Oid

__all__ = [
    "Answer",
    "AnyMessage",
    "ArgumentValue",
    "AuthenticationCleartextPassword",
    "AuthenticationGSS",
    "AuthenticationGSSContinue",
    "AuthenticationKerberosV5",
    "AuthenticationMD5Password",
    "AuthenticationOk",
    "AuthenticationSASL",
    "AuthenticationSASLContinue",
    "AuthenticationSASLFinal",
    "AuthenticationSSPI",
    "BackendKeyData",
    "Bind",
    "BindComplete",
    "CancelRequest",
    "Close",
    "CloseComplete",
    "Closed",
    "Code",
    "ColumnValue",
    "CommandComplete",
    "CopyBothResponse",
    "CopyData",
    "CopyDone",
    "CopyFail",
    "CopyInResponse",
    "CopyOutResponse",
    "DataRow",
    "Describe",
    "Described",
    "EmptyQueryResponse",
    "EncryptionResponse",
    "ErrorField",
    "ErrorResponse",
    "Execute",
    "FieldDescription",
    "Flush",
    "FunctionCall",
    "FunctionCallResponse",
    "GSSENCRequest",
    "GSSResponse",
    "NegotiateProtocolVersion",
    "NoData",
    "NoticeResponse",
    "NotificationResponse",
    "ParameterDescription",
    "ParameterStatus",
    "ParameterValue",
    "Parse",
    "ParseComplete",
    "PasswordMessage",
    "PortalSuspended",
    "Query",
    "ReadyForQuery",
    "RowDescription",
    "SASLInitialResponse",
    "SASLResponse",
    "SSLRequest",
    "StartupMessage",
    "StartupParameter",
    "Sync",
    "Terminate",
    "TransactionStatus",
    "client_message",
    "from_dict",
    "parse",
    "parse_from",
    "server_message",
    "to_dict",
]

_B = Format(">B")
_Bi = Format(">Bi")
_BiB = Format(">BiB")
_BiBH = Format(">BiBH")
_BiH = Format(">BiH")
_BiIH = Format(">BiIH")
_Bii = Format(">Bii")
_Biii = Format(">Biii")
_H = Format(">H")
_IhIhih = Format(">IhIhih")
_h = Format(">h")
_i = Format(">i")
_iB = Format(">iB")
_iBH = Format(">iBH")
_iH = Format(">iH")
_iIH = Format(">iIH")
_ii = Format(">ii")
_iii = Format(">iii")

_new = object.__new__
_MALFORMED = (LookupError, ValueError, FormatError)
_UNFIT = (LookupError, ValueError, FormatError, TypeError, AttributeError, OverflowError)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class AuthenticationOk:
    """The client is who it says.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-AUTHENTICATIONOK
    """

    tag: ClassVar[Literal["R"]] = "R"

    struct: ClassVar[DataclassStruct[AuthenticationOk]] = DataclassStruct(
        "tag" / Const(b"R"),
        "length" / Const(8, Int32sb) * "The length of the message in bytes, with itself and without the tag.",
        "code" / Const(0, Int32sb) * "The kind of request.",
    )

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[AuthenticationOk, int]:
        offset += 1
        length, code = _ii.unpack_from(data, offset)
        offset += 8
        if length != 8 or code != 0:
            raise MalformedError
        self = _new(AuthenticationOk)

        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            return _Bii.pack(0x52, 8, 0)
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class AuthenticationKerberosV5:
    """Asks for Kerberos V5.

    No server since 9.3 sends it.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-AUTHENTICATIONKERBEROSV5
    """

    tag: ClassVar[Literal["R"]] = "R"

    struct: ClassVar[DataclassStruct[AuthenticationKerberosV5]] = DataclassStruct(
        "tag" / Const(b"R"),
        "length" / Const(8, Int32sb) * "The length of the message in bytes, with itself and without the tag.",
        "code" / Const(2, Int32sb) * "The kind of request.",
    )

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[AuthenticationKerberosV5, int]:
        offset += 1
        length, code = _ii.unpack_from(data, offset)
        offset += 8
        if length != 8 or code != 2:
            raise MalformedError
        self = _new(AuthenticationKerberosV5)

        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            return _Bii.pack(0x52, 8, 2)
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class AuthenticationCleartextPassword:
    """Asks for the password as it is.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-AUTHENTICATIONCLEARTEXTPASSWORD
    """

    tag: ClassVar[Literal["R"]] = "R"

    struct: ClassVar[DataclassStruct[AuthenticationCleartextPassword]] = DataclassStruct(
        "tag" / Const(b"R"),
        "length" / Const(8, Int32sb) * "The length of the message in bytes, with itself and without the tag.",
        "code" / Const(3, Int32sb) * "The kind of request.",
    )

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[AuthenticationCleartextPassword, int]:
        offset += 1
        length, code = _ii.unpack_from(data, offset)
        offset += 8
        if length != 8 or code != 3:
            raise MalformedError
        self = _new(AuthenticationCleartextPassword)

        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            return _Bii.pack(0x52, 8, 3)
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class AuthenticationMD5Password:
    """Asks for the password, hashed with MD5.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-AUTHENTICATIONMD5PASSWORD
    """

    tag: ClassVar[Literal["R"]] = "R"

    salt: bytes
    """The salt of the hash."""

    struct: ClassVar[DataclassStruct[AuthenticationMD5Password]] = DataclassStruct(
        "tag" / Const(b"R"),
        "length" / Const(12, Int32sb) * "The length of the message in bytes, with itself and without the tag.",
        "code" / Const(5, Int32sb) * "The kind of request.",
        "salt" / FixedBytes(4) * "The salt of the hash.",
    )

    def __init__(self, *, salt: bytes) -> None:
        _authentication_md5_password__salt(self, salt)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[AuthenticationMD5Password, int]:
        offset += 1
        length, code = _ii.unpack_from(data, offset)
        offset += 8
        if length != 12 or code != 5:
            raise MalformedError
        end = offset + 4
        if end > len(data):
            raise MalformedError
        salt = data[offset:end]
        offset = end
        self = _new(AuthenticationMD5Password)
        _authentication_md5_password__salt(self, salt)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_Bii.pack(0x52, 12, 5))
            if type(self.salt) is not bytes or len(self.salt) != 4:
                raise MalformedError
            out.append(self.salt)
            return b"".join(out)
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


(_authentication_md5_password__salt,) = setters(AuthenticationMD5Password)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class AuthenticationGSS:
    """Asks for GSSAPI data.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-AUTHENTICATIONGSS
    """

    tag: ClassVar[Literal["R"]] = "R"

    struct: ClassVar[DataclassStruct[AuthenticationGSS]] = DataclassStruct(
        "tag" / Const(b"R"),
        "length" / Const(8, Int32sb) * "The length of the message in bytes, with itself and without the tag.",
        "code" / Const(7, Int32sb) * "The kind of request.",
    )

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[AuthenticationGSS, int]:
        offset += 1
        length, code = _ii.unpack_from(data, offset)
        offset += 8
        if length != 8 or code != 7:
            raise MalformedError
        self = _new(AuthenticationGSS)

        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            return _Bii.pack(0x52, 8, 7)
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class AuthenticationGSSContinue:
    """Brings further data of GSSAPI or SSPI.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-AUTHENTICATIONGSSCONTINUE
    """

    tag: ClassVar[Literal["R"]] = "R"

    data: bytes
    """The data."""

    struct: ClassVar[DataclassStruct[AuthenticationGSSContinue]] = DataclassStruct(
        "tag" / Const(b"R"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "code" / Const(8, Int32sb) * "The kind of request.",
        "data" / GreedyBytes * "The data.",
    )

    def __init__(self, *, data: bytes) -> None:
        _authentication_gss_continue__data(self, data)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[AuthenticationGSSContinue, int]:
        offset += 1
        length, code = _ii.unpack_from(data, offset)
        stop = offset + length
        offset += 8
        if not offset <= stop <= len(data) or code != 8:
            raise MalformedError
        data_ = data[offset:stop]
        offset = stop
        if offset != stop:
            raise MalformedError
        self = _new(AuthenticationGSSContinue)
        _authentication_gss_continue__data(self, data_)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_Bii.pack(0x52, 0, 8))
            if type(self.data) is not bytes:
                raise MalformedError
            out.append(self.data)
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


(_authentication_gss_continue__data,) = setters(AuthenticationGSSContinue)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class AuthenticationSSPI:
    """Asks for SSPI data.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-AUTHENTICATIONSSPI
    """

    tag: ClassVar[Literal["R"]] = "R"

    struct: ClassVar[DataclassStruct[AuthenticationSSPI]] = DataclassStruct(
        "tag" / Const(b"R"),
        "length" / Const(8, Int32sb) * "The length of the message in bytes, with itself and without the tag.",
        "code" / Const(9, Int32sb) * "The kind of request.",
    )

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[AuthenticationSSPI, int]:
        offset += 1
        length, code = _ii.unpack_from(data, offset)
        offset += 8
        if length != 8 or code != 9:
            raise MalformedError
        self = _new(AuthenticationSSPI)

        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            return _Bii.pack(0x52, 8, 9)
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class AuthenticationSASL:
    """Asks for SASL, and names the mechanisms that may be used.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-AUTHENTICATIONSASL
    """

    tag: ClassVar[Literal["R"]] = "R"

    mechanisms: tuple[str, ...]
    """The names of the mechanisms, in the order of the server's preference."""

    struct: ClassVar[DataclassStruct[AuthenticationSASL]] = DataclassStruct(
        "tag" / Const(b"R"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "code" / Const(10, Int32sb) * "The kind of request.",
        "mechanisms" / UntilZero(String) * "The names of the mechanisms, in the order of the server's preference.",
    )

    def __init__(self, *, mechanisms: tuple[str, ...]) -> None:
        _authentication_sasl__mechanisms(self, mechanisms)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[AuthenticationSASL, int]:
        offset += 1
        length, code = _ii.unpack_from(data, offset)
        stop = offset + length
        offset += 8
        if not offset <= stop <= len(data) or code != 10:
            raise MalformedError
        mechanisms = []
        while data[offset]:
            end = data.index(0, offset)
            mechanisms.append(data[offset:end].decode(encoding))
            offset = end + 1
        offset += 1
        if offset != stop:
            raise MalformedError
        self = _new(AuthenticationSASL)
        _authentication_sasl__mechanisms(self, tuple(mechanisms))
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_Bii.pack(0x52, 0, 10))
            for item in self.mechanisms:
                text = item.encode(encoding)
                if 0 in text or not text:
                    raise MalformedError
                out.append(text)
                out.append(b"\0")
            out.append(b"\0")
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


(_authentication_sasl__mechanisms,) = setters(AuthenticationSASL)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class AuthenticationSASLContinue:
    """A challenge of the mechanism.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-AUTHENTICATIONSASLCONTINUE
    """

    tag: ClassVar[Literal["R"]] = "R"

    data: bytes
    """The challenge."""

    struct: ClassVar[DataclassStruct[AuthenticationSASLContinue]] = DataclassStruct(
        "tag" / Const(b"R"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "code" / Const(11, Int32sb) * "The kind of request.",
        "data" / GreedyBytes * "The challenge.",
    )

    def __init__(self, *, data: bytes) -> None:
        _authentication_sasl_continue__data(self, data)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[AuthenticationSASLContinue, int]:
        offset += 1
        length, code = _ii.unpack_from(data, offset)
        stop = offset + length
        offset += 8
        if not offset <= stop <= len(data) or code != 11:
            raise MalformedError
        data_ = data[offset:stop]
        offset = stop
        if offset != stop:
            raise MalformedError
        self = _new(AuthenticationSASLContinue)
        _authentication_sasl_continue__data(self, data_)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_Bii.pack(0x52, 0, 11))
            if type(self.data) is not bytes:
                raise MalformedError
            out.append(self.data)
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


(_authentication_sasl_continue__data,) = setters(AuthenticationSASLContinue)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class AuthenticationSASLFinal:
    """The last data of the mechanism.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-AUTHENTICATIONSASLFINAL
    """

    tag: ClassVar[Literal["R"]] = "R"

    data: bytes
    """The data."""

    struct: ClassVar[DataclassStruct[AuthenticationSASLFinal]] = DataclassStruct(
        "tag" / Const(b"R"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "code" / Const(12, Int32sb) * "The kind of request.",
        "data" / GreedyBytes * "The data.",
    )

    def __init__(self, *, data: bytes) -> None:
        _authentication_sasl_final__data(self, data)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[AuthenticationSASLFinal, int]:
        offset += 1
        length, code = _ii.unpack_from(data, offset)
        stop = offset + length
        offset += 8
        if not offset <= stop <= len(data) or code != 12:
            raise MalformedError
        data_ = data[offset:stop]
        offset = stop
        if offset != stop:
            raise MalformedError
        self = _new(AuthenticationSASLFinal)
        _authentication_sasl_final__data(self, data_)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_Bii.pack(0x52, 0, 12))
            if type(self.data) is not bytes:
                raise MalformedError
            out.append(self.data)
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


(_authentication_sasl_final__data,) = setters(AuthenticationSASLFinal)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class BackendKeyData:
    """The key for cancelling the session's statements.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-BACKENDKEYDATA
    """

    tag: ClassVar[Literal["K"]] = "K"

    process_id: int
    """The process id of the server's side."""
    secret_key: bytes
    """The key that a CancelRequest has to name."""

    struct: ClassVar[DataclassStruct[BackendKeyData]] = DataclassStruct(
        "tag" / Const(b"K"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "process_id" / Int32sb * "The process id of the server's side.",
        "secret_key" / FixedBytes(4) * "The key that a CancelRequest has to name.",
    )

    def __init__(self, *, process_id: int, secret_key: bytes) -> None:
        _backend_key_data__process_id(self, process_id)
        _backend_key_data__secret_key(self, secret_key)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[BackendKeyData, int]:
        offset += 1
        length, process_id = _ii.unpack_from(data, offset)
        stop = offset + length
        offset += 8
        if not offset <= stop <= len(data):
            raise MalformedError
        end = offset + 4
        if end > len(data):
            raise MalformedError
        secret_key = data[offset:end]
        offset = end
        if offset != stop:
            raise MalformedError
        self = _new(BackendKeyData)
        _backend_key_data__process_id(self, process_id)
        _backend_key_data__secret_key(self, secret_key)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_Bii.pack(0x4B, 0, self.process_id))
            if type(self.secret_key) is not bytes or len(self.secret_key) != 4:
                raise MalformedError
            out.append(self.secret_key)
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


_backend_key_data__process_id, _backend_key_data__secret_key = setters(BackendKeyData)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class ParameterValue:
    """The value of one parameter."""

    value: bytes | None
    """The value; None for NULL."""

    struct: ClassVar[DataclassStruct[ParameterValue]] = DataclassStruct(
        "length" / Rebuild(Int32sb, length_or_null(this.value)) * "The length of the value in bytes; -1 for NULL.",
        "value" / NullableBytes(this.length) * "The value; None for NULL.",
    )

    def __init__(self, *, value: bytes | None) -> None:
        _parameter_value__value(self, value)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[ParameterValue, int]:
        (length,) = _i.unpack_from(data, offset)
        offset += 4
        value: bytes | None = None
        if length != -1:
            end = offset + length
            if not offset <= end <= len(data):
                raise MalformedError
            value = data[offset:end]
            offset = end
        self = _new(ParameterValue)
        _parameter_value__value(self, value)
        return self, offset

    def _pack(self, out: list[bytes], encoding: str) -> None:
        out.append(_i.pack(-1 if self.value is None else len(self.value)))
        if self.value is not None:
            if type(self.value) is not bytes:
                raise MalformedError
            out.append(self.value)


(_parameter_value__value,) = setters(ParameterValue)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Bind:
    """Makes a portal of a prepared statement and the values of its parameters.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-BIND
    """

    tag: ClassVar[Literal["B"]] = "B"

    portal: str
    """The portal's name; empty for the unnamed one."""
    statement: str
    """The prepared statement's name; empty for the unnamed one."""
    parameter_formats: tuple[FormatCode, ...]
    """The formats of the parameters: no format if all are text, one format for all, or a format for each."""
    parameters: tuple[ParameterValue, ...]
    """The parameters."""
    result_formats: tuple[FormatCode, ...]
    """The formats of the result's columns: no format if all are text, one format for all, or a format for each."""

    struct: ClassVar[DataclassStruct[Bind]] = DataclassStruct(
        "tag" / Const(b"B"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "portal" / String * "The portal's name; empty for the unnamed one.",
        "statement" / String * "The prepared statement's name; empty for the unnamed one.",
        "parameter_format_count"
        / Rebuild(Int16ub, len_(this.parameter_formats))
        * "The number of the following formats of parameters.",
        "parameter_formats"
        / Array(this.parameter_format_count, Typed(OneOf(Int16sb, (0, 1)), FormatCode))
        * "The formats of the parameters: no format if all are text, one format for all, or a format for each.",
        "parameter_count" / Rebuild(Int16ub, len_(this.parameters)) * "The number of the following parameters.",
        "parameters" / Array(this.parameter_count, ParameterValue.struct) * "The parameters.",
        "result_format_count"
        / Rebuild(Int16ub, len_(this.result_formats))
        * "The number of the following formats of result columns.",
        "result_formats"
        / Array(this.result_format_count, Typed(OneOf(Int16sb, (0, 1)), FormatCode))
        * "The formats of the result's columns: no format if all are text, one format for all, or a format for each.",
    )

    def __init__(
        self,
        *,
        portal: str,
        statement: str,
        parameter_formats: tuple[FormatCode, ...],
        parameters: tuple[ParameterValue, ...],
        result_formats: tuple[FormatCode, ...],
    ) -> None:
        _bind__portal(self, portal)
        _bind__statement(self, statement)
        _bind__parameter_formats(self, parameter_formats)
        _bind__parameters(self, parameters)
        _bind__result_formats(self, result_formats)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[Bind, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        stop = offset + length
        offset += 4
        if not offset <= stop <= len(data):
            raise MalformedError
        end = data.index(0, offset)
        portal = data[offset:end].decode(encoding)
        offset = end + 1
        end = data.index(0, offset)
        statement = data[offset:end].decode(encoding)
        offset = end + 1
        (parameter_format_count,) = _H.unpack_from(data, offset)
        offset += 2
        if not 0 <= parameter_format_count * 2 <= len(data) - offset:
            raise MalformedError
        parameter_formats = Format(f">{parameter_format_count}h").unpack_from(data, offset)
        offset += 2 * parameter_format_count
        (parameter_count,) = _H.unpack_from(data, offset)
        offset += 2
        if parameter_count < 0:
            raise MalformedError
        parameters = []
        for _ in range(parameter_count):
            item, offset = ParameterValue._parse(data, offset, encoding)
            parameters.append(item)
        (result_format_count,) = _H.unpack_from(data, offset)
        offset += 2
        if not 0 <= result_format_count * 2 <= len(data) - offset:
            raise MalformedError
        result_formats = Format(f">{result_format_count}h").unpack_from(data, offset)
        offset += 2 * result_format_count
        if offset != stop:
            raise MalformedError
        self = _new(Bind)
        _bind__portal(self, portal)
        _bind__statement(self, statement)
        _bind__parameter_formats(self, tuple(map(FormatCode, parameter_formats)))
        _bind__parameters(self, tuple(parameters))
        _bind__result_formats(self, tuple(map(FormatCode, result_formats)))
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_Bi.pack(0x42, 0))
            text = self.portal.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            text = self.statement.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            out.append(_H.pack(len(self.parameter_formats)))
            if any(item not in (0, 1) for item in self.parameter_formats):
                raise MalformedError
            out.append(Format(f">{len(self.parameter_formats)}h").pack(*self.parameter_formats))
            out.append(_H.pack(len(self.parameters)))
            for item in self.parameters:
                if type(item) is not ParameterValue:
                    raise MalformedError
                item._pack(out, encoding)
            out.append(_H.pack(len(self.result_formats)))
            if any(item not in (0, 1) for item in self.result_formats):
                raise MalformedError
            out.append(Format(f">{len(self.result_formats)}h").pack(*self.result_formats))
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding, sender="client") from None


_bind__portal, _bind__statement, _bind__parameter_formats, _bind__parameters, _bind__result_formats = setters(Bind)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class BindComplete:
    """The server has created the portal of Bind.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-BINDCOMPLETE
    """

    tag: ClassVar[Literal["2"]] = "2"

    struct: ClassVar[DataclassStruct[BindComplete]] = DataclassStruct(
        "tag" / Const(b"2"),
        "length" / Const(4, Int32sb) * "The length of the message in bytes, with itself and without the tag.",
    )

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[BindComplete, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        offset += 4
        if length != 4:
            raise MalformedError
        self = _new(BindComplete)

        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            return _Bi.pack(0x32, 4)
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class CancelRequest:
    """Asks, in a separate connection, to cancel the statement of another session.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-CANCELREQUEST
    """

    process_id: int
    """The process id of the other session's server side."""
    secret_key: bytes
    """Its key."""

    struct: ClassVar[DataclassStruct[CancelRequest]] = DataclassStruct(
        "length" / MessageLength(Int32sb, 0) * "The length of the message in bytes, with itself.",
        "code" / Const(80877102, Int32sb) * "The code of the request.",
        "process_id" / Int32sb * "The process id of the other session's server side.",
        "secret_key" / FixedBytes(4) * "Its key.",
    )

    def __init__(self, *, process_id: int, secret_key: bytes) -> None:
        _cancel_request__process_id(self, process_id)
        _cancel_request__secret_key(self, secret_key)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[CancelRequest, int]:
        length, code, process_id = _iii.unpack_from(data, offset)
        stop = offset + length
        offset += 12
        if not offset <= stop <= len(data) or code != 80877102:
            raise MalformedError
        end = offset + 4
        if end > len(data):
            raise MalformedError
        secret_key = data[offset:end]
        offset = end
        if offset != stop:
            raise MalformedError
        self = _new(CancelRequest)
        _cancel_request__process_id(self, process_id)
        _cancel_request__secret_key(self, secret_key)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_iii.pack(0, 80877102, self.process_id))
            if type(self.secret_key) is not bytes or len(self.secret_key) != 4:
                raise MalformedError
            out.append(self.secret_key)
            data = b"".join(out)
            return data[:0] + _i.pack(len(data) - 0) + data[4:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding, sender="client") from None


_cancel_request__process_id, _cancel_request__secret_key = setters(CancelRequest)


class Closed(StrEnum):
    """The kind of thing to close."""

    STATEMENT = "S"
    PORTAL = "P"


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Close:
    """Closes a prepared statement or a portal.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-CLOSE
    """

    tag: ClassVar[Literal["C"]] = "C"

    closed: Closed
    """The kind of thing to close."""
    name: str
    """Its name; empty for the unnamed one."""

    struct: ClassVar[DataclassStruct[Close]] = DataclassStruct(
        "tag" / Const(b"C"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "closed" / Char(Closed) * "The kind of thing to close.",
        "name" / String * "Its name; empty for the unnamed one.",
    )

    def __init__(self, *, closed: Closed, name: str) -> None:
        _close__closed(self, closed)
        _close__name(self, name)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[Close, int]:
        offset += 1
        length, closed = _iB.unpack_from(data, offset)
        stop = offset + length
        offset += 5
        if not offset <= stop <= len(data):
            raise MalformedError
        end = data.index(0, offset)
        name = data[offset:end].decode(encoding)
        offset = end + 1
        if offset != stop:
            raise MalformedError
        self = _new(Close)
        _close__closed(self, Closed(chr(closed)))
        _close__name(self, name)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            if self.closed not in ("S", "P"):
                raise MalformedError
            out.append(_BiB.pack(0x43, 0, ord(self.closed)))
            text = self.name.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding, sender="client") from None


_close__closed, _close__name = setters(Close)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class CloseComplete:
    """The server has closed the prepared statement or portal of Close.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-CLOSECOMPLETE
    """

    tag: ClassVar[Literal["3"]] = "3"

    struct: ClassVar[DataclassStruct[CloseComplete]] = DataclassStruct(
        "tag" / Const(b"3"),
        "length" / Const(4, Int32sb) * "The length of the message in bytes, with itself and without the tag.",
    )

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[CloseComplete, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        offset += 4
        if length != 4:
            raise MalformedError
        self = _new(CloseComplete)

        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            return _Bi.pack(0x33, 4)
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class CommandComplete:
    """A command has ended well.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-COMMANDCOMPLETE
    """

    tag: ClassVar[Literal["C"]] = "C"

    command: str
    """The command's tag: its name and, for many commands, the number of affected rows."""

    struct: ClassVar[DataclassStruct[CommandComplete]] = DataclassStruct(
        "tag" / Const(b"C"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "command" / String * "The command's tag: its name and, for many commands, the number of affected rows.",
    )

    def __init__(self, *, command: str) -> None:
        _command_complete__command(self, command)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[CommandComplete, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        stop = offset + length
        offset += 4
        if not offset <= stop <= len(data):
            raise MalformedError
        end = data.index(0, offset)
        command = data[offset:end].decode(encoding)
        offset = end + 1
        if offset != stop:
            raise MalformedError
        self = _new(CommandComplete)
        _command_complete__command(self, command)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_Bi.pack(0x43, 0))
            text = self.command.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


(_command_complete__command,) = setters(CommandComplete)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class CopyData:
    """A piece of the data of COPY, or a message of a replication connection.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-COPYDATA
    """

    tag: ClassVar[Literal["d"]] = "d"

    data: bytes
    """The data.

    From the server it is one row; the client may divide its data anywhere.
    """

    struct: ClassVar[DataclassStruct[CopyData]] = DataclassStruct(
        "tag" / Const(b"d"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "data" / GreedyBytes * "The data.",
    )

    def __init__(self, *, data: bytes) -> None:
        _copy_data__data(self, data)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[CopyData, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        stop = offset + length
        offset += 4
        if not offset <= stop <= len(data):
            raise MalformedError
        data_ = data[offset:stop]
        offset = stop
        if offset != stop:
            raise MalformedError
        self = _new(CopyData)
        _copy_data__data(self, data_)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_Bi.pack(0x64, 0))
            if type(self.data) is not bytes:
                raise MalformedError
            out.append(self.data)
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding, sender="both") from None


(_copy_data__data,) = setters(CopyData)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class CopyDone:
    """The data of COPY is complete.

    A walsender may send a keepalive after its own.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-COPYDONE
    """

    tag: ClassVar[Literal["c"]] = "c"

    struct: ClassVar[DataclassStruct[CopyDone]] = DataclassStruct(
        "tag" / Const(b"c"),
        "length" / Const(4, Int32sb) * "The length of the message in bytes, with itself and without the tag.",
    )

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[CopyDone, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        offset += 4
        if length != 4:
            raise MalformedError
        self = _new(CopyDone)

        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            return _Bi.pack(0x63, 4)
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding, sender="both") from None


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class CopyFail:
    """The client gives up the COPY that it feeds.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-COPYFAIL
    """

    tag: ClassVar[Literal["f"]] = "f"

    reason: str
    """The reason, for the server's error."""

    struct: ClassVar[DataclassStruct[CopyFail]] = DataclassStruct(
        "tag" / Const(b"f"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "reason" / String * "The reason, for the server's error.",
    )

    def __init__(self, *, reason: str) -> None:
        _copy_fail__reason(self, reason)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[CopyFail, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        stop = offset + length
        offset += 4
        if not offset <= stop <= len(data):
            raise MalformedError
        end = data.index(0, offset)
        reason = data[offset:end].decode(encoding)
        offset = end + 1
        if offset != stop:
            raise MalformedError
        self = _new(CopyFail)
        _copy_fail__reason(self, reason)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_Bi.pack(0x66, 0))
            text = self.reason.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding, sender="client") from None


(_copy_fail__reason,) = setters(CopyFail)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class CopyInResponse:
    """The server waits for the data of COPY.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-COPYINRESPONSE
    """

    tag: ClassVar[Literal["G"]] = "G"

    overall_format: CopyFormat
    """Whether all values are text, or all are binary."""
    column_formats: tuple[FormatCode, ...]
    """The format of each column."""

    struct: ClassVar[DataclassStruct[CopyInResponse]] = DataclassStruct(
        "tag" / Const(b"G"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "overall_format" / Typed(OneOf(Int8ub, (0, 1)), CopyFormat) * "Whether all values are text, or all are binary.",
        "column_count" / Rebuild(Int16ub, len_(this.column_formats)) * "The number of columns.",
        "column_formats"
        / Array(this.column_count, Typed(OneOf(Int16sb, (0, 1)), FormatCode))
        * "The format of each column.",
    )

    def __init__(self, *, overall_format: CopyFormat, column_formats: tuple[FormatCode, ...]) -> None:
        _copy_in_response__overall_format(self, overall_format)
        _copy_in_response__column_formats(self, column_formats)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[CopyInResponse, int]:
        offset += 1
        length, overall_format, column_count = _iBH.unpack_from(data, offset)
        stop = offset + length
        offset += 7
        if not offset <= stop <= len(data) or overall_format > 1:
            raise MalformedError
        if not 0 <= column_count * 2 <= len(data) - offset:
            raise MalformedError
        column_formats = Format(f">{column_count}h").unpack_from(data, offset)
        offset += 2 * column_count
        if offset != stop:
            raise MalformedError
        self = _new(CopyInResponse)
        _copy_in_response__overall_format(self, CopyFormat(overall_format))
        _copy_in_response__column_formats(self, tuple(map(FormatCode, column_formats)))
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            if self.overall_format not in (0, 1):
                raise MalformedError
            out.append(_BiBH.pack(0x47, 0, self.overall_format, len(self.column_formats)))
            if any(item not in (0, 1) for item in self.column_formats):
                raise MalformedError
            out.append(Format(f">{len(self.column_formats)}h").pack(*self.column_formats))
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


_copy_in_response__overall_format, _copy_in_response__column_formats = setters(CopyInResponse)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class CopyOutResponse:
    """The data of COPY follows.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-COPYOUTRESPONSE
    """

    tag: ClassVar[Literal["H"]] = "H"

    overall_format: CopyFormat
    """Whether all values are text, or all are binary."""
    column_formats: tuple[FormatCode, ...]
    """The format of each column."""

    struct: ClassVar[DataclassStruct[CopyOutResponse]] = DataclassStruct(
        "tag" / Const(b"H"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "overall_format" / Typed(OneOf(Int8ub, (0, 1)), CopyFormat) * "Whether all values are text, or all are binary.",
        "column_count" / Rebuild(Int16ub, len_(this.column_formats)) * "The number of columns.",
        "column_formats"
        / Array(this.column_count, Typed(OneOf(Int16sb, (0, 1)), FormatCode))
        * "The format of each column.",
    )

    def __init__(self, *, overall_format: CopyFormat, column_formats: tuple[FormatCode, ...]) -> None:
        _copy_out_response__overall_format(self, overall_format)
        _copy_out_response__column_formats(self, column_formats)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[CopyOutResponse, int]:
        offset += 1
        length, overall_format, column_count = _iBH.unpack_from(data, offset)
        stop = offset + length
        offset += 7
        if not offset <= stop <= len(data) or overall_format > 1:
            raise MalformedError
        if not 0 <= column_count * 2 <= len(data) - offset:
            raise MalformedError
        column_formats = Format(f">{column_count}h").unpack_from(data, offset)
        offset += 2 * column_count
        if offset != stop:
            raise MalformedError
        self = _new(CopyOutResponse)
        _copy_out_response__overall_format(self, CopyFormat(overall_format))
        _copy_out_response__column_formats(self, tuple(map(FormatCode, column_formats)))
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            if self.overall_format not in (0, 1):
                raise MalformedError
            out.append(_BiBH.pack(0x48, 0, self.overall_format, len(self.column_formats)))
            if any(item not in (0, 1) for item in self.column_formats):
                raise MalformedError
            out.append(Format(f">{len(self.column_formats)}h").pack(*self.column_formats))
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


_copy_out_response__overall_format, _copy_out_response__column_formats = setters(CopyOutResponse)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class CopyBothResponse:
    """Begins a copy in both directions; only for replication.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-COPYBOTHRESPONSE
    """

    tag: ClassVar[Literal["W"]] = "W"

    overall_format: CopyFormat
    """Whether all values are text, or all are binary."""
    column_formats: tuple[FormatCode, ...]
    """The format of each column."""

    struct: ClassVar[DataclassStruct[CopyBothResponse]] = DataclassStruct(
        "tag" / Const(b"W"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "overall_format" / Typed(OneOf(Int8ub, (0, 1)), CopyFormat) * "Whether all values are text, or all are binary.",
        "column_count" / Rebuild(Int16ub, len_(this.column_formats)) * "The number of columns.",
        "column_formats"
        / Array(this.column_count, Typed(OneOf(Int16sb, (0, 1)), FormatCode))
        * "The format of each column.",
    )

    def __init__(self, *, overall_format: CopyFormat, column_formats: tuple[FormatCode, ...]) -> None:
        _copy_both_response__overall_format(self, overall_format)
        _copy_both_response__column_formats(self, column_formats)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[CopyBothResponse, int]:
        offset += 1
        length, overall_format, column_count = _iBH.unpack_from(data, offset)
        stop = offset + length
        offset += 7
        if not offset <= stop <= len(data) or overall_format > 1:
            raise MalformedError
        if not 0 <= column_count * 2 <= len(data) - offset:
            raise MalformedError
        column_formats = Format(f">{column_count}h").unpack_from(data, offset)
        offset += 2 * column_count
        if offset != stop:
            raise MalformedError
        self = _new(CopyBothResponse)
        _copy_both_response__overall_format(self, CopyFormat(overall_format))
        _copy_both_response__column_formats(self, tuple(map(FormatCode, column_formats)))
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            if self.overall_format not in (0, 1):
                raise MalformedError
            out.append(_BiBH.pack(0x57, 0, self.overall_format, len(self.column_formats)))
            if any(item not in (0, 1) for item in self.column_formats):
                raise MalformedError
            out.append(Format(f">{len(self.column_formats)}h").pack(*self.column_formats))
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


_copy_both_response__overall_format, _copy_both_response__column_formats = setters(CopyBothResponse)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class ColumnValue:
    """The value of one column."""

    value: bytes | None
    """The value; None for NULL."""

    struct: ClassVar[DataclassStruct[ColumnValue]] = DataclassStruct(
        "length" / Rebuild(Int32sb, length_or_null(this.value)) * "The length of the value in bytes; -1 for NULL.",
        "value" / NullableBytes(this.length) * "The value; None for NULL.",
    )

    def __init__(self, *, value: bytes | None) -> None:
        _column_value__value(self, value)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[ColumnValue, int]:
        (length,) = _i.unpack_from(data, offset)
        offset += 4
        value: bytes | None = None
        if length != -1:
            end = offset + length
            if not offset <= end <= len(data):
                raise MalformedError
            value = data[offset:end]
            offset = end
        self = _new(ColumnValue)
        _column_value__value(self, value)
        return self, offset

    def _pack(self, out: list[bytes], encoding: str) -> None:
        out.append(_i.pack(-1 if self.value is None else len(self.value)))
        if self.value is not None:
            if type(self.value) is not bytes:
                raise MalformedError
            out.append(self.value)


(_column_value__value,) = setters(ColumnValue)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class DataRow:
    """A row of a result.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-DATAROW
    """

    tag: ClassVar[Literal["D"]] = "D"

    columns: tuple[ColumnValue, ...]
    """The values of the columns."""

    struct: ClassVar[DataclassStruct[DataRow]] = DataclassStruct(
        "tag" / Const(b"D"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "column_count" / Rebuild(Int16ub, len_(this.columns)) * "The number of the following columns.",
        "columns" / Array(this.column_count, ColumnValue.struct) * "The values of the columns.",
    )

    def __init__(self, *, columns: tuple[ColumnValue, ...]) -> None:
        _data_row__columns(self, columns)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[DataRow, int]:
        offset += 1
        length, column_count = _iH.unpack_from(data, offset)
        stop = offset + length
        offset += 6
        if not offset <= stop <= len(data):
            raise MalformedError
        if column_count < 0:
            raise MalformedError
        columns = []
        for _ in range(column_count):
            item, offset = ColumnValue._parse(data, offset, encoding)
            columns.append(item)
        if offset != stop:
            raise MalformedError
        self = _new(DataRow)
        _data_row__columns(self, tuple(columns))
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_BiH.pack(0x44, 0, len(self.columns)))
            for item in self.columns:
                if type(item) is not ColumnValue:
                    raise MalformedError
                item._pack(out, encoding)
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


(_data_row__columns,) = setters(DataRow)


class Described(StrEnum):
    """The kind of object to describe."""

    STATEMENT = "S"
    PORTAL = "P"


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Describe:
    """Asks for a description of a prepared statement or a portal.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-DESCRIBE
    """

    tag: ClassVar[Literal["D"]] = "D"

    described: Described
    """The kind of object to describe."""
    name: str
    """Its name; empty for the unnamed one."""

    struct: ClassVar[DataclassStruct[Describe]] = DataclassStruct(
        "tag" / Const(b"D"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "described" / Char(Described) * "The kind of object to describe.",
        "name" / String * "Its name; empty for the unnamed one.",
    )

    def __init__(self, *, described: Described, name: str) -> None:
        _describe__described(self, described)
        _describe__name(self, name)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[Describe, int]:
        offset += 1
        length, described = _iB.unpack_from(data, offset)
        stop = offset + length
        offset += 5
        if not offset <= stop <= len(data):
            raise MalformedError
        end = data.index(0, offset)
        name = data[offset:end].decode(encoding)
        offset = end + 1
        if offset != stop:
            raise MalformedError
        self = _new(Describe)
        _describe__described(self, Described(chr(described)))
        _describe__name(self, name)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            if self.described not in ("S", "P"):
                raise MalformedError
            out.append(_BiB.pack(0x44, 0, ord(self.described)))
            text = self.name.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding, sender="client") from None


_describe__described, _describe__name = setters(Describe)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class EmptyQueryResponse:
    """The query was empty; sent in place of CommandComplete.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-EMPTYQUERYRESPONSE
    """

    tag: ClassVar[Literal["I"]] = "I"

    struct: ClassVar[DataclassStruct[EmptyQueryResponse]] = DataclassStruct(
        "tag" / Const(b"I"),
        "length" / Const(4, Int32sb) * "The length of the message in bytes, with itself and without the tag.",
    )

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[EmptyQueryResponse, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        offset += 4
        if length != 4:
            raise MalformedError
        self = _new(EmptyQueryResponse)

        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            return _Bi.pack(0x49, 4)
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


class Code(StrEnum):
    """The kind of field, as a letter; other letters are legal too."""

    SEVERITY = "S"
    SEVERITY_NOT_LOCALIZED = "V"
    CODE = "C"
    MESSAGE = "M"
    DETAIL = "D"
    HINT = "H"
    POSITION = "P"
    INTERNAL_POSITION = "p"
    INTERNAL_QUERY = "q"
    WHERE = "W"
    SCHEMA_NAME = "s"
    TABLE_NAME = "t"
    COLUMN_NAME = "c"
    DATA_TYPE_NAME = "d"
    CONSTRAINT_NAME = "n"
    FILE = "F"
    LINE = "L"
    ROUTINE = "R"


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class ErrorField:
    """One field of an error or a notice."""

    code: str
    """The kind of field, as a letter; other letters are legal too."""
    text: str
    """Its text."""

    struct: ClassVar[DataclassStruct[ErrorField]] = DataclassStruct(
        "code" / AnyChar * "The kind of field, as a letter; other letters are legal too.",
        "text" / String * "Its text.",
    )

    def __init__(self, *, code: str, text: str) -> None:
        _error_field__code(self, code)
        _error_field__text(self, text)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[ErrorField, int]:
        (code,) = _B.unpack_from(data, offset)
        offset += 1
        if not code:
            raise MalformedError
        end = data.index(0, offset)
        text = data[offset:end].decode(encoding)
        offset = end + 1
        self = _new(ErrorField)
        _error_field__code(self, chr(code))
        _error_field__text(self, text)
        return self, offset

    def _pack(self, out: list[bytes], encoding: str) -> None:
        if not isinstance(self.code, str) or self.code == "\0":
            raise MalformedError
        out.append(_B.pack(ord(self.code)))
        text = self.text.encode(encoding)
        if 0 in text:
            raise MalformedError
        out.append(text)
        out.append(b"\0")


_error_field__code, _error_field__text = setters(ErrorField)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class ErrorResponse:
    """An error.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-ERRORRESPONSE
    """

    tag: ClassVar[Literal["E"]] = "E"

    fields: tuple[ErrorField, ...]
    """The fields of the error, in any order."""

    struct: ClassVar[DataclassStruct[ErrorResponse]] = DataclassStruct(
        "tag" / Const(b"E"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "fields" / UntilZero(ErrorField.struct) * "The fields of the error, in any order.",
    )

    def __init__(self, *, fields: tuple[ErrorField, ...]) -> None:
        _error_response__fields(self, fields)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[ErrorResponse, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        stop = offset + length
        offset += 4
        if not offset <= stop <= len(data):
            raise MalformedError
        fields = []
        while data[offset]:
            item, offset = ErrorField._parse(data, offset, encoding)
            fields.append(item)
        offset += 1
        if offset != stop:
            raise MalformedError
        self = _new(ErrorResponse)
        _error_response__fields(self, tuple(fields))
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_Bi.pack(0x45, 0))
            for item in self.fields:
                if type(item) is not ErrorField:
                    raise MalformedError
                start = len(out)
                item._pack(out, encoding)
                if b"".join(out[start:])[:1] == b"\0":
                    raise MalformedError
            out.append(b"\0")
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


(_error_response__fields,) = setters(ErrorResponse)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Execute:
    """Runs a portal.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-EXECUTE
    """

    tag: ClassVar[Literal["E"]] = "E"

    portal: str
    """The portal's name; empty for the unnamed one."""
    row_limit: int
    """The most rows to return; zero for all."""

    struct: ClassVar[DataclassStruct[Execute]] = DataclassStruct(
        "tag" / Const(b"E"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "portal" / String * "The portal's name; empty for the unnamed one.",
        "row_limit" / Int32sb * "The most rows to return; zero for all.",
    )

    def __init__(self, *, portal: str, row_limit: int) -> None:
        _execute__portal(self, portal)
        _execute__row_limit(self, row_limit)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[Execute, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        stop = offset + length
        offset += 4
        if not offset <= stop <= len(data):
            raise MalformedError
        end = data.index(0, offset)
        portal = data[offset:end].decode(encoding)
        offset = end + 1
        (row_limit,) = _i.unpack_from(data, offset)
        offset += 4
        if offset != stop:
            raise MalformedError
        self = _new(Execute)
        _execute__portal(self, portal)
        _execute__row_limit(self, row_limit)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_Bi.pack(0x45, 0))
            text = self.portal.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            out.append(_i.pack(self.row_limit))
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding, sender="client") from None


_execute__portal, _execute__row_limit = setters(Execute)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Flush:
    """Asks for all results that are ready.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-FLUSH
    """

    tag: ClassVar[Literal["H"]] = "H"

    struct: ClassVar[DataclassStruct[Flush]] = DataclassStruct(
        "tag" / Const(b"H"),
        "length" / Const(4, Int32sb) * "The length of the message in bytes, with itself and without the tag.",
    )

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[Flush, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        offset += 4
        if length != 4:
            raise MalformedError
        self = _new(Flush)

        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            return _Bi.pack(0x48, 4)
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding, sender="client") from None


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class ArgumentValue:
    """The value of one argument."""

    value: bytes | None
    """The value; None for NULL."""

    struct: ClassVar[DataclassStruct[ArgumentValue]] = DataclassStruct(
        "length" / Rebuild(Int32sb, length_or_null(this.value)) * "The length of the value in bytes; -1 for NULL.",
        "value" / NullableBytes(this.length) * "The value; None for NULL.",
    )

    def __init__(self, *, value: bytes | None) -> None:
        _argument_value__value(self, value)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[ArgumentValue, int]:
        (length,) = _i.unpack_from(data, offset)
        offset += 4
        value: bytes | None = None
        if length != -1:
            end = offset + length
            if not offset <= end <= len(data):
                raise MalformedError
            value = data[offset:end]
            offset = end
        self = _new(ArgumentValue)
        _argument_value__value(self, value)
        return self, offset

    def _pack(self, out: list[bytes], encoding: str) -> None:
        out.append(_i.pack(-1 if self.value is None else len(self.value)))
        if self.value is not None:
            if type(self.value) is not bytes:
                raise MalformedError
            out.append(self.value)


(_argument_value__value,) = setters(ArgumentValue)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class FunctionCall:
    """Calls a function.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-FUNCTIONCALL
    """

    tag: ClassVar[Literal["F"]] = "F"

    function_id: Oid
    """The function's OID."""
    argument_formats: tuple[FormatCode, ...]
    """The formats of the arguments: no format if all are text, one format for all, or a format for each."""
    arguments: tuple[ArgumentValue, ...]
    """The arguments."""
    result_format: FormatCode
    """The format of the result."""

    struct: ClassVar[DataclassStruct[FunctionCall]] = DataclassStruct(
        "tag" / Const(b"F"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "function_id" / Int32ub * "The function's OID.",
        "argument_format_count"
        / Rebuild(Int16ub, len_(this.argument_formats))
        * "The number of the following formats of arguments.",
        "argument_formats"
        / Array(this.argument_format_count, Typed(OneOf(Int16sb, (0, 1)), FormatCode))
        * "The formats of the arguments: no format if all are text, one format for all, or a format for each.",
        "argument_count" / Rebuild(Int16ub, len_(this.arguments)) * "The number of the following arguments.",
        "arguments" / Array(this.argument_count, ArgumentValue.struct) * "The arguments.",
        "result_format" / Typed(OneOf(Int16sb, (0, 1)), FormatCode) * "The format of the result.",
    )

    def __init__(
        self,
        *,
        function_id: Oid,
        argument_formats: tuple[FormatCode, ...],
        arguments: tuple[ArgumentValue, ...],
        result_format: FormatCode,
    ) -> None:
        _function_call__function_id(self, function_id)
        _function_call__argument_formats(self, argument_formats)
        _function_call__arguments(self, arguments)
        _function_call__result_format(self, result_format)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[FunctionCall, int]:
        offset += 1
        length, function_id, argument_format_count = _iIH.unpack_from(data, offset)
        stop = offset + length
        offset += 10
        if not offset <= stop <= len(data):
            raise MalformedError
        if not 0 <= argument_format_count * 2 <= len(data) - offset:
            raise MalformedError
        argument_formats = Format(f">{argument_format_count}h").unpack_from(data, offset)
        offset += 2 * argument_format_count
        (argument_count,) = _H.unpack_from(data, offset)
        offset += 2
        if argument_count < 0:
            raise MalformedError
        arguments = []
        for _ in range(argument_count):
            item, offset = ArgumentValue._parse(data, offset, encoding)
            arguments.append(item)
        (result_format,) = _h.unpack_from(data, offset)
        offset += 2
        if result_format != 0 and result_format != 1:
            raise MalformedError
        if offset != stop:
            raise MalformedError
        self = _new(FunctionCall)
        _function_call__function_id(self, function_id)
        _function_call__argument_formats(self, tuple(map(FormatCode, argument_formats)))
        _function_call__arguments(self, tuple(arguments))
        _function_call__result_format(self, FormatCode(result_format))
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_BiIH.pack(0x46, 0, self.function_id, len(self.argument_formats)))
            if any(item not in (0, 1) for item in self.argument_formats):
                raise MalformedError
            out.append(Format(f">{len(self.argument_formats)}h").pack(*self.argument_formats))
            out.append(_H.pack(len(self.arguments)))
            for item in self.arguments:
                if type(item) is not ArgumentValue:
                    raise MalformedError
                item._pack(out, encoding)
            if self.result_format not in (0, 1):
                raise MalformedError
            out.append(_h.pack(self.result_format))
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding, sender="client") from None


(
    _function_call__function_id,
    _function_call__argument_formats,
    _function_call__arguments,
    _function_call__result_format,
) = setters(FunctionCall)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class FunctionCallResponse:
    """The result of FunctionCall.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-FUNCTIONCALLRESPONSE
    """

    tag: ClassVar[Literal["V"]] = "V"

    result: bytes | None
    """The result; None for NULL."""

    struct: ClassVar[DataclassStruct[FunctionCallResponse]] = DataclassStruct(
        "tag" / Const(b"V"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "result_length"
        / Rebuild(Int32sb, length_or_null(this.result))
        * "The length of the result in bytes; -1 for NULL.",
        "result" / NullableBytes(this.result_length) * "The result; None for NULL.",
    )

    def __init__(self, *, result: bytes | None) -> None:
        _function_call_response__result(self, result)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[FunctionCallResponse, int]:
        offset += 1
        length, result_length = _ii.unpack_from(data, offset)
        stop = offset + length
        offset += 8
        if not offset <= stop <= len(data):
            raise MalformedError
        result: bytes | None = None
        if result_length != -1:
            end = offset + result_length
            if not offset <= end <= len(data):
                raise MalformedError
            result = data[offset:end]
            offset = end
        if offset != stop:
            raise MalformedError
        self = _new(FunctionCallResponse)
        _function_call_response__result(self, result)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_Bii.pack(0x56, 0, -1 if self.result is None else len(self.result)))
            if self.result is not None:
                if type(self.result) is not bytes:
                    raise MalformedError
                out.append(self.result)
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


(_function_call_response__result,) = setters(FunctionCallResponse)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class GSSENCRequest:
    """Asks for GSSAPI encryption.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-GSSENCREQUEST
    """

    struct: ClassVar[DataclassStruct[GSSENCRequest]] = DataclassStruct(
        "length" / Const(8, Int32sb) * "The length of the message in bytes, with itself.",
        "code" / Const(80877104, Int32sb) * "The code of the request.",
    )

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[GSSENCRequest, int]:
        length, code = _ii.unpack_from(data, offset)
        offset += 8
        if length != 8 or code != 80877104:
            raise MalformedError
        self = _new(GSSENCRequest)

        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            return _ii.pack(8, 80877104)
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding, sender="client") from None


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class GSSResponse:
    """Answers AuthenticationGSS, AuthenticationSSPI or AuthenticationGSSContinue.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-GSSRESPONSE
    """

    tag: ClassVar[Literal["p"]] = "p"

    data: bytes
    """The data."""

    struct: ClassVar[DataclassStruct[GSSResponse]] = DataclassStruct(
        "tag" / Const(b"p"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "data" / GreedyBytes * "The data.",
    )

    def __init__(self, *, data: bytes) -> None:
        _gss_response__data(self, data)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[GSSResponse, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        stop = offset + length
        offset += 4
        if not offset <= stop <= len(data):
            raise MalformedError
        data_ = data[offset:stop]
        offset = stop
        if offset != stop:
            raise MalformedError
        self = _new(GSSResponse)
        _gss_response__data(self, data_)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_Bi.pack(0x70, 0))
            if type(self.data) is not bytes:
                raise MalformedError
            out.append(self.data)
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding, sender="client") from None


(_gss_response__data,) = setters(GSSResponse)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class NegotiateProtocolVersion:
    """The server speaks an older minor version, or does not know options of the StartupMessage.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-NEGOTIATEPROTOCOLVERSION
    """

    tag: ClassVar[Literal["v"]] = "v"

    newest_version: int
    """The newest version that the server supports."""
    options: tuple[str, ...]
    """The names of the unknown options."""

    struct: ClassVar[DataclassStruct[NegotiateProtocolVersion]] = DataclassStruct(
        "tag" / Const(b"v"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "newest_version" / Int32sb * "The newest version that the server supports.",
        "option_count" / Rebuild(Int32sb, len_(this.options)) * "The number of the following options.",
        "options" / Array(this.option_count, String) * "The names of the unknown options.",
    )

    def __init__(self, *, newest_version: int, options: tuple[str, ...]) -> None:
        _negotiate_protocol_version__newest_version(self, newest_version)
        _negotiate_protocol_version__options(self, options)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[NegotiateProtocolVersion, int]:
        offset += 1
        length, newest_version, option_count = _iii.unpack_from(data, offset)
        stop = offset + length
        offset += 12
        if not offset <= stop <= len(data):
            raise MalformedError
        if option_count < 0:
            raise MalformedError
        options = []
        for _ in range(option_count):
            end = data.index(0, offset)
            options.append(data[offset:end].decode(encoding))
            offset = end + 1
        if offset != stop:
            raise MalformedError
        self = _new(NegotiateProtocolVersion)
        _negotiate_protocol_version__newest_version(self, newest_version)
        _negotiate_protocol_version__options(self, tuple(options))
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_Biii.pack(0x76, 0, self.newest_version, len(self.options)))
            for item in self.options:
                text = item.encode(encoding)
                if 0 in text:
                    raise MalformedError
                out.append(text)
                out.append(b"\0")
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


_negotiate_protocol_version__newest_version, _negotiate_protocol_version__options = setters(NegotiateProtocolVersion)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class NoData:
    """The prepared statement or portal of Describe returns no rows.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-NODATA
    """

    tag: ClassVar[Literal["n"]] = "n"

    struct: ClassVar[DataclassStruct[NoData]] = DataclassStruct(
        "tag" / Const(b"n"),
        "length" / Const(4, Int32sb) * "The length of the message in bytes, with itself and without the tag.",
    )

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[NoData, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        offset += 4
        if length != 4:
            raise MalformedError
        self = _new(NoData)

        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            return _Bi.pack(0x6E, 4)
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class NoticeResponse:
    """A notice, at any time.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-NOTICERESPONSE
    """

    tag: ClassVar[Literal["N"]] = "N"

    fields: tuple[ErrorField, ...]
    """The fields of the notice, in any order."""

    struct: ClassVar[DataclassStruct[NoticeResponse]] = DataclassStruct(
        "tag" / Const(b"N"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "fields" / UntilZero(ErrorField.struct) * "The fields of the notice, in any order.",
    )

    def __init__(self, *, fields: tuple[ErrorField, ...]) -> None:
        _notice_response__fields(self, fields)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[NoticeResponse, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        stop = offset + length
        offset += 4
        if not offset <= stop <= len(data):
            raise MalformedError
        fields = []
        while data[offset]:
            item, offset = ErrorField._parse(data, offset, encoding)
            fields.append(item)
        offset += 1
        if offset != stop:
            raise MalformedError
        self = _new(NoticeResponse)
        _notice_response__fields(self, tuple(fields))
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_Bi.pack(0x4E, 0))
            for item in self.fields:
                if type(item) is not ErrorField:
                    raise MalformedError
                start = len(out)
                item._pack(out, encoding)
                if b"".join(out[start:])[:1] == b"\0":
                    raise MalformedError
            out.append(b"\0")
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


(_notice_response__fields,) = setters(NoticeResponse)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class NotificationResponse:
    """A notification, at any time.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-NOTIFICATIONRESPONSE
    """

    tag: ClassVar[Literal["A"]] = "A"

    process_id: int
    """The process id of the session that notified."""
    channel: str
    """The channel's name."""
    payload: str
    """The payload."""

    struct: ClassVar[DataclassStruct[NotificationResponse]] = DataclassStruct(
        "tag" / Const(b"A"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "process_id" / Int32sb * "The process id of the session that notified.",
        "channel" / String * "The channel's name.",
        "payload" / String * "The payload.",
    )

    def __init__(self, *, process_id: int, channel: str, payload: str) -> None:
        _notification_response__process_id(self, process_id)
        _notification_response__channel(self, channel)
        _notification_response__payload(self, payload)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[NotificationResponse, int]:
        offset += 1
        length, process_id = _ii.unpack_from(data, offset)
        stop = offset + length
        offset += 8
        if not offset <= stop <= len(data):
            raise MalformedError
        end = data.index(0, offset)
        channel = data[offset:end].decode(encoding)
        offset = end + 1
        end = data.index(0, offset)
        payload = data[offset:end].decode(encoding)
        offset = end + 1
        if offset != stop:
            raise MalformedError
        self = _new(NotificationResponse)
        _notification_response__process_id(self, process_id)
        _notification_response__channel(self, channel)
        _notification_response__payload(self, payload)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_Bii.pack(0x41, 0, self.process_id))
            text = self.channel.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            text = self.payload.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


_notification_response__process_id, _notification_response__channel, _notification_response__payload = setters(
    NotificationResponse
)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class ParameterDescription:
    """The types of a prepared statement's parameters.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-PARAMETERDESCRIPTION
    """

    tag: ClassVar[Literal["t"]] = "t"

    parameter_types: tuple[Oid, ...]
    """The OID of each parameter's type."""

    struct: ClassVar[DataclassStruct[ParameterDescription]] = DataclassStruct(
        "tag" / Const(b"t"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "parameter_count" / Rebuild(Int16ub, len_(this.parameter_types)) * "The number of parameters.",
        "parameter_types" / Array(this.parameter_count, Int32ub) * "The OID of each parameter's type.",
    )

    def __init__(self, *, parameter_types: tuple[Oid, ...]) -> None:
        _parameter_description__parameter_types(self, parameter_types)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[ParameterDescription, int]:
        offset += 1
        length, parameter_count = _iH.unpack_from(data, offset)
        stop = offset + length
        offset += 6
        if not offset <= stop <= len(data):
            raise MalformedError
        if not 0 <= parameter_count * 4 <= len(data) - offset:
            raise MalformedError
        parameter_types = Format(f">{parameter_count}I").unpack_from(data, offset)
        offset += 4 * parameter_count
        if offset != stop:
            raise MalformedError
        self = _new(ParameterDescription)
        _parameter_description__parameter_types(self, parameter_types)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_BiH.pack(0x74, 0, len(self.parameter_types)))
            out.append(Format(f">{len(self.parameter_types)}I").pack(*self.parameter_types))
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


(_parameter_description__parameter_types,) = setters(ParameterDescription)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class ParameterStatus:
    """The value of a setting that clients want to know, at the start and when it changes.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-PARAMETERSTATUS
    """

    tag: ClassVar[Literal["S"]] = "S"

    name: str
    """The setting's name."""
    setting: str
    """Its value."""

    struct: ClassVar[DataclassStruct[ParameterStatus]] = DataclassStruct(
        "tag" / Const(b"S"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "name" / String * "The setting's name.",
        "setting" / String * "Its value.",
    )

    def __init__(self, *, name: str, setting: str) -> None:
        _parameter_status__name(self, name)
        _parameter_status__setting(self, setting)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[ParameterStatus, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        stop = offset + length
        offset += 4
        if not offset <= stop <= len(data):
            raise MalformedError
        end = data.index(0, offset)
        name = data[offset:end].decode(encoding)
        offset = end + 1
        end = data.index(0, offset)
        setting = data[offset:end].decode(encoding)
        offset = end + 1
        if offset != stop:
            raise MalformedError
        self = _new(ParameterStatus)
        _parameter_status__name(self, name)
        _parameter_status__setting(self, setting)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_Bi.pack(0x53, 0))
            text = self.name.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            text = self.setting.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


_parameter_status__name, _parameter_status__setting = setters(ParameterStatus)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Parse:
    """Makes a prepared statement of a query.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-PARSE
    """

    tag: ClassVar[Literal["P"]] = "P"

    statement: str
    """The prepared statement's name; empty for the unnamed one."""
    query: str
    """The query."""
    parameter_types: tuple[Oid, ...]
    """The OID of each parameter's type; zero leaves it to the server."""

    struct: ClassVar[DataclassStruct[Parse]] = DataclassStruct(
        "tag" / Const(b"P"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "statement" / String * "The prepared statement's name; empty for the unnamed one.",
        "query" / String * "The query.",
        "parameter_count" / Rebuild(Int16ub, len_(this.parameter_types)) * "The number of the following types.",
        "parameter_types"
        / Array(this.parameter_count, Int32ub)
        * "The OID of each parameter's type; zero leaves it to the server.",
    )

    def __init__(self, *, statement: str, query: str, parameter_types: tuple[Oid, ...]) -> None:
        _parse__statement(self, statement)
        _parse__query(self, query)
        _parse__parameter_types(self, parameter_types)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[Parse, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        stop = offset + length
        offset += 4
        if not offset <= stop <= len(data):
            raise MalformedError
        end = data.index(0, offset)
        statement = data[offset:end].decode(encoding)
        offset = end + 1
        end = data.index(0, offset)
        query = data[offset:end].decode(encoding)
        offset = end + 1
        (parameter_count,) = _H.unpack_from(data, offset)
        offset += 2
        if not 0 <= parameter_count * 4 <= len(data) - offset:
            raise MalformedError
        parameter_types = Format(f">{parameter_count}I").unpack_from(data, offset)
        offset += 4 * parameter_count
        if offset != stop:
            raise MalformedError
        self = _new(Parse)
        _parse__statement(self, statement)
        _parse__query(self, query)
        _parse__parameter_types(self, parameter_types)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_Bi.pack(0x50, 0))
            text = self.statement.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            text = self.query.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            out.append(_H.pack(len(self.parameter_types)))
            out.append(Format(f">{len(self.parameter_types)}I").pack(*self.parameter_types))
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding, sender="client") from None


_parse__statement, _parse__query, _parse__parameter_types = setters(Parse)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class ParseComplete:
    """The server has created the prepared statement of Parse.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-PARSECOMPLETE
    """

    tag: ClassVar[Literal["1"]] = "1"

    struct: ClassVar[DataclassStruct[ParseComplete]] = DataclassStruct(
        "tag" / Const(b"1"),
        "length" / Const(4, Int32sb) * "The length of the message in bytes, with itself and without the tag.",
    )

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[ParseComplete, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        offset += 4
        if length != 4:
            raise MalformedError
        self = _new(ParseComplete)

        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            return _Bi.pack(0x31, 4)
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class PasswordMessage:
    """The password, as the server asked for it.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-PASSWORDMESSAGE
    """

    tag: ClassVar[Literal["p"]] = "p"

    password: str
    """The password or its hash."""

    struct: ClassVar[DataclassStruct[PasswordMessage]] = DataclassStruct(
        "tag" / Const(b"p"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "password" / String * "The password or its hash.",
    )

    def __init__(self, *, password: str) -> None:
        _password_message__password(self, password)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[PasswordMessage, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        stop = offset + length
        offset += 4
        if not offset <= stop <= len(data):
            raise MalformedError
        end = data.index(0, offset)
        password = data[offset:end].decode(encoding)
        offset = end + 1
        if offset != stop:
            raise MalformedError
        self = _new(PasswordMessage)
        _password_message__password(self, password)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_Bi.pack(0x70, 0))
            text = self.password.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding, sender="client") from None


(_password_message__password,) = setters(PasswordMessage)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class PortalSuspended:
    """Execute has returned as many rows as it may; the portal has more.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-PORTALSUSPENDED
    """

    tag: ClassVar[Literal["s"]] = "s"

    struct: ClassVar[DataclassStruct[PortalSuspended]] = DataclassStruct(
        "tag" / Const(b"s"),
        "length" / Const(4, Int32sb) * "The length of the message in bytes, with itself and without the tag.",
    )

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[PortalSuspended, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        offset += 4
        if length != 4:
            raise MalformedError
        self = _new(PortalSuspended)

        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            return _Bi.pack(0x73, 4)
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Query:
    """Runs a query, or several.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-QUERY
    """

    tag: ClassVar[Literal["Q"]] = "Q"

    query: str
    """The query."""

    struct: ClassVar[DataclassStruct[Query]] = DataclassStruct(
        "tag" / Const(b"Q"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "query" / String * "The query.",
    )

    def __init__(self, *, query: str) -> None:
        _query__query(self, query)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[Query, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        stop = offset + length
        offset += 4
        if not offset <= stop <= len(data):
            raise MalformedError
        end = data.index(0, offset)
        query = data[offset:end].decode(encoding)
        offset = end + 1
        if offset != stop:
            raise MalformedError
        self = _new(Query)
        _query__query(self, query)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_Bi.pack(0x51, 0))
            text = self.query.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding, sender="client") from None


(_query__query,) = setters(Query)


class TransactionStatus(StrEnum):
    """The state of the session's transaction."""

    IDLE = "I"
    IN_TRANSACTION = "T"
    FAILED = "E"


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class ReadyForQuery:
    """The server is ready for the next command.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-READYFORQUERY
    """

    tag: ClassVar[Literal["Z"]] = "Z"

    transaction_status: TransactionStatus
    """The state of the session's transaction."""

    struct: ClassVar[DataclassStruct[ReadyForQuery]] = DataclassStruct(
        "tag" / Const(b"Z"),
        "length" / Const(5, Int32sb) * "The length of the message in bytes, with itself and without the tag.",
        "transaction_status" / Char(TransactionStatus) * "The state of the session's transaction.",
    )

    def __init__(self, *, transaction_status: TransactionStatus) -> None:
        _ready_for_query__transaction_status(self, transaction_status)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[ReadyForQuery, int]:
        offset += 1
        length, transaction_status = _iB.unpack_from(data, offset)
        offset += 5
        if length != 5:
            raise MalformedError
        self = _new(ReadyForQuery)
        _ready_for_query__transaction_status(self, TransactionStatus(chr(transaction_status)))
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            if self.transaction_status not in ("I", "T", "E"):
                raise MalformedError
            return _BiB.pack(0x5A, 5, ord(self.transaction_status))
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


(_ready_for_query__transaction_status,) = setters(ReadyForQuery)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class FieldDescription:
    """One column of a result."""

    name: str
    """The column's name."""
    table_id: Oid
    """The OID of the column's table; zero for an expression."""
    column_number: int
    """The column's number in the table; zero for an expression."""
    type_id: Oid
    """The OID of its type."""
    type_size: int
    """The type's size; negative for a type without a fixed size."""
    type_modifier: int
    """The type's modifier; -1 for none."""
    format_code: FormatCode
    """The format of the values; text, as it is not known yet, in the description of a statement."""

    struct: ClassVar[DataclassStruct[FieldDescription]] = DataclassStruct(
        "name" / String * "The column's name.",
        "table_id" / Int32ub * "The OID of the column's table; zero for an expression.",
        "column_number" / Int16sb * "The column's number in the table; zero for an expression.",
        "type_id" / Int32ub * "The OID of its type.",
        "type_size" / Int16sb * "The type's size; negative for a type without a fixed size.",
        "type_modifier" / Int32sb * "The type's modifier; -1 for none.",
        "format_code"
        / Typed(OneOf(Int16sb, (0, 1)), FormatCode)
        * "The format of the values; text, as it is not known yet, in the description of a statement.",
    )

    def __init__(
        self,
        *,
        name: str,
        table_id: Oid,
        column_number: int,
        type_id: Oid,
        type_size: int,
        type_modifier: int,
        format_code: FormatCode,
    ) -> None:
        _field_description__name(self, name)
        _field_description__table_id(self, table_id)
        _field_description__column_number(self, column_number)
        _field_description__type_id(self, type_id)
        _field_description__type_size(self, type_size)
        _field_description__type_modifier(self, type_modifier)
        _field_description__format_code(self, format_code)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[FieldDescription, int]:
        end = data.index(0, offset)
        name = data[offset:end].decode(encoding)
        offset = end + 1
        table_id, column_number, type_id, type_size, type_modifier, format_code = _IhIhih.unpack_from(data, offset)
        offset += 18
        if format_code != 0 and format_code != 1:
            raise MalformedError
        self = _new(FieldDescription)
        _field_description__name(self, name)
        _field_description__table_id(self, table_id)
        _field_description__column_number(self, column_number)
        _field_description__type_id(self, type_id)
        _field_description__type_size(self, type_size)
        _field_description__type_modifier(self, type_modifier)
        _field_description__format_code(self, FormatCode(format_code))
        return self, offset

    def _pack(self, out: list[bytes], encoding: str) -> None:
        text = self.name.encode(encoding)
        if 0 in text:
            raise MalformedError
        out.append(text)
        out.append(b"\0")
        if self.format_code not in (0, 1):
            raise MalformedError
        out.append(
            _IhIhih.pack(
                self.table_id, self.column_number, self.type_id, self.type_size, self.type_modifier, self.format_code
            )
        )


(
    _field_description__name,
    _field_description__table_id,
    _field_description__column_number,
    _field_description__type_id,
    _field_description__type_size,
    _field_description__type_modifier,
    _field_description__format_code,
) = setters(FieldDescription)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class RowDescription:
    """The columns of a result.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-ROWDESCRIPTION
    """

    tag: ClassVar[Literal["T"]] = "T"

    fields: tuple[FieldDescription, ...]
    """The columns."""

    struct: ClassVar[DataclassStruct[RowDescription]] = DataclassStruct(
        "tag" / Const(b"T"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "field_count" / Rebuild(Int16ub, len_(this.fields)) * "The number of columns.",
        "fields" / Array(this.field_count, FieldDescription.struct) * "The columns.",
    )

    def __init__(self, *, fields: tuple[FieldDescription, ...]) -> None:
        _row_description__fields(self, fields)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[RowDescription, int]:
        offset += 1
        length, field_count = _iH.unpack_from(data, offset)
        stop = offset + length
        offset += 6
        if not offset <= stop <= len(data):
            raise MalformedError
        if field_count < 0:
            raise MalformedError
        fields = []
        for _ in range(field_count):
            item, offset = FieldDescription._parse(data, offset, encoding)
            fields.append(item)
        if offset != stop:
            raise MalformedError
        self = _new(RowDescription)
        _row_description__fields(self, tuple(fields))
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_BiH.pack(0x54, 0, len(self.fields)))
            for item in self.fields:
                if type(item) is not FieldDescription:
                    raise MalformedError
                item._pack(out, encoding)
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


(_row_description__fields,) = setters(RowDescription)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class SASLInitialResponse:
    """Chooses a mechanism of AuthenticationSASL.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-SASLINITIALRESPONSE
    """

    tag: ClassVar[Literal["p"]] = "p"

    mechanism: str
    """The mechanism's name."""
    response: bytes | None
    """The first response; None for none."""

    struct: ClassVar[DataclassStruct[SASLInitialResponse]] = DataclassStruct(
        "tag" / Const(b"p"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "mechanism" / String * "The mechanism's name.",
        "response_length"
        / Rebuild(Int32sb, length_or_null(this.response))
        * "The length of the first response in bytes; -1 for none.",
        "response" / NullableBytes(this.response_length) * "The first response; None for none.",
    )

    def __init__(self, *, mechanism: str, response: bytes | None) -> None:
        _sasl_initial_response__mechanism(self, mechanism)
        _sasl_initial_response__response(self, response)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[SASLInitialResponse, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        stop = offset + length
        offset += 4
        if not offset <= stop <= len(data):
            raise MalformedError
        end = data.index(0, offset)
        mechanism = data[offset:end].decode(encoding)
        offset = end + 1
        (response_length,) = _i.unpack_from(data, offset)
        offset += 4
        response: bytes | None = None
        if response_length != -1:
            end = offset + response_length
            if not offset <= end <= len(data):
                raise MalformedError
            response = data[offset:end]
            offset = end
        if offset != stop:
            raise MalformedError
        self = _new(SASLInitialResponse)
        _sasl_initial_response__mechanism(self, mechanism)
        _sasl_initial_response__response(self, response)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_Bi.pack(0x70, 0))
            text = self.mechanism.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            out.append(_i.pack(-1 if self.response is None else len(self.response)))
            if self.response is not None:
                if type(self.response) is not bytes:
                    raise MalformedError
                out.append(self.response)
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding, sender="client") from None


_sasl_initial_response__mechanism, _sasl_initial_response__response = setters(SASLInitialResponse)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class SASLResponse:
    """Answers a challenge of the mechanism.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-SASLRESPONSE
    """

    tag: ClassVar[Literal["p"]] = "p"

    data: bytes
    """The response."""

    struct: ClassVar[DataclassStruct[SASLResponse]] = DataclassStruct(
        "tag" / Const(b"p"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "data" / GreedyBytes * "The response.",
    )

    def __init__(self, *, data: bytes) -> None:
        _sasl_response__data(self, data)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[SASLResponse, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        stop = offset + length
        offset += 4
        if not offset <= stop <= len(data):
            raise MalformedError
        data_ = data[offset:stop]
        offset = stop
        if offset != stop:
            raise MalformedError
        self = _new(SASLResponse)
        _sasl_response__data(self, data_)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_Bi.pack(0x70, 0))
            if type(self.data) is not bytes:
                raise MalformedError
            out.append(self.data)
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding, sender="client") from None


(_sasl_response__data,) = setters(SASLResponse)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class SSLRequest:
    """Asks for TLS.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-SSLREQUEST
    """

    struct: ClassVar[DataclassStruct[SSLRequest]] = DataclassStruct(
        "length" / Const(8, Int32sb) * "The length of the message in bytes, with itself.",
        "code" / Const(80877103, Int32sb) * "The code of the request.",
    )

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[SSLRequest, int]:
        length, code = _ii.unpack_from(data, offset)
        offset += 8
        if length != 8 or code != 80877103:
            raise MalformedError
        self = _new(SSLRequest)

        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            return _ii.pack(8, 80877103)
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding, sender="client") from None


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class StartupParameter:
    """One parameter of a session."""

    name: str
    """The parameter's name."""
    setting: str
    """Its value."""

    struct: ClassVar[DataclassStruct[StartupParameter]] = DataclassStruct(
        "name" / String * "The parameter's name.",
        "setting" / String * "Its value.",
    )

    def __init__(self, *, name: str, setting: str) -> None:
        _startup_parameter__name(self, name)
        _startup_parameter__setting(self, setting)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[StartupParameter, int]:
        end = data.index(0, offset)
        name = data[offset:end].decode(encoding)
        offset = end + 1
        end = data.index(0, offset)
        setting = data[offset:end].decode(encoding)
        offset = end + 1
        self = _new(StartupParameter)
        _startup_parameter__name(self, name)
        _startup_parameter__setting(self, setting)
        return self, offset

    def _pack(self, out: list[bytes], encoding: str) -> None:
        text = self.name.encode(encoding)
        if 0 in text:
            raise MalformedError
        out.append(text)
        out.append(b"\0")
        text = self.setting.encode(encoding)
        if 0 in text:
            raise MalformedError
        out.append(text)
        out.append(b"\0")


_startup_parameter__name, _startup_parameter__setting = setters(StartupParameter)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class StartupMessage:
    """Opens a session.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-STARTUPMESSAGE
    """

    parameters: tuple[StartupParameter, ...]
    """The parameters, of which user is required."""

    struct: ClassVar[DataclassStruct[StartupMessage]] = DataclassStruct(
        "length" / MessageLength(Int32sb, 0) * "The length of the message in bytes, with itself.",
        "protocol_version" / Const(196608, Int32sb) * "The version of the protocol, 3.0 as the two halves of a number.",
        "parameters" / UntilZero(StartupParameter.struct) * "The parameters, of which user is required.",
    )

    def __init__(self, *, parameters: tuple[StartupParameter, ...]) -> None:
        _startup_message__parameters(self, parameters)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[StartupMessage, int]:
        length, protocol_version = _ii.unpack_from(data, offset)
        stop = offset + length
        offset += 8
        if not offset <= stop <= len(data) or protocol_version != 196608:
            raise MalformedError
        parameters = []
        while data[offset]:
            item, offset = StartupParameter._parse(data, offset, encoding)
            parameters.append(item)
        offset += 1
        if offset != stop:
            raise MalformedError
        self = _new(StartupMessage)
        _startup_message__parameters(self, tuple(parameters))
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(_ii.pack(0, 196608))
            for item in self.parameters:
                if type(item) is not StartupParameter:
                    raise MalformedError
                start = len(out)
                item._pack(out, encoding)
                if b"".join(out[start:])[:1] == b"\0":
                    raise MalformedError
            out.append(b"\0")
            data = b"".join(out)
            return data[:0] + _i.pack(len(data) - 0) + data[4:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding, sender="client") from None


(_startup_message__parameters,) = setters(StartupMessage)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Sync:
    """Ends a series of extended queries; after an error, the place to go on from.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-SYNC
    """

    tag: ClassVar[Literal["S"]] = "S"

    struct: ClassVar[DataclassStruct[Sync]] = DataclassStruct(
        "tag" / Const(b"S"),
        "length" / Const(4, Int32sb) * "The length of the message in bytes, with itself and without the tag.",
    )

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[Sync, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        offset += 4
        if length != 4:
            raise MalformedError
        self = _new(Sync)

        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            return _Bi.pack(0x53, 4)
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding, sender="client") from None


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Terminate:
    """Closes the session.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-TERMINATE
    """

    tag: ClassVar[Literal["X"]] = "X"

    struct: ClassVar[DataclassStruct[Terminate]] = DataclassStruct(
        "tag" / Const(b"X"),
        "length" / Const(4, Int32sb) * "The length of the message in bytes, with itself and without the tag.",
    )

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[Terminate, int]:
        offset += 1
        (length,) = _i.unpack_from(data, offset)
        offset += 4
        if length != 4:
            raise MalformedError
        self = _new(Terminate)

        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            return _Bi.pack(0x58, 4)
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding, sender="client") from None


class Answer(StrEnum):
    """Whether encryption begins."""

    TLS = "S"
    GSSAPI = "G"
    REFUSED = "N"


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class EncryptionResponse:
    """Answers SSLRequest or GSSENCRequest with one byte, without a tag and a length.

    https://www.postgresql.org/docs/18/protocol-message-formats.html
    """

    answer: Answer
    """Whether encryption begins."""

    struct: ClassVar[DataclassStruct[EncryptionResponse]] = DataclassStruct(
        "answer" / Char(Answer) * "Whether encryption begins.",
    )

    def __init__(self, *, answer: Answer) -> None:
        _encryption_response__answer(self, answer)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[EncryptionResponse, int]:
        (answer,) = _B.unpack_from(data, offset)
        offset += 1
        self = _new(EncryptionResponse)
        _encryption_response__answer(self, Answer(chr(answer)))
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            if self.answer not in ("S", "G", "N"):
                raise MalformedError
            return _B.pack(ord(self.answer))
        except _UNFIT as error:
            raise encode_error(PGWIRE, 1, self, error, encoding=encoding) from None


(_encryption_response__answer,) = setters(EncryptionResponse)


AnyMessage = (
    AuthenticationOk
    | AuthenticationKerberosV5
    | AuthenticationCleartextPassword
    | AuthenticationMD5Password
    | AuthenticationGSS
    | AuthenticationGSSContinue
    | AuthenticationSSPI
    | AuthenticationSASL
    | AuthenticationSASLContinue
    | AuthenticationSASLFinal
    | BackendKeyData
    | Bind
    | BindComplete
    | CancelRequest
    | Close
    | CloseComplete
    | CommandComplete
    | CopyData
    | CopyDone
    | CopyFail
    | CopyInResponse
    | CopyOutResponse
    | CopyBothResponse
    | DataRow
    | Describe
    | EmptyQueryResponse
    | ErrorResponse
    | Execute
    | Flush
    | FunctionCall
    | FunctionCallResponse
    | GSSENCRequest
    | GSSResponse
    | NegotiateProtocolVersion
    | NoData
    | NoticeResponse
    | NotificationResponse
    | ParameterDescription
    | ParameterStatus
    | Parse
    | ParseComplete
    | PasswordMessage
    | PortalSuspended
    | Query
    | ReadyForQuery
    | RowDescription
    | SASLInitialResponse
    | SASLResponse
    | SSLRequest
    | StartupMessage
    | Sync
    | Terminate
    | EncryptionResponse
)
"""Any message of protocol version 3.0."""

_DICTIONARIES: Dictionaries[AnyMessage] = Dictionaries(PGWIRE, AnyMessage)
to_dict = _DICTIONARIES.to_dict
from_dict = _DICTIONARIES.from_dict

server_message: Whole[AnyMessage] = Whole(
    Discriminated(
        (
            StructChoice(EncryptionResponse.struct, first=b"SGN", fact=("expected", "encryption")),
            StructChoice(AuthenticationOk.struct, first=b"R", constants=((5, b"\x00\x00\x00\x00"),)),
            StructChoice(AuthenticationKerberosV5.struct, first=b"R", constants=((5, b"\x00\x00\x00\x02"),)),
            StructChoice(AuthenticationCleartextPassword.struct, first=b"R", constants=((5, b"\x00\x00\x00\x03"),)),
            StructChoice(AuthenticationMD5Password.struct, first=b"R", constants=((5, b"\x00\x00\x00\x05"),)),
            StructChoice(AuthenticationGSS.struct, first=b"R", constants=((5, b"\x00\x00\x00\x07"),)),
            StructChoice(AuthenticationGSSContinue.struct, first=b"R", constants=((5, b"\x00\x00\x00\x08"),)),
            StructChoice(AuthenticationSSPI.struct, first=b"R", constants=((5, b"\x00\x00\x00\t"),)),
            StructChoice(AuthenticationSASL.struct, first=b"R", constants=((5, b"\x00\x00\x00\n"),)),
            StructChoice(AuthenticationSASLContinue.struct, first=b"R", constants=((5, b"\x00\x00\x00\x0b"),)),
            StructChoice(AuthenticationSASLFinal.struct, first=b"R", constants=((5, b"\x00\x00\x00\x0c"),)),
        ),
        Tagged(
            {
                b"K": BackendKeyData.struct,
                b"2": BindComplete.struct,
                b"3": CloseComplete.struct,
                b"C": CommandComplete.struct,
                b"d": CopyData.struct,
                b"c": CopyDone.struct,
                b"G": CopyInResponse.struct,
                b"H": CopyOutResponse.struct,
                b"W": CopyBothResponse.struct,
                b"D": DataRow.struct,
                b"I": EmptyQueryResponse.struct,
                b"E": ErrorResponse.struct,
                b"V": FunctionCallResponse.struct,
                b"v": NegotiateProtocolVersion.struct,
                b"n": NoData.struct,
                b"N": NoticeResponse.struct,
                b"A": NotificationResponse.struct,
                b"t": ParameterDescription.struct,
                b"S": ParameterStatus.struct,
                b"1": ParseComplete.struct,
                b"s": PortalSuspended.struct,
                b"Z": ReadyForQuery.struct,
                b"T": RowDescription.struct,
            }
        ),
        expected="startup",
    )
)
"""The Struct of any message of the server, which must take all bytes. Within another Struct use its `subcon`."""

client_message: Whole[AnyMessage] = Whole(
    Discriminated(
        (
            StructChoice(CancelRequest.struct, fact=("expected", "startup"), constants=((4, b"\x04\xd2\x16."),)),
            StructChoice(GSSENCRequest.struct, fact=("expected", "startup"), constants=((4, b"\x04\xd2\x160"),)),
            StructChoice(SSLRequest.struct, fact=("expected", "startup"), constants=((4, b"\x04\xd2\x16/"),)),
            StructChoice(StartupMessage.struct, fact=("expected", "startup"), constants=((4, b"\x00\x03\x00\x00"),)),
            StructChoice(GSSResponse.struct, first=b"p", fact=("expected", "gss")),
            StructChoice(PasswordMessage.struct, first=b"p", fact=("expected", "password")),
            StructChoice(SASLInitialResponse.struct, first=b"p", fact=("expected", "sasl_initial")),
            StructChoice(SASLResponse.struct, first=b"p", fact=("expected", "sasl")),
        ),
        Tagged(
            {
                b"B": Bind.struct,
                b"C": Close.struct,
                b"d": CopyData.struct,
                b"c": CopyDone.struct,
                b"f": CopyFail.struct,
                b"D": Describe.struct,
                b"E": Execute.struct,
                b"H": Flush.struct,
                b"F": FunctionCall.struct,
                b"P": Parse.struct,
                b"Q": Query.struct,
                b"S": Sync.struct,
                b"X": Terminate.struct,
            }
        ),
        expected="startup",
    )
)
"""The Struct of any message of the client, which must take all bytes. Within another Struct use its `subcon`."""


_Parser = Callable[[bytes, int, str], tuple[AnyMessage, int]]


_SERVER_MESSAGES: dict[int, _Parser] = {
    ord("K"): BackendKeyData._parse,
    ord("2"): BindComplete._parse,
    ord("3"): CloseComplete._parse,
    ord("C"): CommandComplete._parse,
    ord("d"): CopyData._parse,
    ord("c"): CopyDone._parse,
    ord("G"): CopyInResponse._parse,
    ord("H"): CopyOutResponse._parse,
    ord("W"): CopyBothResponse._parse,
    ord("D"): DataRow._parse,
    ord("I"): EmptyQueryResponse._parse,
    ord("E"): ErrorResponse._parse,
    ord("V"): FunctionCallResponse._parse,
    ord("v"): NegotiateProtocolVersion._parse,
    ord("n"): NoData._parse,
    ord("N"): NoticeResponse._parse,
    ord("A"): NotificationResponse._parse,
    ord("t"): ParameterDescription._parse,
    ord("S"): ParameterStatus._parse,
    ord("1"): ParseComplete._parse,
    ord("s"): PortalSuspended._parse,
    ord("Z"): ReadyForQuery._parse,
    ord("T"): RowDescription._parse,
}


def _server_parser(data: bytes, offset: int, expected: str) -> _Parser:
    """Return the parser of a message of the server."""
    if data[offset] in b"SGN" and expected == "encryption":
        return EncryptionResponse._parse
    if data[offset] == 0x52 and data.startswith(b"\x00\x00\x00\x00", offset + 5):
        return AuthenticationOk._parse
    if data[offset] == 0x52 and data.startswith(b"\x00\x00\x00\x02", offset + 5):
        return AuthenticationKerberosV5._parse
    if data[offset] == 0x52 and data.startswith(b"\x00\x00\x00\x03", offset + 5):
        return AuthenticationCleartextPassword._parse
    if data[offset] == 0x52 and data.startswith(b"\x00\x00\x00\x05", offset + 5):
        return AuthenticationMD5Password._parse
    if data[offset] == 0x52 and data.startswith(b"\x00\x00\x00\x07", offset + 5):
        return AuthenticationGSS._parse
    if data[offset] == 0x52 and data.startswith(b"\x00\x00\x00\x08", offset + 5):
        return AuthenticationGSSContinue._parse
    if data[offset] == 0x52 and data.startswith(b"\x00\x00\x00\t", offset + 5):
        return AuthenticationSSPI._parse
    if data[offset] == 0x52 and data.startswith(b"\x00\x00\x00\n", offset + 5):
        return AuthenticationSASL._parse
    if data[offset] == 0x52 and data.startswith(b"\x00\x00\x00\x0b", offset + 5):
        return AuthenticationSASLContinue._parse
    if data[offset] == 0x52 and data.startswith(b"\x00\x00\x00\x0c", offset + 5):
        return AuthenticationSASLFinal._parse
    return _SERVER_MESSAGES[data[offset]]


_CLIENT_MESSAGES: dict[int, _Parser] = {
    ord("B"): Bind._parse,
    ord("C"): Close._parse,
    ord("d"): CopyData._parse,
    ord("c"): CopyDone._parse,
    ord("f"): CopyFail._parse,
    ord("D"): Describe._parse,
    ord("E"): Execute._parse,
    ord("H"): Flush._parse,
    ord("F"): FunctionCall._parse,
    ord("P"): Parse._parse,
    ord("Q"): Query._parse,
    ord("S"): Sync._parse,
    ord("X"): Terminate._parse,
}


def _client_parser(data: bytes, offset: int, expected: str) -> _Parser:
    """Return the parser of a message of the client."""
    if expected == "startup" and data.startswith(b"\x04\xd2\x16.", offset + 4):
        return CancelRequest._parse
    if expected == "startup" and data.startswith(b"\x04\xd2\x160", offset + 4):
        return GSSENCRequest._parse
    if expected == "startup" and data.startswith(b"\x04\xd2\x16/", offset + 4):
        return SSLRequest._parse
    if expected == "startup" and data.startswith(b"\x00\x03\x00\x00", offset + 4):
        return StartupMessage._parse
    if data[offset] == 0x70 and expected == "gss":
        return GSSResponse._parse
    if data[offset] == 0x70 and expected == "password":
        return PasswordMessage._parse
    if data[offset] == 0x70 and expected == "sasl_initial":
        return SASLInitialResponse._parse
    if data[offset] == 0x70 and expected == "sasl":
        return SASLResponse._parse
    return _CLIENT_MESSAGES[data[offset]]


native_read_of_server: Callable[..., AnyMessage | None] | None = native_reader(PGWIRE, 1, globals(), server_message)
native_read_of_client: Callable[..., AnyMessage | None] | None = native_reader(PGWIRE, 1, globals(), client_message)


def parse(
    data: Buffer,
    *,
    expected: Literal["startup", "encryption", "messages", "password", "gss", "sasl_initial", "sasl"] = "startup",
    encoding: str = "utf-8",
    sender: Literal["server", "client"] = "server",
) -> AnyMessage:
    """Parse one whole message. Raises DecodeError unless the bytes are exactly one message.

    `expected`: whether the session waits for this. `encoding` is the session's client_encoding as a Python codec.
    `sender` is the side that sent the message.
    """
    if type(data) is not bytes:
        data = bytes(memoryview(data))
    read = native_read_of_server if sender == "server" else native_read_of_client
    if read is not None and (message_read := read(data, encoding, expected)) is not None:
        return message_read
    try:
        parser = (_server_parser if sender == "server" else _client_parser)(data, 0, expected)
        message, end = parser(data, 0, encoding)
        if end == len(data):
            return message
    except _MALFORMED:
        pass
    facts = {"expected": expected}
    raise decode_error(PGWIRE, 1, data, facts=facts, encoding=encoding, sender=sender)


def parse_from(
    data: bytes,
    offset: int = 0,
    *,
    expected: Literal["startup", "encryption", "messages", "password", "gss", "sasl_initial", "sasl"] = "startup",
    encoding: str = "utf-8",
    sender: Literal["server", "client"] = "server",
) -> tuple[AnyMessage, int]:
    """Parse the message that begins at an offset, and return it with the offset of its end. A message that takes the
    rest ends with the data, or where its length says. DecodeError counts offsets from the message's first byte.

    `expected`: whether the session waits for this. `encoding` is the session's client_encoding as a Python codec.
    `sender` is the side that sent the message.
    """
    if offset < 0:
        raise ValueError(f"the offset {offset} is negative")
    if type(data) is not bytes:
        data = bytes(memoryview(data))
    try:
        parser = (_server_parser if sender == "server" else _client_parser)(data, offset, expected)
        message, end = parser(data, offset, encoding)
        return message, end
    except _MALFORMED:
        pass
    facts = {"expected": expected}
    raise decode_error(PGWIRE, 1, data[offset:], facts=facts, encoding=encoding, sender=sender, is_whole=False)
