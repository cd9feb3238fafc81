"""Protocol version 4, of PostgreSQL 16 and later.

Aborts of streamed transactions have their position and time, for subscribers that apply in parallel.

New or changed: StreamAbort. The rest equals v3.

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
    Int32ub,
    Int64sb,
    Int64ub,
)

from logicalrep_protocol.layouts import LOGICALREP
from logicalrep_protocol.v3 import (
    Begin,
    BeginPrepare,
    Binary,
    Cell,
    Column,
    Commit,
    CommitPrepared,
    Delete,
    Insert,
    Message,
    NullValue,
    Origin,
    Prepare,
    Relation,
    ReplicaIdentity,
    RollbackPrepared,
    StreamCommit,
    StreamPrepare,
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
    IfSession,
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

_BII = Format(">BII")
_II = Format(">II")
_Qq = Format(">Qq")

_new = object.__new__
_MALFORMED = (LookupError, ValueError, FormatError)
_UNFIT = (LookupError, ValueError, FormatError, TypeError, AttributeError, OverflowError)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class StreamAbort:
    """Rolls back a streamed transaction, or one of its subtransactions.

    Sent after a Stream Stop, never inside a segment: for each aborted subtransaction, the innermost first, even
    if the server sent no change of it. For a whole transaction, the message with subxid = xid is the last.
    PostgreSQL 18 also sends the message in sessions without streaming, in every version, for a savepoint that is
    rolled back in a transaction that it already knows to be rolled back; it sends no change of this transaction.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-STREAM-ABORT
    Sent by stream_abort_cb.
    """

    tag: ClassVar[Literal["A"]] = "A"

    xid: TransactionId
    """The id of the top-level transaction."""
    subxid: TransactionId
    """The id of the subtransaction; equal to xid if the whole transaction is rolled back."""
    abort_lsn: Lsn | None
    """The position of the abort record.

    Present if the session was started with the option streaming = parallel. Zero if a crash ended the
    transaction.
    """
    abort_timestamp: TimestampTz | None
    """The time of the transaction's rollback.

    Present if the session was started with the option streaming = parallel. Zero if a crash ended the
    transaction; the origin's time for a transaction that was replayed from a replication origin.
    """

    struct: ClassVar[DataclassStruct[StreamAbort]] = DataclassStruct(
        "tag" / Const(b"A"),
        "xid" / Int32ub * "The id of the top-level transaction.",
        "subxid" / Int32ub * "The id of the subtransaction; equal to xid if the whole transaction is rolled back.",
        "abort_lsn" / IfSession("parallel", Typed(Int64ub, Lsn)) * "The position of the abort record.",
        "abort_timestamp"
        / IfSession("parallel", Typed(Int64sb, TimestampTz))
        * "The time of the transaction's rollback.",
    )

    def __init__(
        self,
        *,
        xid: TransactionId,
        subxid: TransactionId,
        abort_lsn: Lsn | None = None,
        abort_timestamp: TimestampTz | None = None,
    ) -> None:
        _stream_abort__xid(self, xid)
        _stream_abort__subxid(self, subxid)
        _stream_abort__abort_lsn(self, abort_lsn)
        _stream_abort__abort_timestamp(self, abort_timestamp)

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[StreamAbort, int]:
        offset += 1
        xid, subxid = _II.unpack_from(data, offset)
        offset += 8
        abort_lsn: Lsn | None = None
        abort_timestamp: TimestampTz | None = None
        if parallel:
            abort_lsn, abort_timestamp = _Qq.unpack_from(data, offset)
            offset += 16
            abort_lsn = lsn_of(abort_lsn)
            abort_timestamp = TimestampTz(abort_timestamp)
        self = _new(StreamAbort)
        _stream_abort__xid(self, xid)
        _stream_abort__subxid(self, subxid)
        _stream_abort__abort_lsn(self, abort_lsn)
        _stream_abort__abort_timestamp(self, abort_timestamp)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            out: list[bytes] = []
            out.append(_BII.pack(0x41, self.xid, self.subxid))
            if self.abort_lsn is not None and self.abort_timestamp is not None:
                out.append(_Qq.pack(self.abort_lsn, self.abort_timestamp))
            elif self.abort_lsn is not None or self.abort_timestamp is not None:
                raise MalformedError
            return b"".join(out)
        except _UNFIT as error:
            raise encode_error(LOGICALREP, 4, self, error, encoding=encoding) from None


_stream_abort__xid, _stream_abort__subxid, _stream_abort__abort_lsn, _stream_abort__abort_timestamp = setters(
    StreamAbort
)


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
"""Any message of protocol version 4."""

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

native_read: Callable[..., AnyMessage | None] | None = native_reader(LOGICALREP, 4, globals(), message)
native_write: Callable[..., bytes | None] | None = native_writer(native_read)


def parse(data: Buffer, *, streaming: bool = False, parallel: bool = False, encoding: str = "utf-8") -> AnyMessage:
    """Parse one whole message. Raises DecodeError unless the bytes are exactly one message.

    `streaming`: whether the message is between Stream Start and Stream Stop. `parallel`: whether the session was
    started with the option streaming = parallel. `encoding` is the session's client_encoding as a Python codec.
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
    raise decode_error(LOGICALREP, 4, data, facts=facts, encoding=encoding)


def parse_from(
    data: bytes, offset: int = 0, *, streaming: bool = False, parallel: bool = False, encoding: str = "utf-8"
) -> tuple[AnyMessage, int]:
    """Parse the message that begins at an offset, and return it with the offset of its end. A message that takes the
    rest ends with the data, or where its length says. DecodeError counts offsets from the message's first byte.

    `streaming`: whether the message is between Stream Start and Stream Stop. `parallel`: whether the session was
    started with the option streaming = parallel. `encoding` is the session's client_encoding as a Python codec.
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
    raise decode_error(LOGICALREP, 4, data[offset:], facts=facts, encoding=encoding, is_whole=False)
