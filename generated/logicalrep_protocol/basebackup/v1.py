"""The messages of a walsender in CopyData during BASE_BACKUP.

https://www.postgresql.org/docs/18/protocol-replication.html

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
    Int64sb,
)

from logicalrep_protocol.basebackup.layouts import BASEBACKUP
from logicalrep_runtime.any_message import Tagged, Whole
from logicalrep_runtime.constructs import (
    DataclassStruct,
    String,
)
from logicalrep_runtime.dictionaries import Dictionaries
from logicalrep_runtime.encode_faults import encode_error
from logicalrep_runtime.errors import MalformedError
from logicalrep_runtime.layout_walk import decode_error
from logicalrep_runtime.make import setters
from logicalrep_runtime.native import reader as native_reader
from logicalrep_runtime.native import writer as native_writer
from logicalrep_runtime.scalars import Buffer

__all__ = [
    "AnyMessage",
    "ArchiveOrManifestData",
    "Manifest",
    "NewArchive",
    "ProgressReport",
    "from_dict",
    "message",
    "parse",
    "parse_from",
    "to_dict",
]

_B = Format(">B")
_Bq = Format(">Bq")
_q = Format(">q")

_new = object.__new__
_MALFORMED = (LookupError, ValueError, FormatError)
_UNFIT = (LookupError, ValueError, FormatError, TypeError, AttributeError, OverflowError)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class NewArchive:
    """Begins an archive in tar format, of the main data directory or of a tablespace.

    https://www.postgresql.org/docs/18/protocol-replication.html
    """

    tag: ClassVar[Literal["n"]] = "n"

    file_name: str
    """The file name of the archive."""
    tablespace_path: str
    """The full path of the tablespace's directory; empty for the main data directory."""

    struct: ClassVar[DataclassStruct[NewArchive]] = DataclassStruct(
        "tag" / Const(b"n"),
        "file_name" / String * "The file name of the archive.",
        "tablespace_path" / String * "The full path of the tablespace's directory; empty for the main data directory.",
    )

    def __init__(self, *, file_name: str, tablespace_path: str) -> None:
        _new_archive__file_name(self, file_name)
        _new_archive__tablespace_path(self, tablespace_path)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[NewArchive, int]:
        offset += 1
        end = data.index(0, offset)
        file_name = data[offset:end].decode(encoding)
        offset = end + 1
        end = data.index(0, offset)
        tablespace_path = data[offset:end].decode(encoding)
        offset = end + 1
        self = _new(NewArchive)
        _new_archive__file_name(self, file_name)
        _new_archive__tablespace_path(self, tablespace_path)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            out: list[bytes] = []
            out.append(_B.pack(0x6E))
            text = self.file_name.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            text = self.tablespace_path.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            return b"".join(out)
        except _UNFIT as error:
            raise encode_error(BASEBACKUP, 1, self, error, encoding=encoding) from None


_new_archive__file_name, _new_archive__tablespace_path = setters(NewArchive)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Manifest:
    """Begins the backup manifest, a list of the files of the backup.

    https://www.postgresql.org/docs/18/protocol-replication.html
    """

    tag: ClassVar[Literal["m"]] = "m"

    struct: ClassVar[DataclassStruct[Manifest]] = DataclassStruct(
        "tag" / Const(b"m"),
    )

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[Manifest, int]:

        self = _new(Manifest)

        return self, offset + 1

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            return _B.pack(0x6D)
        except _UNFIT as error:
            raise encode_error(BASEBACKUP, 1, self, error, encoding=encoding) from None


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class ArchiveOrManifestData:
    """A piece of the archive or of the manifest that the last such message began.

    https://www.postgresql.org/docs/18/protocol-replication.html
    """

    tag: ClassVar[Literal["d"]] = "d"

    data: bytes
    """The data; pieces may end anywhere."""

    struct: ClassVar[DataclassStruct[ArchiveOrManifestData]] = DataclassStruct(
        "tag" / Const(b"d"),
        "data" / GreedyBytes * "The data; pieces may end anywhere.",
    )

    def __init__(self, *, data: bytes) -> None:
        _archive_or_manifest_data__data(self, data)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[ArchiveOrManifestData, int]:
        offset += 1
        data_ = data[offset:]
        offset = len(data)
        self = _new(ArchiveOrManifestData)
        _archive_or_manifest_data__data(self, data_)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            out: list[bytes] = []
            out.append(_B.pack(0x64))
            if type(self.data) is not bytes:
                raise MalformedError
            out.append(self.data)
            return b"".join(out)
        except _UNFIT as error:
            raise encode_error(BASEBACKUP, 1, self, error, encoding=encoding) from None


(_archive_or_manifest_data__data,) = setters(ArchiveOrManifestData)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class ProgressReport:
    """Says how much of the backup the server has processed.

    Only with the option PROGRESS.

    https://www.postgresql.org/docs/18/protocol-replication.html
    """

    tag: ClassVar[Literal["p"]] = "p"

    byte_count: int
    """The number of bytes of archive data since the backup began, before compression on the server."""

    struct: ClassVar[DataclassStruct[ProgressReport]] = DataclassStruct(
        "tag" / Const(b"p"),
        "byte_count"
        / Int64sb
        * "The number of bytes of archive data since the backup began, before compression on the server.",
    )

    def __init__(self, *, byte_count: int) -> None:
        _progress_report__byte_count(self, byte_count)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[ProgressReport, int]:
        offset += 1
        (byte_count,) = _q.unpack_from(data, offset)
        offset += 8
        self = _new(ProgressReport)
        _progress_report__byte_count(self, byte_count)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            return _Bq.pack(0x70, self.byte_count)
        except _UNFIT as error:
            raise encode_error(BASEBACKUP, 1, self, error, encoding=encoding) from None


(_progress_report__byte_count,) = setters(ProgressReport)


AnyMessage = NewArchive | Manifest | ArchiveOrManifestData | ProgressReport
"""Any message of the basebackup protocol."""

_DICTIONARIES: Dictionaries[AnyMessage] = Dictionaries(BASEBACKUP, AnyMessage)
to_dict = _DICTIONARIES.to_dict
from_dict = _DICTIONARIES.from_dict

message: Whole[AnyMessage] = Whole(
    Tagged(
        {
            b"n": NewArchive.struct,
            b"m": Manifest.struct,
            b"d": ArchiveOrManifestData.struct,
            b"p": ProgressReport.struct,
        }
    )
)
"""The Struct of any message, which must take all bytes. Within another Struct use its `subcon`."""


_Parser = Callable[[bytes, int, str], tuple[AnyMessage, int]]


_SERVER_MESSAGES: dict[int, _Parser] = {
    ord("n"): NewArchive._parse,
    ord("m"): Manifest._parse,
    ord("d"): ArchiveOrManifestData._parse,
    ord("p"): ProgressReport._parse,
}

native_read: Callable[..., AnyMessage | None] | None = native_reader(BASEBACKUP, 1, globals(), message)
native_write: Callable[..., bytes | None] | None = native_writer(native_read)


def parse(data: Buffer, *, encoding: str = "utf-8") -> AnyMessage:
    """Parse one whole message. Raises DecodeError unless the bytes are exactly one message.

    `encoding` is the session's client_encoding as a Python codec.
    """
    if type(data) is not bytes:
        data = bytes(memoryview(data))
    if native_read is not None and (message_read := native_read(data, encoding)) is not None:
        return message_read
    try:
        message, end = _SERVER_MESSAGES[data[0]](data, 0, encoding)
        if end == len(data):
            return message
    except _MALFORMED:
        pass
    raise decode_error(BASEBACKUP, 1, data, facts={}, encoding=encoding)


def parse_from(data: bytes, offset: int = 0, *, encoding: str = "utf-8") -> tuple[AnyMessage, int]:
    """Parse the message that begins at an offset, and return it with the offset of its end. A message that takes the
    rest ends with the data, or where its length says. DecodeError counts offsets from the message's first byte.

    `encoding` is the session's client_encoding as a Python codec.
    """
    if offset < 0:
        raise ValueError(f"the offset {offset} is negative")
    if type(data) is not bytes:
        data = bytes(memoryview(data))
    try:
        message, end = _SERVER_MESSAGES[data[offset]](data, offset, encoding)
        return message, end
    except _MALFORMED:
        pass
    raise decode_error(BASEBACKUP, 1, data[offset:], facts={}, encoding=encoding, is_whole=False)
