"""Protocol version 3, of PostgreSQL 15 and later.

Transactions prepared for two-phase commit are sent when they are prepared.

New or changed: BeginPrepare, Prepare, CommitPrepared, RollbackPrepared, StreamPrepare. The rest equals v2.

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
    Int8ub,
    Int32ub,
    Int64sb,
    Int64ub,
    NoneOf,
)

from logicalrep_protocol.layouts import LOGICALREP
from logicalrep_protocol.v2 import (
    Begin,
    Binary,
    Cell,
    Column,
    Commit,
    Delete,
    Insert,
    Message,
    NullValue,
    Origin,
    Relation,
    ReplicaIdentity,
    StreamAbort,
    StreamCommit,
    StreamStart,
    StreamStop,
    Text,
    Truncate,
    TupleData,
    Type,
    UnchangedToast,
    Update,
)
from logicalrep_runtime.any_message import Tagged, Whole
from logicalrep_runtime.constructs import (
    DataclassStruct,
    String,
    Typed,
)
from logicalrep_runtime.dictionaries import Dictionaries
from logicalrep_runtime.encode_faults import encode_error
from logicalrep_runtime.errors import MalformedError
from logicalrep_runtime.layout_walk import decode_error
from logicalrep_runtime.make import setters
from logicalrep_runtime.native import reader as native_reader
from logicalrep_runtime.native import writer as native_writer
from logicalrep_runtime.scalars import Buffer, Lsn, TimestampTz, TransactionId, lsn_of

__all__ = [
    "AnyMessage",
    "Begin",
    "BeginPrepare",
    "Binary",
    "Cell",
    "Column",
    "Commit",
    "CommitPrepared",
    "Delete",
    "Insert",
    "Message",
    "NullValue",
    "Origin",
    "Prepare",
    "Relation",
    "ReplicaIdentity",
    "RollbackPrepared",
    "StreamAbort",
    "StreamCommit",
    "StreamPrepare",
    "StreamStart",
    "StreamStop",
    "Text",
    "Truncate",
    "TupleData",
    "Type",
    "UnchangedToast",
    "Update",
    "from_dict",
    "message",
    "parse",
    "parse_from",
    "to_dict",
]

_BBQQqI = Format(">BBQQqI")
_BBQQqqI = Format(">BBQQqqI")
_BQQqI = Format(">BQQqI")
_BQQqqI = Format(">BQQqqI")
_QQqI = Format(">QQqI")

_new = object.__new__
_MALFORMED = (LookupError, ValueError, FormatError)
_UNFIT = (LookupError, ValueError, FormatError, TypeError, AttributeError, OverflowError)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class BeginPrepare:
    """Opens a transaction that was prepared; its changes follow, then Prepare.

    A slot created with two_phase sends these messages to clients of versions 1 and 2 as well (15 and later). If a
    transaction was prepared before two_phase was turned on, the server sends it whole at its COMMIT PREPARED.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-BEGIN-PREPARE
    Sent by begin_prepare_cb.
    """

    tag: ClassVar[Literal["b"]] = "b"

    prepare_lsn: Lsn
    """The start of the prepare record.

    Never zero.
    """
    end_lsn: Lsn
    """The end of the prepare record.

    Never zero.
    """
    prepare_timestamp: TimestampTz
    """The time of the transaction's PREPARE TRANSACTION.

    For a transaction replayed from a replication origin, the time at the origin.
    """
    xid: TransactionId
    """The transaction's id."""
    gid: str
    """The transaction's name from PREPARE TRANSACTION."""

    struct: ClassVar[DataclassStruct[BeginPrepare]] = DataclassStruct(
        "tag" / Const(b"b"),
        "prepare_lsn" / Typed(NoneOf(Int64ub, (0,)), Lsn) * "The start of the prepare record.",
        "end_lsn" / Typed(NoneOf(Int64ub, (0,)), Lsn) * "The end of the prepare record.",
        "prepare_timestamp" / Typed(Int64sb, TimestampTz) * "The time of the transaction's PREPARE TRANSACTION.",
        "xid" / Int32ub * "The transaction's id.",
        "gid" / String * "The transaction's name from PREPARE TRANSACTION.",
    )

    def __init__(
        self, *, prepare_lsn: Lsn, end_lsn: Lsn, prepare_timestamp: TimestampTz, xid: TransactionId, gid: str
    ) -> None:
        _begin_prepare__prepare_lsn(self, prepare_lsn)
        _begin_prepare__end_lsn(self, end_lsn)
        _begin_prepare__prepare_timestamp(self, prepare_timestamp)
        _begin_prepare__xid(self, xid)
        _begin_prepare__gid(self, gid)

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[BeginPrepare, int]:
        offset += 1
        prepare_lsn, end_lsn, prepare_timestamp, xid = _QQqI.unpack_from(data, offset)
        offset += 28
        if not prepare_lsn or not end_lsn:
            raise MalformedError
        end = data.index(0, offset)
        gid = data[offset:end].decode(encoding)
        offset = end + 1
        self = _new(BeginPrepare)
        _begin_prepare__prepare_lsn(self, lsn_of(prepare_lsn))
        _begin_prepare__end_lsn(self, lsn_of(end_lsn))
        _begin_prepare__prepare_timestamp(self, TimestampTz(prepare_timestamp))
        _begin_prepare__xid(self, xid)
        _begin_prepare__gid(self, gid)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            out: list[bytes] = []
            if not self.prepare_lsn or not self.end_lsn:
                raise MalformedError
            out.append(_BQQqI.pack(0x62, self.prepare_lsn, self.end_lsn, self.prepare_timestamp, self.xid))
            text = self.gid.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            return b"".join(out)
        except _UNFIT as error:
            raise encode_error(LOGICALREP, 3, self, error, encoding=encoding) from None


(
    _begin_prepare__prepare_lsn,
    _begin_prepare__end_lsn,
    _begin_prepare__prepare_timestamp,
    _begin_prepare__xid,
    _begin_prepare__gid,
) = setters(BeginPrepare)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Prepare:
    """Closes the transaction that Begin Prepare opened; it is decided later.

    May follow Begin Prepare at once. PostgreSQL 18 sends Prepare without Begin Prepare for a transaction that
    only locked rows; PostgreSQL 15 to 17 send only the decision of such a transaction.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-PREPARE
    Sent by prepare_cb.
    """

    tag: ClassVar[Literal["P"]] = "P"

    prepare_lsn: Lsn
    """The start of the prepare record.

    Never zero.
    """
    end_lsn: Lsn
    """The end of the prepare record.

    Never zero.
    """
    prepare_timestamp: TimestampTz
    """The time of the transaction's PREPARE TRANSACTION.

    For a transaction replayed from a replication origin, the time at the origin.
    """
    xid: TransactionId
    """The transaction's id."""
    gid: str
    """The transaction's name from PREPARE TRANSACTION."""

    struct: ClassVar[DataclassStruct[Prepare]] = DataclassStruct(
        "tag" / Const(b"P"),
        "flags" / Const(0, Int8ub) * "Unused so far.",
        "prepare_lsn" / Typed(NoneOf(Int64ub, (0,)), Lsn) * "The start of the prepare record.",
        "end_lsn" / Typed(NoneOf(Int64ub, (0,)), Lsn) * "The end of the prepare record.",
        "prepare_timestamp" / Typed(Int64sb, TimestampTz) * "The time of the transaction's PREPARE TRANSACTION.",
        "xid" / Int32ub * "The transaction's id.",
        "gid" / String * "The transaction's name from PREPARE TRANSACTION.",
    )

    def __init__(
        self, *, prepare_lsn: Lsn, end_lsn: Lsn, prepare_timestamp: TimestampTz, xid: TransactionId, gid: str
    ) -> None:
        _prepare__prepare_lsn(self, prepare_lsn)
        _prepare__end_lsn(self, end_lsn)
        _prepare__prepare_timestamp(self, prepare_timestamp)
        _prepare__xid(self, xid)
        _prepare__gid(self, gid)

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[Prepare, int]:
        offset += 1
        flags, prepare_lsn, end_lsn, prepare_timestamp, xid = _BQQqI.unpack_from(data, offset)
        offset += 29
        if flags != 0 or not prepare_lsn or not end_lsn:
            raise MalformedError
        end = data.index(0, offset)
        gid = data[offset:end].decode(encoding)
        offset = end + 1
        self = _new(Prepare)
        _prepare__prepare_lsn(self, lsn_of(prepare_lsn))
        _prepare__end_lsn(self, lsn_of(end_lsn))
        _prepare__prepare_timestamp(self, TimestampTz(prepare_timestamp))
        _prepare__xid(self, xid)
        _prepare__gid(self, gid)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            out: list[bytes] = []
            if not self.prepare_lsn or not self.end_lsn:
                raise MalformedError
            out.append(_BBQQqI.pack(0x50, 0, self.prepare_lsn, self.end_lsn, self.prepare_timestamp, self.xid))
            text = self.gid.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            return b"".join(out)
        except _UNFIT as error:
            raise encode_error(LOGICALREP, 3, self, error, encoding=encoding) from None


_prepare__prepare_lsn, _prepare__end_lsn, _prepare__prepare_timestamp, _prepare__xid, _prepare__gid = setters(Prepare)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class CommitPrepared:
    """Commits a transaction that was prepared before.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-COMMIT-PREPARED
    Sent by commit_prepared_cb.
    """

    tag: ClassVar[Literal["K"]] = "K"

    commit_lsn: Lsn
    """The start of the record of COMMIT PREPARED.

    Never zero.
    """
    end_lsn: Lsn
    """The end of the record of COMMIT PREPARED, the position to acknowledge once the transaction is safe.

    Never zero.
    """
    commit_timestamp: TimestampTz
    """The time of the transaction's commit.

    For a transaction replayed from a replication origin, the time at the origin.
    """
    xid: TransactionId
    """The transaction's id."""
    gid: str
    """The transaction's name from PREPARE TRANSACTION."""

    struct: ClassVar[DataclassStruct[CommitPrepared]] = DataclassStruct(
        "tag" / Const(b"K"),
        "flags" / Const(0, Int8ub) * "Unused so far.",
        "commit_lsn" / Typed(NoneOf(Int64ub, (0,)), Lsn) * "The start of the record of COMMIT PREPARED.",
        "end_lsn"
        / Typed(NoneOf(Int64ub, (0,)), Lsn)
        * "The end of the record of COMMIT PREPARED, the position to acknowledge once the transaction is safe.",
        "commit_timestamp" / Typed(Int64sb, TimestampTz) * "The time of the transaction's commit.",
        "xid" / Int32ub * "The transaction's id.",
        "gid" / String * "The transaction's name from PREPARE TRANSACTION.",
    )

    def __init__(
        self, *, commit_lsn: Lsn, end_lsn: Lsn, commit_timestamp: TimestampTz, xid: TransactionId, gid: str
    ) -> None:
        _commit_prepared__commit_lsn(self, commit_lsn)
        _commit_prepared__end_lsn(self, end_lsn)
        _commit_prepared__commit_timestamp(self, commit_timestamp)
        _commit_prepared__xid(self, xid)
        _commit_prepared__gid(self, gid)

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[CommitPrepared, int]:
        offset += 1
        flags, commit_lsn, end_lsn, commit_timestamp, xid = _BQQqI.unpack_from(data, offset)
        offset += 29
        if flags != 0 or not commit_lsn or not end_lsn:
            raise MalformedError
        end = data.index(0, offset)
        gid = data[offset:end].decode(encoding)
        offset = end + 1
        self = _new(CommitPrepared)
        _commit_prepared__commit_lsn(self, lsn_of(commit_lsn))
        _commit_prepared__end_lsn(self, lsn_of(end_lsn))
        _commit_prepared__commit_timestamp(self, TimestampTz(commit_timestamp))
        _commit_prepared__xid(self, xid)
        _commit_prepared__gid(self, gid)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            out: list[bytes] = []
            if not self.commit_lsn or not self.end_lsn:
                raise MalformedError
            out.append(_BBQQqI.pack(0x4B, 0, self.commit_lsn, self.end_lsn, self.commit_timestamp, self.xid))
            text = self.gid.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            return b"".join(out)
        except _UNFIT as error:
            raise encode_error(LOGICALREP, 3, self, error, encoding=encoding) from None


(
    _commit_prepared__commit_lsn,
    _commit_prepared__end_lsn,
    _commit_prepared__commit_timestamp,
    _commit_prepared__xid,
    _commit_prepared__gid,
) = setters(CommitPrepared)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class RollbackPrepared:
    """Rolls back a transaction that was prepared before.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-ROLLBACK-PREPARED
    Sent by rollback_prepared_cb.
    """

    tag: ClassVar[Literal["r"]] = "r"

    prepare_end_lsn: Lsn
    """The end of the prepare record.

    Never zero.
    """
    rollback_end_lsn: Lsn
    """The end of the record of ROLLBACK PREPARED, the position to acknowledge.

    Never zero.
    """
    prepare_timestamp: TimestampTz
    """The time of the transaction's PREPARE TRANSACTION."""
    rollback_timestamp: TimestampTz
    """The time of the transaction's rollback.

    For a transaction replayed from a replication origin, the time at the origin.
    """
    xid: TransactionId
    """The transaction's id."""
    gid: str
    """The transaction's name from PREPARE TRANSACTION."""

    struct: ClassVar[DataclassStruct[RollbackPrepared]] = DataclassStruct(
        "tag" / Const(b"r"),
        "flags" / Const(0, Int8ub) * "Unused so far.",
        "prepare_end_lsn" / Typed(NoneOf(Int64ub, (0,)), Lsn) * "The end of the prepare record.",
        "rollback_end_lsn"
        / Typed(NoneOf(Int64ub, (0,)), Lsn)
        * "The end of the record of ROLLBACK PREPARED, the position to acknowledge.",
        "prepare_timestamp" / Typed(Int64sb, TimestampTz) * "The time of the transaction's PREPARE TRANSACTION.",
        "rollback_timestamp" / Typed(Int64sb, TimestampTz) * "The time of the transaction's rollback.",
        "xid" / Int32ub * "The transaction's id.",
        "gid" / String * "The transaction's name from PREPARE TRANSACTION.",
    )

    def __init__(
        self,
        *,
        prepare_end_lsn: Lsn,
        rollback_end_lsn: Lsn,
        prepare_timestamp: TimestampTz,
        rollback_timestamp: TimestampTz,
        xid: TransactionId,
        gid: str,
    ) -> None:
        _rollback_prepared__prepare_end_lsn(self, prepare_end_lsn)
        _rollback_prepared__rollback_end_lsn(self, rollback_end_lsn)
        _rollback_prepared__prepare_timestamp(self, prepare_timestamp)
        _rollback_prepared__rollback_timestamp(self, rollback_timestamp)
        _rollback_prepared__xid(self, xid)
        _rollback_prepared__gid(self, gid)

    @staticmethod
    def _parse(
        data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str
    ) -> tuple[RollbackPrepared, int]:
        offset += 1
        flags, prepare_end_lsn, rollback_end_lsn, prepare_timestamp, rollback_timestamp, xid = _BQQqqI.unpack_from(
            data, offset
        )
        offset += 37
        if flags != 0 or not prepare_end_lsn or not rollback_end_lsn:
            raise MalformedError
        end = data.index(0, offset)
        gid = data[offset:end].decode(encoding)
        offset = end + 1
        self = _new(RollbackPrepared)
        _rollback_prepared__prepare_end_lsn(self, lsn_of(prepare_end_lsn))
        _rollback_prepared__rollback_end_lsn(self, lsn_of(rollback_end_lsn))
        _rollback_prepared__prepare_timestamp(self, TimestampTz(prepare_timestamp))
        _rollback_prepared__rollback_timestamp(self, TimestampTz(rollback_timestamp))
        _rollback_prepared__xid(self, xid)
        _rollback_prepared__gid(self, gid)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            out: list[bytes] = []
            if not self.prepare_end_lsn or not self.rollback_end_lsn:
                raise MalformedError
            out.append(
                _BBQQqqI.pack(
                    0x72,
                    0,
                    self.prepare_end_lsn,
                    self.rollback_end_lsn,
                    self.prepare_timestamp,
                    self.rollback_timestamp,
                    self.xid,
                )
            )
            text = self.gid.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            return b"".join(out)
        except _UNFIT as error:
            raise encode_error(LOGICALREP, 3, self, error, encoding=encoding) from None


(
    _rollback_prepared__prepare_end_lsn,
    _rollback_prepared__rollback_end_lsn,
    _rollback_prepared__prepare_timestamp,
    _rollback_prepared__rollback_timestamp,
    _rollback_prepared__xid,
    _rollback_prepared__gid,
) = setters(RollbackPrepared)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class StreamPrepare:
    """Prepares a streamed transaction; it is decided later.

    Comes after the last Stream Stop, never inside a segment.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-STREAM-PREPARE
    Sent by stream_prepare_cb.
    """

    tag: ClassVar[Literal["p"]] = "p"

    prepare_lsn: Lsn
    """The start of the prepare record.

    Never zero.
    """
    end_lsn: Lsn
    """The end of the prepare record.

    Never zero.
    """
    prepare_timestamp: TimestampTz
    """The time of the transaction's PREPARE TRANSACTION.

    For a transaction replayed from a replication origin, the time at the origin.
    """
    xid: TransactionId
    """The id of the top-level transaction."""
    gid: str
    """The transaction's name from PREPARE TRANSACTION."""

    struct: ClassVar[DataclassStruct[StreamPrepare]] = DataclassStruct(
        "tag" / Const(b"p"),
        "flags" / Const(0, Int8ub) * "Unused so far.",
        "prepare_lsn" / Typed(NoneOf(Int64ub, (0,)), Lsn) * "The start of the prepare record.",
        "end_lsn" / Typed(NoneOf(Int64ub, (0,)), Lsn) * "The end of the prepare record.",
        "prepare_timestamp" / Typed(Int64sb, TimestampTz) * "The time of the transaction's PREPARE TRANSACTION.",
        "xid" / Int32ub * "The id of the top-level transaction.",
        "gid" / String * "The transaction's name from PREPARE TRANSACTION.",
    )

    def __init__(
        self, *, prepare_lsn: Lsn, end_lsn: Lsn, prepare_timestamp: TimestampTz, xid: TransactionId, gid: str
    ) -> None:
        _stream_prepare__prepare_lsn(self, prepare_lsn)
        _stream_prepare__end_lsn(self, end_lsn)
        _stream_prepare__prepare_timestamp(self, prepare_timestamp)
        _stream_prepare__xid(self, xid)
        _stream_prepare__gid(self, gid)

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[StreamPrepare, int]:
        offset += 1
        flags, prepare_lsn, end_lsn, prepare_timestamp, xid = _BQQqI.unpack_from(data, offset)
        offset += 29
        if flags != 0 or not prepare_lsn or not end_lsn:
            raise MalformedError
        end = data.index(0, offset)
        gid = data[offset:end].decode(encoding)
        offset = end + 1
        self = _new(StreamPrepare)
        _stream_prepare__prepare_lsn(self, lsn_of(prepare_lsn))
        _stream_prepare__end_lsn(self, lsn_of(end_lsn))
        _stream_prepare__prepare_timestamp(self, TimestampTz(prepare_timestamp))
        _stream_prepare__xid(self, xid)
        _stream_prepare__gid(self, gid)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            out: list[bytes] = []
            if not self.prepare_lsn or not self.end_lsn:
                raise MalformedError
            out.append(_BBQQqI.pack(0x70, 0, self.prepare_lsn, self.end_lsn, self.prepare_timestamp, self.xid))
            text = self.gid.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            return b"".join(out)
        except _UNFIT as error:
            raise encode_error(LOGICALREP, 3, self, error, encoding=encoding) from None


(
    _stream_prepare__prepare_lsn,
    _stream_prepare__end_lsn,
    _stream_prepare__prepare_timestamp,
    _stream_prepare__xid,
    _stream_prepare__gid,
) = setters(StreamPrepare)


AnyMessage = (
    Begin
    | Message
    | Commit
    | Origin
    | Relation
    | Type
    | Insert
    | Update
    | Delete
    | Truncate
    | StreamStart
    | StreamStop
    | StreamCommit
    | StreamAbort
    | BeginPrepare
    | Prepare
    | CommitPrepared
    | RollbackPrepared
    | StreamPrepare
)
"""Any message of protocol version 3."""

_DICTIONARIES: Dictionaries[AnyMessage] = Dictionaries(LOGICALREP, AnyMessage)
to_dict = _DICTIONARIES.to_dict
from_dict = _DICTIONARIES.from_dict

message: Whole[AnyMessage] = Whole(
    Tagged(
        {
            b"B": Begin.struct,
            b"M": Message.struct,
            b"C": Commit.struct,
            b"O": Origin.struct,
            b"R": Relation.struct,
            b"Y": Type.struct,
            b"I": Insert.struct,
            b"U": Update.struct,
            b"D": Delete.struct,
            b"T": Truncate.struct,
            b"S": StreamStart.struct,
            b"E": StreamStop.struct,
            b"c": StreamCommit.struct,
            b"A": StreamAbort.struct,
            b"b": BeginPrepare.struct,
            b"P": Prepare.struct,
            b"K": CommitPrepared.struct,
            b"r": RollbackPrepared.struct,
            b"p": StreamPrepare.struct,
        }
    )
)
"""The Struct of any message, which must take all bytes. Within another Struct use its `subcon`."""


_Parser = Callable[[bytes, int, bool, bool, str], tuple[AnyMessage, int]]


_SERVER_MESSAGES: dict[int, _Parser] = {
    ord("B"): Begin._parse,
    ord("M"): Message._parse,
    ord("C"): Commit._parse,
    ord("O"): Origin._parse,
    ord("R"): Relation._parse,
    ord("Y"): Type._parse,
    ord("I"): Insert._parse,
    ord("U"): Update._parse,
    ord("D"): Delete._parse,
    ord("T"): Truncate._parse,
    ord("S"): StreamStart._parse,
    ord("E"): StreamStop._parse,
    ord("c"): StreamCommit._parse,
    ord("A"): StreamAbort._parse,
    ord("b"): BeginPrepare._parse,
    ord("P"): Prepare._parse,
    ord("K"): CommitPrepared._parse,
    ord("r"): RollbackPrepared._parse,
    ord("p"): StreamPrepare._parse,
}

native_read: Callable[..., AnyMessage | None] | None = native_reader(LOGICALREP, 3, globals(), message)
native_write: Callable[..., bytes | None] | None = native_writer(native_read)


def parse(data: Buffer, *, streaming: bool = False, parallel: bool = False, encoding: str = "utf-8") -> AnyMessage:
    """Parse one whole message. Raises DecodeError unless the bytes are exactly one message.

    `streaming`: whether the message is between Stream Start and Stream Stop. `parallel`: whether the session was
    started with the option streaming = parallel (no effect before version 4). `encoding` is the session's
    client_encoding as a Python codec.
    """
    if type(data) is not bytes:
        data = bytes(memoryview(data))
    if native_read is not None and (message_read := native_read(data, encoding, streaming, parallel)) is not None:
        return message_read
    try:
        message, end = _SERVER_MESSAGES[data[0]](data, 0, streaming, parallel, encoding)
        if end == len(data):
            return message
    except _MALFORMED:
        pass
    facts = {"streaming": streaming, "parallel": parallel}
    raise decode_error(LOGICALREP, 3, data, facts=facts, encoding=encoding)


def parse_from(
    data: bytes, offset: int = 0, *, streaming: bool = False, parallel: bool = False, encoding: str = "utf-8"
) -> tuple[AnyMessage, int]:
    """Parse the message that begins at an offset, and return it with the offset of its end. A message that takes the
    rest ends with the data, or where its length says. DecodeError counts offsets from the message's first byte.

    `streaming`: whether the message is between Stream Start and Stream Stop. `parallel`: whether the session was
    started with the option streaming = parallel (no effect before version 4). `encoding` is the session's
    client_encoding as a Python codec.
    """
    if offset < 0:
        raise ValueError(f"the offset {offset} is negative")
    if type(data) is not bytes:
        data = bytes(memoryview(data))
    try:
        message, end = _SERVER_MESSAGES[data[offset]](data, offset, streaming, parallel, encoding)
        return message, end
    except _MALFORMED:
        pass
    facts = {"streaming": streaming, "parallel": parallel}
    raise decode_error(LOGICALREP, 3, data[offset:], facts=facts, encoding=encoding, is_whole=False)
