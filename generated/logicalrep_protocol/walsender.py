"""The messages of a walsender and its client in CopyData during replication.

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
    Int32ub,
    Int64sb,
    Int64ub,
)

from logicalrep_protocol.layouts import WALSENDER
from logicalrep_runtime.any_message import Tagged, Whole
from logicalrep_runtime.constructs import (
    Boolean,
    DataclassStruct,
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
    "HotStandbyFeedbackMessage",
    "PrimaryKeepaliveMessage",
    "PrimaryStatusUpdate",
    "RequestPrimaryStatusUpdate",
    "StandbyStatusUpdate",
    "XLogData",
    "client_message",
    "from_dict",
    "parse",
    "parse_from",
    "server_message",
    "to_dict",
]

_BQQQq = Format(">BQQQq")
_BQQQqB = Format(">BQQQqB")
_BQQq = Format(">BQQq")
_BQqB = Format(">BQqB")
_Bq = Format(">Bq")
_BqIIII = Format(">BqIIII")
_QQQq = Format(">QQQq")
_QQQqB = Format(">QQQqB")
_QQq = Format(">QQq")
_QqB = Format(">QqB")
_q = Format(">q")
_qIIII = Format(">qIIII")

_new = object.__new__
_MALFORMED = (LookupError, ValueError, FormatError)
_UNFIT = (LookupError, ValueError, FormatError, TypeError, AttributeError, OverflowError)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class XLogData:
    """One message of the output plugin, with its place in the log.

    https://www.postgresql.org/docs/18/protocol-replication.html#PROTOCOL-REPLICATION-XLOGDATA
    """

    tag: ClassVar[Literal["w"]] = "w"

    start_lsn: Lsn
    """The position of the message.

    In logical replication zero for Relation and Type, and for a Begin before an Origin; the position decreases
    from one stream segment to the next. Order messages by their arrival, not by this position.
    """
    end_lsn: Lsn
    """The end of the log on the server.

    In logical replication always equal to start_lsn.
    """
    send_timestamp: TimestampTz
    """The server's clock when it sent the message."""
    payload: bytes
    """The message."""

    struct: ClassVar[DataclassStruct[XLogData]] = DataclassStruct(
        "tag" / Const(b"w"),
        "start_lsn" / Typed(Int64ub, Lsn) * "The position of the message.",
        "end_lsn" / Typed(Int64ub, Lsn) * "The end of the log on the server.",
        "send_timestamp" / Typed(Int64sb, TimestampTz) * "The server's clock when it sent the message.",
        "payload" / GreedyBytes * "The message.",
    )

    def __init__(self, *, start_lsn: Lsn, end_lsn: Lsn, send_timestamp: TimestampTz, payload: bytes) -> None:
        _x_log_data__start_lsn(self, start_lsn)
        _x_log_data__end_lsn(self, end_lsn)
        _x_log_data__send_timestamp(self, send_timestamp)
        _x_log_data__payload(self, payload)

    @staticmethod
    def _parse(data: bytes, offset: int) -> tuple[XLogData, int]:
        offset += 1
        start_lsn, end_lsn, send_timestamp = _QQq.unpack_from(data, offset)
        offset += 24
        payload = data[offset:]
        offset = len(data)
        self = _new(XLogData)
        _x_log_data__start_lsn(self, lsn_of(start_lsn))
        _x_log_data__end_lsn(self, lsn_of(end_lsn))
        _x_log_data__send_timestamp(self, TimestampTz(send_timestamp))
        _x_log_data__payload(self, payload)
        return self, offset

    def build(self) -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write_of_server is not None and (written := native_write_of_server(self, "")) is not None:
            return written
        try:
            out: list[bytes] = []
            out.append(_BQQq.pack(0x77, self.start_lsn, self.end_lsn, self.send_timestamp))
            if type(self.payload) is not bytes:
                raise MalformedError
            out.append(self.payload)
            return b"".join(out)
        except _UNFIT as error:
            raise encode_error(WALSENDER, 1, self, error) from None


_x_log_data__start_lsn, _x_log_data__end_lsn, _x_log_data__send_timestamp, _x_log_data__payload = setters(XLogData)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class PrimaryKeepaliveMessage:
    """Says that the server is alive, and how far it has read.

    https://www.postgresql.org/docs/18/protocol-replication.html#PROTOCOL-REPLICATION-PRIMARY-KEEPALIVE-MESSAGE
    """

    tag: ClassVar[Literal["k"]] = "k"

    end_lsn: Lsn
    """The end of the log on the server.

    In logical replication the last position sent; acknowledge it to move an idle slot on.
    """
    send_timestamp: TimestampTz
    """The server's clock when it sent the message."""
    reply_requested: bool
    """Whether the client should answer at once, so that the server does not end the connection."""

    struct: ClassVar[DataclassStruct[PrimaryKeepaliveMessage]] = DataclassStruct(
        "tag" / Const(b"k"),
        "end_lsn" / Typed(Int64ub, Lsn) * "The end of the log on the server.",
        "send_timestamp" / Typed(Int64sb, TimestampTz) * "The server's clock when it sent the message.",
        "reply_requested"
        / Boolean
        * "Whether the client should answer at once, so that the server does not end the connection.",
    )

    def __init__(self, *, end_lsn: Lsn, send_timestamp: TimestampTz, reply_requested: bool) -> None:
        _primary_keepalive_message__end_lsn(self, end_lsn)
        _primary_keepalive_message__send_timestamp(self, send_timestamp)
        _primary_keepalive_message__reply_requested(self, reply_requested)

    @staticmethod
    def _parse(data: bytes, offset: int) -> tuple[PrimaryKeepaliveMessage, int]:
        offset += 1
        end_lsn, send_timestamp, reply_requested = _QqB.unpack_from(data, offset)
        offset += 17
        if reply_requested > 1:
            raise MalformedError
        self = _new(PrimaryKeepaliveMessage)
        _primary_keepalive_message__end_lsn(self, lsn_of(end_lsn))
        _primary_keepalive_message__send_timestamp(self, TimestampTz(send_timestamp))
        _primary_keepalive_message__reply_requested(self, bool(reply_requested))
        return self, offset

    def build(self) -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write_of_server is not None and (written := native_write_of_server(self, "")) is not None:
            return written
        try:
            if self.reply_requested not in (0, 1):
                raise MalformedError
            return _BQqB.pack(0x6B, self.end_lsn, self.send_timestamp, self.reply_requested)
        except _UNFIT as error:
            raise encode_error(WALSENDER, 1, self, error) from None


(
    _primary_keepalive_message__end_lsn,
    _primary_keepalive_message__send_timestamp,
    _primary_keepalive_message__reply_requested,
) = setters(PrimaryKeepaliveMessage)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class PrimaryStatusUpdate:
    """Answers a Request primary status update with the server's position, and the transactions that are about to
    commit.

    https://www.postgresql.org/docs/19/protocol-replication.html#PROTOCOL-REPLICATION-PRIMARY-STATUS-UPDATE
    Since PostgreSQL 19.
    """

    tag: ClassVar[Literal["s"]] = "s"

    end_lsn: Lsn
    """The end of the log on the server."""
    oldest_committing_xid: int
    """The oldest transaction that is committing on the server; without one, the next id that the server assigns."""
    next_xid: int
    """The next transaction id that the server assigns."""
    send_timestamp: TimestampTz
    """The server's clock when it sent the message."""

    struct: ClassVar[DataclassStruct[PrimaryStatusUpdate]] = DataclassStruct(
        "tag" / Const(b"s"),
        "end_lsn" / Typed(Int64ub, Lsn) * "The end of the log on the server.",
        "oldest_committing_xid"
        / Int64ub
        * "The oldest transaction that is committing on the server; without one, the next id that the server assigns.",
        "next_xid" / Int64ub * "The next transaction id that the server assigns.",
        "send_timestamp" / Typed(Int64sb, TimestampTz) * "The server's clock when it sent the message.",
    )

    def __init__(self, *, end_lsn: Lsn, oldest_committing_xid: int, next_xid: int, send_timestamp: TimestampTz) -> None:
        _primary_status_update__end_lsn(self, end_lsn)
        _primary_status_update__oldest_committing_xid(self, oldest_committing_xid)
        _primary_status_update__next_xid(self, next_xid)
        _primary_status_update__send_timestamp(self, send_timestamp)

    @staticmethod
    def _parse(data: bytes, offset: int) -> tuple[PrimaryStatusUpdate, int]:
        offset += 1
        end_lsn, oldest_committing_xid, next_xid, send_timestamp = _QQQq.unpack_from(data, offset)
        offset += 32
        self = _new(PrimaryStatusUpdate)
        _primary_status_update__end_lsn(self, lsn_of(end_lsn))
        _primary_status_update__oldest_committing_xid(self, oldest_committing_xid)
        _primary_status_update__next_xid(self, next_xid)
        _primary_status_update__send_timestamp(self, TimestampTz(send_timestamp))
        return self, offset

    def build(self) -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write_of_server is not None and (written := native_write_of_server(self, "")) is not None:
            return written
        try:
            return _BQQQq.pack(0x73, self.end_lsn, self.oldest_committing_xid, self.next_xid, self.send_timestamp)
        except _UNFIT as error:
            raise encode_error(WALSENDER, 1, self, error) from None


(
    _primary_status_update__end_lsn,
    _primary_status_update__oldest_committing_xid,
    _primary_status_update__next_xid,
    _primary_status_update__send_timestamp,
) = setters(PrimaryStatusUpdate)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class StandbyStatusUpdate:
    """Reports the client's positions; the server may discard the log before the flushed position.

    https://www.postgresql.org/docs/18/protocol-replication.html#PROTOCOL-REPLICATION-STANDBY-STATUS-UPDATE
    """

    tag: ClassVar[Literal["r"]] = "r"

    written_lsn: Lsn
    """The position after the last byte that the client has received and written."""
    flushed_lsn: Lsn
    """The position after the last byte that the client has made durable; it moves the slot."""
    applied_lsn: Lsn
    """The position after the last byte that the client has applied."""
    send_timestamp: TimestampTz
    """The client's clock when it sent the message."""
    reply_requested: bool
    """Whether the server should answer at once."""

    struct: ClassVar[DataclassStruct[StandbyStatusUpdate]] = DataclassStruct(
        "tag" / Const(b"r"),
        "written_lsn"
        / Typed(Int64ub, Lsn)
        * "The position after the last byte that the client has received and written.",
        "flushed_lsn"
        / Typed(Int64ub, Lsn)
        * "The position after the last byte that the client has made durable; it moves the slot.",
        "applied_lsn" / Typed(Int64ub, Lsn) * "The position after the last byte that the client has applied.",
        "send_timestamp" / Typed(Int64sb, TimestampTz) * "The client's clock when it sent the message.",
        "reply_requested" / Boolean * "Whether the server should answer at once.",
    )

    def __init__(
        self,
        *,
        written_lsn: Lsn,
        flushed_lsn: Lsn,
        applied_lsn: Lsn,
        send_timestamp: TimestampTz,
        reply_requested: bool,
    ) -> None:
        _standby_status_update__written_lsn(self, written_lsn)
        _standby_status_update__flushed_lsn(self, flushed_lsn)
        _standby_status_update__applied_lsn(self, applied_lsn)
        _standby_status_update__send_timestamp(self, send_timestamp)
        _standby_status_update__reply_requested(self, reply_requested)

    @staticmethod
    def _parse(data: bytes, offset: int) -> tuple[StandbyStatusUpdate, int]:
        offset += 1
        written_lsn, flushed_lsn, applied_lsn, send_timestamp, reply_requested = _QQQqB.unpack_from(data, offset)
        offset += 33
        if reply_requested > 1:
            raise MalformedError
        self = _new(StandbyStatusUpdate)
        _standby_status_update__written_lsn(self, lsn_of(written_lsn))
        _standby_status_update__flushed_lsn(self, lsn_of(flushed_lsn))
        _standby_status_update__applied_lsn(self, lsn_of(applied_lsn))
        _standby_status_update__send_timestamp(self, TimestampTz(send_timestamp))
        _standby_status_update__reply_requested(self, bool(reply_requested))
        return self, offset

    def build(self) -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write_of_client is not None and (written := native_write_of_client(self, "")) is not None:
            return written
        try:
            if self.reply_requested not in (0, 1):
                raise MalformedError
            return _BQQQqB.pack(
                0x72, self.written_lsn, self.flushed_lsn, self.applied_lsn, self.send_timestamp, self.reply_requested
            )
        except _UNFIT as error:
            raise encode_error(WALSENDER, 1, self, error, sender="client") from None


(
    _standby_status_update__written_lsn,
    _standby_status_update__flushed_lsn,
    _standby_status_update__applied_lsn,
    _standby_status_update__send_timestamp,
    _standby_status_update__reply_requested,
) = setters(StandbyStatusUpdate)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class HotStandbyFeedbackMessage:
    """Tells the server which row versions the standby's queries still need.

    https://www.postgresql.org/docs/18/protocol-replication.html#PROTOCOL-REPLICATION-HOT-STANDBY-FEEDBACK-MESSAGE
    """

    tag: ClassVar[Literal["h"]] = "h"

    send_timestamp: TimestampTz
    """The client's clock when it sent the message."""
    xmin: TransactionId
    """The oldest transaction id that the standby still needs, without catalog_xmin.

    Zero in both xmin and catalog_xmin ends the feedback on this connection.
    """
    xmin_epoch: int
    """The epoch of xmin."""
    catalog_xmin: TransactionId
    """The oldest catalog_xmin of the standby's replication slots; zero for none."""
    catalog_xmin_epoch: int
    """The epoch of catalog_xmin."""

    struct: ClassVar[DataclassStruct[HotStandbyFeedbackMessage]] = DataclassStruct(
        "tag" / Const(b"h"),
        "send_timestamp" / Typed(Int64sb, TimestampTz) * "The client's clock when it sent the message.",
        "xmin" / Int32ub * "The oldest transaction id that the standby still needs, without catalog_xmin.",
        "xmin_epoch" / Int32ub * "The epoch of xmin.",
        "catalog_xmin" / Int32ub * "The oldest catalog_xmin of the standby's replication slots; zero for none.",
        "catalog_xmin_epoch" / Int32ub * "The epoch of catalog_xmin.",
    )

    def __init__(
        self,
        *,
        send_timestamp: TimestampTz,
        xmin: TransactionId,
        xmin_epoch: int,
        catalog_xmin: TransactionId,
        catalog_xmin_epoch: int,
    ) -> None:
        _hot_standby_feedback_message__send_timestamp(self, send_timestamp)
        _hot_standby_feedback_message__xmin(self, xmin)
        _hot_standby_feedback_message__xmin_epoch(self, xmin_epoch)
        _hot_standby_feedback_message__catalog_xmin(self, catalog_xmin)
        _hot_standby_feedback_message__catalog_xmin_epoch(self, catalog_xmin_epoch)

    @staticmethod
    def _parse(data: bytes, offset: int) -> tuple[HotStandbyFeedbackMessage, int]:
        offset += 1
        send_timestamp, xmin, xmin_epoch, catalog_xmin, catalog_xmin_epoch = _qIIII.unpack_from(data, offset)
        offset += 24
        self = _new(HotStandbyFeedbackMessage)
        _hot_standby_feedback_message__send_timestamp(self, TimestampTz(send_timestamp))
        _hot_standby_feedback_message__xmin(self, xmin)
        _hot_standby_feedback_message__xmin_epoch(self, xmin_epoch)
        _hot_standby_feedback_message__catalog_xmin(self, catalog_xmin)
        _hot_standby_feedback_message__catalog_xmin_epoch(self, catalog_xmin_epoch)
        return self, offset

    def build(self) -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write_of_client is not None and (written := native_write_of_client(self, "")) is not None:
            return written
        try:
            return _BqIIII.pack(
                0x68, self.send_timestamp, self.xmin, self.xmin_epoch, self.catalog_xmin, self.catalog_xmin_epoch
            )
        except _UNFIT as error:
            raise encode_error(WALSENDER, 1, self, error, sender="client") from None


(
    _hot_standby_feedback_message__send_timestamp,
    _hot_standby_feedback_message__xmin,
    _hot_standby_feedback_message__xmin_epoch,
    _hot_standby_feedback_message__catalog_xmin,
    _hot_standby_feedback_message__catalog_xmin_epoch,
) = setters(HotStandbyFeedbackMessage)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class RequestPrimaryStatusUpdate:
    """Asks the server for a Primary status update.

    https://www.postgresql.org/docs/19/protocol-replication.html#PROTOCOL-REPLICATION-STANDBY-WAL-STATUS-REQUEST
    Since PostgreSQL 19.
    """

    tag: ClassVar[Literal["p"]] = "p"

    send_timestamp: TimestampTz
    """The client's clock when it sent the message."""

    struct: ClassVar[DataclassStruct[RequestPrimaryStatusUpdate]] = DataclassStruct(
        "tag" / Const(b"p"),
        "send_timestamp" / Typed(Int64sb, TimestampTz) * "The client's clock when it sent the message.",
    )

    def __init__(self, *, send_timestamp: TimestampTz) -> None:
        _request_primary_status_update__send_timestamp(self, send_timestamp)

    @staticmethod
    def _parse(data: bytes, offset: int) -> tuple[RequestPrimaryStatusUpdate, int]:
        offset += 1
        (send_timestamp,) = _q.unpack_from(data, offset)
        offset += 8
        self = _new(RequestPrimaryStatusUpdate)
        _request_primary_status_update__send_timestamp(self, TimestampTz(send_timestamp))
        return self, offset

    def build(self) -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write_of_client is not None and (written := native_write_of_client(self, "")) is not None:
            return written
        try:
            return _Bq.pack(0x70, self.send_timestamp)
        except _UNFIT as error:
            raise encode_error(WALSENDER, 1, self, error, sender="client") from None


(_request_primary_status_update__send_timestamp,) = setters(RequestPrimaryStatusUpdate)


AnyMessage = (
    XLogData
    | PrimaryKeepaliveMessage
    | PrimaryStatusUpdate
    | StandbyStatusUpdate
    | HotStandbyFeedbackMessage
    | RequestPrimaryStatusUpdate
)
"""Any message of the walsender protocol."""

_DICTIONARIES: Dictionaries[AnyMessage] = Dictionaries(WALSENDER, AnyMessage)
to_dict = _DICTIONARIES.to_dict
from_dict = _DICTIONARIES.from_dict

server_message: Whole[AnyMessage] = Whole(
    Tagged(
        {
            b"w": XLogData.struct,
            b"k": PrimaryKeepaliveMessage.struct,
            b"s": PrimaryStatusUpdate.struct,
        }
    )
)
"""The Struct of any message of the server, which must take all bytes. Within another Struct use its `subcon`."""

client_message: Whole[AnyMessage] = Whole(
    Tagged(
        {
            b"r": StandbyStatusUpdate.struct,
            b"h": HotStandbyFeedbackMessage.struct,
            b"p": RequestPrimaryStatusUpdate.struct,
        }
    )
)
"""The Struct of any message of the client, which must take all bytes. Within another Struct use its `subcon`."""


_Parser = Callable[[bytes, int], tuple[AnyMessage, int]]


_SERVER_MESSAGES: dict[int, _Parser] = {
    ord("w"): XLogData._parse,
    ord("k"): PrimaryKeepaliveMessage._parse,
    ord("s"): PrimaryStatusUpdate._parse,
}

_CLIENT_MESSAGES: dict[int, _Parser] = {
    ord("r"): StandbyStatusUpdate._parse,
    ord("h"): HotStandbyFeedbackMessage._parse,
    ord("p"): RequestPrimaryStatusUpdate._parse,
}

native_read_of_server: Callable[..., AnyMessage | None] | None = native_reader(WALSENDER, 1, globals(), server_message)
native_write_of_server: Callable[..., bytes | None] | None = native_writer(native_read_of_server)
native_read_of_client: Callable[..., AnyMessage | None] | None = native_reader(WALSENDER, 1, globals(), client_message)
native_write_of_client: Callable[..., bytes | None] | None = native_writer(native_read_of_client)


def parse(data: Buffer, *, sender: Literal["server", "client"] = "server") -> AnyMessage:
    """Parse one whole message. Raises DecodeError unless the bytes are exactly one message.

    `sender` is the side that sent the message.
    """
    if type(data) is not bytes:
        data = bytes(memoryview(data))
    messages, read = (
        (_SERVER_MESSAGES, native_read_of_server) if sender == "server" else (_CLIENT_MESSAGES, native_read_of_client)
    )
    if read is not None and (message_read := read(data, "")) is not None:
        return message_read
    try:
        message, end = messages[data[0]](data, 0)
        if end == len(data):
            return message
    except _MALFORMED:
        pass
    raise decode_error(WALSENDER, 1, data, facts={}, sender=sender)


def parse_from(
    data: bytes, offset: int = 0, *, sender: Literal["server", "client"] = "server"
) -> tuple[AnyMessage, int]:
    """Parse the message that begins at an offset, and return it with the offset of its end. A message that takes the
    rest ends with the data, or where its length says. DecodeError counts offsets from the message's first byte.

    `sender` is the side that sent the message.
    """
    if offset < 0:
        raise ValueError(f"the offset {offset} is negative")
    if type(data) is not bytes:
        data = bytes(memoryview(data))
    messages = _SERVER_MESSAGES if sender == "server" else _CLIENT_MESSAGES
    try:
        message, end = messages[data[offset]](data, offset)
        return message, end
    except _MALFORMED:
        pass
    raise decode_error(WALSENDER, 1, data[offset:], facts={}, sender=sender, is_whole=False)
