"""Protocol version 3.2, of PostgreSQL 18 and later.

Version 3.2, with longer keys of cancellation.

New or changed: BackendKeyData, CancelRequest, StartupMessage. The rest equals v3_0.

Generated from the spec by `python -m codegen regen`; do not edit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct as Format
from struct import error as FormatError
from typing import ClassVar, Literal

from construct import (
    Const,
    GreedyBytes,
    Int32sb,
)

from logicalrep_protocol.pgwire.layouts import PGWIRE
from logicalrep_protocol.pgwire.v3_0 import (
    Answer,
    ArgumentValue,
    AuthenticationCleartextPassword,
    AuthenticationGSS,
    AuthenticationGSSContinue,
    AuthenticationKerberosV5,
    AuthenticationMD5Password,
    AuthenticationOk,
    AuthenticationSASL,
    AuthenticationSASLContinue,
    AuthenticationSASLFinal,
    AuthenticationSSPI,
    Bind,
    BindComplete,
    Close,
    CloseComplete,
    Closed,
    Code,
    ColumnValue,
    CommandComplete,
    CopyBothResponse,
    CopyData,
    CopyDone,
    CopyFail,
    CopyInResponse,
    CopyOutResponse,
    DataRow,
    Describe,
    Described,
    EmptyQueryResponse,
    EncryptionResponse,
    ErrorField,
    ErrorResponse,
    Execute,
    FieldDescription,
    Flush,
    FunctionCall,
    FunctionCallResponse,
    GSSENCRequest,
    GSSResponse,
    NegotiateProtocolVersion,
    NoData,
    NoticeResponse,
    NotificationResponse,
    ParameterDescription,
    ParameterStatus,
    ParameterValue,
    Parse,
    ParseComplete,
    PasswordMessage,
    PortalSuspended,
    Query,
    ReadyForQuery,
    RowDescription,
    SASLInitialResponse,
    SASLResponse,
    SSLRequest,
    StartupParameter,
    Sync,
    Terminate,
    TransactionStatus,
)
from logicalrep_runtime.any_message import Discriminated, StructChoice, Tagged, Whole
from logicalrep_runtime.constructs import (
    DataclassStruct,
    MessageLength,
    UntilZero,
)
from logicalrep_runtime.dictionaries import Dictionaries
from logicalrep_runtime.encode_faults import encode_error
from logicalrep_runtime.errors import MalformedError
from logicalrep_runtime.layout_walk import decode_error
from logicalrep_runtime.make import setters
from logicalrep_runtime.native import reader as native_reader
from logicalrep_runtime.scalars import Buffer

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

_Bii = Format(">Bii")
_i = Format(">i")
_ii = Format(">ii")
_iii = Format(">iii")

_new = object.__new__
_MALFORMED = (LookupError, ValueError, FormatError)
_UNFIT = (LookupError, ValueError, FormatError, TypeError, AttributeError, OverflowError)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class BackendKeyData:
    """The key for cancelling the session's statements.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-BACKENDKEYDATA
    """

    tag: ClassVar[Literal["K"]] = "K"

    process_id: int
    """The process id of the server's side."""
    secret_key: bytes
    """The key that a CancelRequest has to name.

    4 to 256 bytes; PostgreSQL 18 sends 32.
    """

    struct: ClassVar[DataclassStruct[BackendKeyData]] = DataclassStruct(
        "tag" / Const(b"K"),
        "length" / MessageLength(Int32sb, 1) * "The length of the message in bytes, with itself and without the tag.",
        "process_id" / Int32sb * "The process id of the server's side.",
        "secret_key" / GreedyBytes * "The key that a CancelRequest has to name.",
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
        secret_key = data[offset:stop]
        offset = stop
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
            if type(self.secret_key) is not bytes:
                raise MalformedError
            out.append(self.secret_key)
            data = b"".join(out)
            return data[:1] + _i.pack(len(data) - 1) + data[5:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 2, self, error, encoding=encoding) from None


_backend_key_data__process_id, _backend_key_data__secret_key = setters(BackendKeyData)


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
        "secret_key" / GreedyBytes * "Its key.",
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
        secret_key = data[offset:stop]
        offset = stop
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
            if type(self.secret_key) is not bytes:
                raise MalformedError
            out.append(self.secret_key)
            data = b"".join(out)
            return data[:0] + _i.pack(len(data) - 0) + data[4:]
        except _UNFIT as error:
            raise encode_error(PGWIRE, 2, self, error, encoding=encoding, sender="client") from None


_cancel_request__process_id, _cancel_request__secret_key = setters(CancelRequest)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class StartupMessage:
    """Opens a session.

    https://www.postgresql.org/docs/18/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-STARTUPMESSAGE
    """

    parameters: tuple[StartupParameter, ...]
    """The parameters, of which user is required."""

    struct: ClassVar[DataclassStruct[StartupMessage]] = DataclassStruct(
        "length" / MessageLength(Int32sb, 0) * "The length of the message in bytes, with itself.",
        "protocol_version" / Const(196610, Int32sb) * "The version of the protocol, 3.2 as the two halves of a number.",
        "parameters" / UntilZero(StartupParameter.struct) * "The parameters, of which user is required.",
    )

    def __init__(self, *, parameters: tuple[StartupParameter, ...]) -> None:
        _startup_message__parameters(self, parameters)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[StartupMessage, int]:
        length, protocol_version = _ii.unpack_from(data, offset)
        stop = offset + length
        offset += 8
        if not offset <= stop <= len(data) or protocol_version != 196610:
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
            out.append(_ii.pack(0, 196610))
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
            raise encode_error(PGWIRE, 2, self, error, encoding=encoding, sender="client") from None


(_startup_message__parameters,) = setters(StartupMessage)


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
"""Any message of protocol version 3.2."""

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
            StructChoice(StartupMessage.struct, fact=("expected", "startup"), constants=((4, b"\x00\x03\x00\x02"),)),
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
    if expected == "startup" and data.startswith(b"\x00\x03\x00\x02", offset + 4):
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


native_read_of_server: Callable[..., AnyMessage | None] | None = native_reader(PGWIRE, 2, globals(), server_message)
native_read_of_client: Callable[..., AnyMessage | None] | None = native_reader(PGWIRE, 2, globals(), client_message)


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
    raise decode_error(PGWIRE, 2, data, facts=facts, encoding=encoding, sender=sender)


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
    raise decode_error(PGWIRE, 2, data[offset:], facts=facts, encoding=encoding, sender=sender, is_whole=False)
