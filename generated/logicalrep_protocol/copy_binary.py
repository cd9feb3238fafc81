"""The file that COPY writes and reads with the binary format.

https://www.postgresql.org/docs/18/sql-copy.html

Generated from the spec by `python -m codegen regen`; do not edit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct as Format
from struct import error as FormatError
from typing import ClassVar

from construct import (
    Array,
    Bytes,
    Const,
    Int16sb,
    Int16ub,
    Int32sb,
    Rebuild,
    len_,
    this,
)

from logicalrep_protocol.layouts import COPY_BINARY
from logicalrep_runtime.any_message import Discriminated, StructChoice, Tagged, Whole
from logicalrep_runtime.constructs import (
    DataclassStruct,
    NullableBytes,
    Until,
    length_or_null,
)
from logicalrep_runtime.dictionaries import Dictionaries
from logicalrep_runtime.encode_faults import encode_error
from logicalrep_runtime.errors import MalformedError
from logicalrep_runtime.layout_walk import decode_error
from logicalrep_runtime.make import setters
from logicalrep_runtime.native import reader as native_reader
from logicalrep_runtime.scalars import Buffer

__all__ = [
    "AnyMessage",
    "CopyFile",
    "CopyRow",
    "CopyValue",
    "from_dict",
    "message",
    "parse",
    "parse_from",
    "to_dict",
]

_h = Format(">h")
_hHi = Format(">hHi")
_i = Format(">i")

_new = object.__new__
_MALFORMED = (LookupError, ValueError, FormatError)
_UNFIT = (LookupError, ValueError, FormatError, TypeError, AttributeError, OverflowError)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class CopyValue:
    """The value of one column."""

    value: bytes | None
    """The value in the binary format of its type; None for NULL."""

    struct: ClassVar[DataclassStruct[CopyValue]] = DataclassStruct(
        "length" / Rebuild(Int32sb, length_or_null(this.value)) * "The length of the value in bytes; -1 for NULL.",
        "value" / NullableBytes(this.length) * "The value in the binary format of its type; None for NULL.",
    )

    def __init__(self, *, value: bytes | None) -> None:
        _copy_value__value(self, value)

    @staticmethod
    def _parse(data: bytes, offset: int) -> tuple[CopyValue, int]:
        (length,) = _i.unpack_from(data, offset)
        offset += 4
        value: bytes | None = None
        if length != -1:
            end = offset + length
            if not offset <= end <= len(data):
                raise MalformedError
            value = data[offset:end]
            offset = end
        self = _new(CopyValue)
        _copy_value__value(self, value)
        return self, offset

    def _pack(self, out: list[bytes]) -> None:
        out.append(_i.pack(-1 if self.value is None else len(self.value)))
        if self.value is not None:
            if type(self.value) is not bytes:
                raise MalformedError
            out.append(self.value)


(_copy_value__value,) = setters(CopyValue)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class CopyRow:
    """One row."""

    columns: tuple[CopyValue, ...]
    """The values of the columns."""

    struct: ClassVar[DataclassStruct[CopyRow]] = DataclassStruct(
        "column_count" / Rebuild(Int16sb, len_(this.columns)) * "The number of the following values.",
        "columns" / Array(this.column_count, CopyValue.struct) * "The values of the columns.",
    )

    def __init__(self, *, columns: tuple[CopyValue, ...]) -> None:
        _copy_row__columns(self, columns)

    @staticmethod
    def _parse(data: bytes, offset: int) -> tuple[CopyRow, int]:
        (column_count,) = _h.unpack_from(data, offset)
        offset += 2
        if column_count < 0:
            raise MalformedError
        columns = []
        for _ in range(column_count):
            item, offset = CopyValue._parse(data, offset)
            columns.append(item)
        self = _new(CopyRow)
        _copy_row__columns(self, tuple(columns))
        return self, offset

    def _pack(self, out: list[bytes]) -> None:
        out.append(_h.pack(len(self.columns)))
        for item in self.columns:
            if type(item) is not CopyValue:
                raise MalformedError
            item._pack(out)


(_copy_row__columns,) = setters(CopyRow)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class CopyFile:
    """A whole file of COPY with the binary format.

    A COPY to the client sends the same bytes in CopyData. Readers refuse files with OIDs, which PostgreSQL 10 and
    11 write with the option OIDS, as their rows have one value more than their counts.

    https://www.postgresql.org/docs/18/sql-copy.html
    """

    flags: int
    """Bits 0 to 15 of the flags, which have no meaning yet; zero."""
    extension: bytes
    """The header extension, which has no content yet; empty."""
    rows: tuple[CopyRow, ...]
    """The rows."""

    struct: ClassVar[DataclassStruct[CopyFile]] = DataclassStruct(
        "signature" / Const(b"PGCOPY\n\xff\r\n\x00") * "The signature of the format.",
        "critical_flags" / Const(0, Int16sb) * "Bits 16 to 31 of the flags, which change the format.",
        "flags" / Int16ub * "Bits 0 to 15 of the flags, which have no meaning yet; zero.",
        "extension_length" / Rebuild(Int32sb, len_(this.extension)) * "The length of the header extension in bytes.",
        "extension" / Bytes(this.extension_length) * "The header extension, which has no content yet; empty.",
        "rows" / Until(b"\xff\xff", CopyRow.struct) * "The rows.",
        "trailer" / Const(-1, Int16sb) * "The end of the rows.",
    )

    def __init__(self, *, flags: int, extension: bytes, rows: tuple[CopyRow, ...]) -> None:
        _copy_file__flags(self, flags)
        _copy_file__extension(self, extension)
        _copy_file__rows(self, rows)

    @staticmethod
    def _parse(data: bytes, offset: int) -> tuple[CopyFile, int]:
        end = offset + 11
        if data[offset:end] != b"PGCOPY\n\xff\r\n\x00":
            raise MalformedError
        offset = end
        critical_flags, flags, extension_length = _hHi.unpack_from(data, offset)
        offset += 8
        if critical_flags != 0:
            raise MalformedError
        end = offset + extension_length
        if not offset <= end <= len(data):
            raise MalformedError
        extension = data[offset:end]
        offset = end
        rows = []
        while data[offset : offset + 2] != b"\xff\xff":
            item, offset = CopyRow._parse(data, offset)
            rows.append(item)
        (trailer,) = _h.unpack_from(data, offset)
        offset += 2
        if trailer != -1:
            raise MalformedError
        self = _new(CopyFile)
        _copy_file__flags(self, flags)
        _copy_file__extension(self, extension)
        _copy_file__rows(self, tuple(rows))
        return self, offset

    def build(self) -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        try:
            out: list[bytes] = []
            out.append(b"PGCOPY\n\xff\r\n\x00")
            out.append(_hHi.pack(0, self.flags, len(self.extension)))
            if type(self.extension) is not bytes:
                raise MalformedError
            out.append(self.extension)
            for item in self.rows:
                if type(item) is not CopyRow:
                    raise MalformedError
                start = len(out)
                item._pack(out)
                if b"".join(out[start:])[:2] == b"\xff\xff":
                    raise MalformedError
            out.append(_h.pack(-1))
            return b"".join(out)
        except _UNFIT as error:
            raise encode_error(COPY_BINARY, 1, self, error) from None


_copy_file__flags, _copy_file__extension, _copy_file__rows = setters(CopyFile)


AnyMessage = CopyFile
"""Any message of the copy_binary protocol."""

_DICTIONARIES: Dictionaries[AnyMessage] = Dictionaries(COPY_BINARY, AnyMessage)
to_dict = _DICTIONARIES.to_dict
from_dict = _DICTIONARIES.from_dict

message: Whole[AnyMessage] = Whole(
    Discriminated(
        (StructChoice(CopyFile.struct),),
        Tagged({}),
    )
)
"""The Struct of any message, which must take all bytes. Within another Struct use its `subcon`."""


_Parser = Callable[[bytes, int], tuple[AnyMessage, int]]


def _server_parser(data: bytes, offset: int) -> _Parser:
    """Return the parser of a message of the server."""
    return CopyFile._parse


native_read: Callable[..., AnyMessage | None] | None = native_reader(COPY_BINARY, 1, globals(), message)


def parse(data: Buffer) -> AnyMessage:
    """Parse one whole message. Raises DecodeError unless the bytes are exactly one message."""
    if type(data) is not bytes:
        data = bytes(memoryview(data))
    if native_read is not None and (message_read := native_read(data, "")) is not None:
        return message_read
    try:
        parser = _server_parser(data, 0)
        message, end = parser(data, 0)
        if end == len(data):
            return message
    except _MALFORMED:
        pass
    raise decode_error(COPY_BINARY, 1, data, facts={})


def parse_from(data: bytes, offset: int = 0) -> tuple[AnyMessage, int]:
    """Parse the message that begins at an offset, and return it with the offset of its end. A message that takes the
    rest ends with the data, or where its length says. DecodeError counts offsets from the message's first byte.
    """
    if offset < 0:
        raise ValueError(f"the offset {offset} is negative")
    if type(data) is not bytes:
        data = bytes(memoryview(data))
    try:
        parser = _server_parser(data, offset)
        message, end = parser(data, offset)
        return message, end
    except _MALFORMED:
        pass
    raise decode_error(COPY_BINARY, 1, data[offset:], facts={}, is_whole=False)
