"""Protocol version 2, of PostgreSQL 14 and later.

Large transactions may be streamed in segments before they end.

New or changed: Message, Relation, Type, Insert, Update, Delete, Truncate, StreamStart, StreamStop,
StreamCommit, StreamAbort. The rest equals v1.

Generated from the spec by `python -m codegen regen`; do not edit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct as Format
from struct import error as FormatError
from typing import ClassVar, Literal

from construct import (
    Array,
    Bytes,
    Const,
    Int8ub,
    Int16sb,
    Int32sb,
    Int32ub,
    Int64sb,
    Int64ub,
    Rebuild,
    len_,
    this,
)

from logicalrep_protocol.layouts import LOGICALREP
from logicalrep_protocol.v1 import (
    Begin,
    Binary,
    Cell,
    Column,
    Commit,
    NullValue,
    Origin,
    ReplicaIdentity,
    Text,
    TupleData,
    UnchangedToast,
)
from logicalrep_runtime.any_message import Tagged, Whole
from logicalrep_runtime.constructs import (
    Boolean,
    Char,
    DataclassStruct,
    Flags,
    IfPresent,
    IfSession,
    OptionalChar,
    String,
    Typed,
)
from logicalrep_runtime.dictionaries import Dictionaries
from logicalrep_runtime.encode_faults import encode_error
from logicalrep_runtime.errors import MalformedError
from logicalrep_runtime.layout_walk import decode_error
from logicalrep_runtime.make import flags_of, setters
from logicalrep_runtime.native import reader as native_reader
from logicalrep_runtime.native import writer as native_writer
from logicalrep_runtime.scalars import Buffer, Lsn, Oid, TimestampTz, TransactionId, lsn_of

__all__ = [
    "AnyMessage",
    "Begin",
    "Binary",
    "Cell",
    "Column",
    "Commit",
    "Delete",
    "Insert",
    "Message",
    "NullValue",
    "Origin",
    "Relation",
    "ReplicaIdentity",
    "StreamAbort",
    "StreamCommit",
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

_B = Format(">B")
_BIB = Format(">BIB")
_BIBQQq = Format(">BIBQQq")
_BII = Format(">BII")
_BQ = Format(">BQ")
_Bh = Format(">Bh")
_I = Format(">I")
_IB = Format(">IB")
_IBQQq = Format(">IBQQq")
_II = Format(">II")
_i = Format(">i")
_iB = Format(">iB")

_new = object.__new__
_MALFORMED = (LookupError, ValueError, FormatError)
_UNFIT = (LookupError, ValueError, FormatError, TypeError, AttributeError, OverflowError)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Message:
    """Something that pg_logical_emit_message wrote into the log; sent when the option messages is on.

    The server sends a message that is not transactional as soon as it decodes the message: between transactions,
    before older transactions, and even if the transaction that wrote the message rolled back.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-MESSAGE
    Sent by message_cb, stream_message_cb.
    """

    tag: ClassVar[Literal["M"]] = "M"

    xid: TransactionId | None
    """The id of the streamed transaction.

    Present if the message is between Stream Start and Stream Stop. The top-level transaction's id even if a
    subtransaction wrote the message, unlike the xid of Relation, Type and row changes. So the abort of a
    subtransaction does not identify the messages to drop.
    """
    flags: int
    """Whether the message belongs to a transaction."""
    message_lsn: Lsn
    """The position of the message in the log."""
    prefix: str
    """The prefix that the writer of the message chose."""
    content: bytes
    """The content.

    Raw bytes as they were written, not converted to client_encoding as the prefix is.
    """

    struct: ClassVar[DataclassStruct[Message]] = DataclassStruct(
        "tag" / Const(b"M"),
        "xid" / IfSession("streaming", Int32ub) * "The id of the streamed transaction.",
        "flags" / Flags(Int8ub, transactional=1) * "Whether the message belongs to a transaction.",
        "message_lsn" / Typed(Int64ub, Lsn) * "The position of the message in the log.",
        "prefix" / String * "The prefix that the writer of the message chose.",
        "content_length" / Rebuild(Int32sb, len_(this.content)) * "The length of the content in bytes.",
        "content" / Bytes(this.content_length) * "The content.",
    )

    def __init__(
        self,
        *,
        xid: TransactionId | None = None,
        flags: int | None = None,
        transactional: bool | None = None,
        message_lsn: Lsn,
        prefix: str,
        content: bytes,
    ) -> None:
        _message__xid(self, xid)
        _message__flags(self, flags_of("flags", flags, {"transactional": (1, transactional)}))
        _message__message_lsn(self, message_lsn)
        _message__prefix(self, prefix)
        _message__content(self, content)

    @property
    def transactional(self) -> bool:
        """The mask 0x01 of `flags`."""
        return bool(self.flags & 1)

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[Message, int]:
        offset += 1
        xid: TransactionId | None = None
        if streaming:
            (xid,) = _I.unpack_from(data, offset)
            offset += 4
        flags, message_lsn = _BQ.unpack_from(data, offset)
        offset += 9
        end = data.index(0, offset)
        prefix = data[offset:end].decode(encoding)
        offset = end + 1
        (content_length,) = _i.unpack_from(data, offset)
        offset += 4
        end = offset + content_length
        if not offset <= end <= len(data):
            raise MalformedError
        content = data[offset:end]
        offset = end
        self = _new(Message)
        _message__xid(self, xid)
        _message__flags(self, flags)
        _message__message_lsn(self, lsn_of(message_lsn))
        _message__prefix(self, prefix)
        _message__content(self, content)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            out: list[bytes] = []
            out.append(_B.pack(0x4D))
            if self.xid is not None:
                out.append(_I.pack(self.xid))
            out.append(_BQ.pack(self.flags, self.message_lsn))
            text = self.prefix.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            out.append(_i.pack(len(self.content)))
            if type(self.content) is not bytes:
                raise MalformedError
            out.append(self.content)
            return b"".join(out)
        except _UNFIT as error:
            raise encode_error(LOGICALREP, 2, self, error, encoding=encoding) from None


_message__xid, _message__flags, _message__message_lsn, _message__prefix, _message__content = setters(Message)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Relation:
    """Describes a table; sent before the first change that needs it and again when it may have changed.

    Sent again, unchanged, after commands that merely touch the table (ANALYZE, GRANT) and after the abort of a
    streamed transaction; not sent after the renaming of a schema before PostgreSQL 16. With
    publish_via_partition_root the partition's description follows the root's, although every change names the
    root.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-RELATION
    Sent by change_cb, truncate_cb, stream_change_cb, stream_truncate_cb.
    """

    tag: ClassVar[Literal["R"]] = "R"

    xid: TransactionId | None
    """The id of the streamed transaction or subtransaction.

    Present if the message is between Stream Start and Stream Stop.
    """
    relation_id: Oid
    """The table's OID; changes refer to the table by it."""
    namespace: str
    """The table's schema; empty for pg_catalog."""
    name: str
    """The table's name."""
    replica_identity: ReplicaIdentity
    """The replica identity, which identifies a row in an Update or Delete, as in pg_class.relreplident."""
    columns: tuple[Column, ...]
    """The published columns, in the order of the tuples' values."""

    struct: ClassVar[DataclassStruct[Relation]] = DataclassStruct(
        "tag" / Const(b"R"),
        "xid" / IfSession("streaming", Int32ub) * "The id of the streamed transaction or subtransaction.",
        "relation_id" / Int32ub * "The table's OID; changes refer to the table by it.",
        "namespace" / String * "The table's schema; empty for pg_catalog.",
        "name" / String * "The table's name.",
        "replica_identity"
        / Char(ReplicaIdentity)
        * "The replica identity, which identifies a row in an Update or Delete, as in pg_class.relreplident.",
        "column_count" / Rebuild(Int16sb, len_(this.columns)) * "The number of the following columns.",
        "columns"
        / Array(this.column_count, Column.struct)
        * "The published columns, in the order of the tuples' values.",
    )

    def __init__(
        self,
        *,
        xid: TransactionId | None = None,
        relation_id: Oid,
        namespace: str,
        name: str,
        replica_identity: ReplicaIdentity,
        columns: tuple[Column, ...],
    ) -> None:
        _relation__xid(self, xid)
        _relation__relation_id(self, relation_id)
        _relation__namespace(self, namespace)
        _relation__name(self, name)
        _relation__replica_identity(self, replica_identity)
        _relation__columns(self, columns)

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[Relation, int]:
        offset += 1
        xid: TransactionId | None = None
        if streaming:
            (xid,) = _I.unpack_from(data, offset)
            offset += 4
        (relation_id,) = _I.unpack_from(data, offset)
        offset += 4
        end = data.index(0, offset)
        namespace = data[offset:end].decode(encoding)
        offset = end + 1
        end = data.index(0, offset)
        name = data[offset:end].decode(encoding)
        offset = end + 1
        replica_identity, column_count = _Bh.unpack_from(data, offset)
        offset += 3
        if column_count < 0:
            raise MalformedError
        columns = []
        for _ in range(column_count):
            item, offset = Column._parse(data, offset, encoding)
            columns.append(item)
        self = _new(Relation)
        _relation__xid(self, xid)
        _relation__relation_id(self, relation_id)
        _relation__namespace(self, namespace)
        _relation__name(self, name)
        _relation__replica_identity(self, ReplicaIdentity(chr(replica_identity)))
        _relation__columns(self, tuple(columns))
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            out: list[bytes] = []
            out.append(_B.pack(0x52))
            if self.xid is not None:
                out.append(_I.pack(self.xid))
            out.append(_I.pack(self.relation_id))
            text = self.namespace.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            text = self.name.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            if self.replica_identity not in ("d", "n", "f", "i"):
                raise MalformedError
            out.append(_Bh.pack(ord(self.replica_identity), len(self.columns)))
            for item in self.columns:
                if type(item) is not Column:
                    raise MalformedError
                item._pack(out, encoding)
            return b"".join(out)
        except _UNFIT as error:
            raise encode_error(LOGICALREP, 2, self, error, encoding=encoding) from None


(
    _relation__xid,
    _relation__relation_id,
    _relation__namespace,
    _relation__name,
    _relation__replica_identity,
    _relation__columns,
) = setters(Relation)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Type:
    """Names a data type that is not built in, ahead of the Relation that uses it.

    Sent only for OIDs of 10000 and above, also for types in pg_catalog, and not again after the type is renamed.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-TYPE
    Sent by change_cb, truncate_cb, stream_change_cb, stream_truncate_cb.
    """

    tag: ClassVar[Literal["Y"]] = "Y"

    xid: TransactionId | None
    """The id of the streamed transaction or subtransaction.

    Present if the message is between Stream Start and Stream Stop.
    """
    type_id: Oid
    """The data type's OID; columns refer to the type by it."""
    namespace: str
    """The type's schema; empty for pg_catalog.

    For a domain, the schema of its base type, which is no domain.
    """
    name: str
    """The type's name.

    For a domain, the name of its base type, which is no domain.
    """

    struct: ClassVar[DataclassStruct[Type]] = DataclassStruct(
        "tag" / Const(b"Y"),
        "xid" / IfSession("streaming", Int32ub) * "The id of the streamed transaction or subtransaction.",
        "type_id" / Int32ub * "The data type's OID; columns refer to the type by it.",
        "namespace" / String * "The type's schema; empty for pg_catalog.",
        "name" / String * "The type's name.",
    )

    def __init__(self, *, xid: TransactionId | None = None, type_id: Oid, namespace: str, name: str) -> None:
        _type__xid(self, xid)
        _type__type_id(self, type_id)
        _type__namespace(self, namespace)
        _type__name(self, name)

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[Type, int]:
        offset += 1
        xid: TransactionId | None = None
        if streaming:
            (xid,) = _I.unpack_from(data, offset)
            offset += 4
        (type_id,) = _I.unpack_from(data, offset)
        offset += 4
        end = data.index(0, offset)
        namespace = data[offset:end].decode(encoding)
        offset = end + 1
        end = data.index(0, offset)
        name = data[offset:end].decode(encoding)
        offset = end + 1
        self = _new(Type)
        _type__xid(self, xid)
        _type__type_id(self, type_id)
        _type__namespace(self, namespace)
        _type__name(self, name)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            out: list[bytes] = []
            out.append(_B.pack(0x59))
            if self.xid is not None:
                out.append(_I.pack(self.xid))
            out.append(_I.pack(self.type_id))
            text = self.namespace.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            text = self.name.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            return b"".join(out)
        except _UNFIT as error:
            raise encode_error(LOGICALREP, 2, self, error, encoding=encoding) from None


_type__xid, _type__type_id, _type__namespace, _type__name = setters(Type)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Insert:
    """A new row.

    The server also sends an Insert for an UPDATE that moves a row into the publication's row filter.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-INSERT
    Sent by change_cb, stream_change_cb.
    """

    tag: ClassVar[Literal["I"]] = "I"

    xid: TransactionId | None
    """The id of the streamed transaction, or of the subtransaction that made the change.

    Present if the message is between Stream Start and Stream Stop.
    """
    relation_id: Oid
    """The table, as in its Relation."""
    new: TupleData
    """The new row."""

    struct: ClassVar[DataclassStruct[Insert]] = DataclassStruct(
        "tag" / Const(b"I"),
        "xid"
        / IfSession("streaming", Int32ub)
        * "The id of the streamed transaction, or of the subtransaction that made the change.",
        "relation_id" / Int32ub * "The table, as in its Relation.",
        "new_kind" / Const(b"N") * "The new row follows.",
        "new" / TupleData.struct * "The new row.",
    )

    def __init__(self, *, xid: TransactionId | None = None, relation_id: Oid, new: TupleData) -> None:
        _insert__xid(self, xid)
        _insert__relation_id(self, relation_id)
        _insert__new(self, new)

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[Insert, int]:
        offset += 1
        xid: TransactionId | None = None
        if streaming:
            (xid,) = _I.unpack_from(data, offset)
            offset += 4
        relation_id, new_kind = _IB.unpack_from(data, offset)
        offset += 5
        if new_kind != 0x4E:
            raise MalformedError
        new, offset = TupleData._parse(data, offset, encoding)
        self = _new(Insert)
        _insert__xid(self, xid)
        _insert__relation_id(self, relation_id)
        _insert__new(self, new)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            out: list[bytes] = []
            out.append(_B.pack(0x49))
            if self.xid is not None:
                out.append(_I.pack(self.xid))
            out.append(_IB.pack(self.relation_id, 0x4E))
            if type(self.new) is not TupleData:
                raise MalformedError
            self.new._pack(out, encoding)
            return b"".join(out)
        except _UNFIT as error:
            raise encode_error(LOGICALREP, 2, self, error, encoding=encoding) from None


_insert__xid, _insert__relation_id, _insert__new = setters(Insert)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Update:
    """A changed row.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-UPDATE
    Sent by change_cb, stream_change_cb.
    """

    tag: ClassVar[Literal["U"]] = "U"

    xid: TransactionId | None
    """The id of the streamed transaction, or of the subtransaction that made the change.

    Present if the message is between Stream Start and Stream Stop.
    """
    relation_id: Oid
    """The table, as in its Relation."""
    old_kind: Literal["K", "O"] | None
    """K when the old row's key follows, O when the whole old row does (REPLICA IDENTITY FULL).

    If the key has a value stored out of line, the server sends K even if the key did not change, and the new row
    then has this column unchanged.
    """
    old: TupleData | None
    """The old row; of a K row only the key columns count.

    Present with `old_kind`. A K row has every column of the Relation; the server sends the columns outside the
    key as NULL, for every value. With publish_via_partition_root, the row has the partition's key, while the
    Relation flags the root's key: a flagged column may be NULL here, and a column without a flag may have a
    value.
    """
    new: TupleData
    """The new row."""

    struct: ClassVar[DataclassStruct[Update]] = DataclassStruct(
        "tag" / Const(b"U"),
        "xid"
        / IfSession("streaming", Int32ub)
        * "The id of the streamed transaction, or of the subtransaction that made the change.",
        "relation_id" / Int32ub * "The table, as in its Relation.",
        "old_kind"
        / OptionalChar("KO")
        * "K when the old row's key follows, O when the whole old row does (REPLICA IDENTITY FULL).",
        "old" / IfPresent(this.old_kind, TupleData.struct) * "The old row; of a K row only the key columns count.",
        "new_kind" / Const(b"N") * "The new row follows.",
        "new" / TupleData.struct * "The new row.",
    )

    def __init__(
        self,
        *,
        xid: TransactionId | None = None,
        relation_id: Oid,
        old_kind: Literal["K", "O"] | None = None,
        old: TupleData | None = None,
        new: TupleData,
    ) -> None:
        _update__xid(self, xid)
        _update__relation_id(self, relation_id)
        _update__old_kind(self, old_kind)
        _update__old(self, old)
        _update__new(self, new)

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[Update, int]:
        offset += 1
        xid: TransactionId | None = None
        if streaming:
            (xid,) = _I.unpack_from(data, offset)
            offset += 4
        (relation_id,) = _I.unpack_from(data, offset)
        offset += 4
        old_kind: Literal["K", "O"] | None = None
        old: TupleData | None = None
        if data[offset] == 0x4B:
            old_kind = "K"
        elif data[offset] == 0x4F:
            old_kind = "O"
        if old_kind is not None:
            offset += 1
            old, offset = TupleData._parse(data, offset, encoding)
        (new_kind,) = _B.unpack_from(data, offset)
        offset += 1
        if new_kind != 0x4E:
            raise MalformedError
        new, offset = TupleData._parse(data, offset, encoding)
        self = _new(Update)
        _update__xid(self, xid)
        _update__relation_id(self, relation_id)
        _update__old_kind(self, old_kind)
        _update__old(self, old)
        _update__new(self, new)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            out: list[bytes] = []
            out.append(_B.pack(0x55))
            if self.xid is not None:
                out.append(_I.pack(self.xid))
            out.append(_I.pack(self.relation_id))
            if self.old_kind is not None and self.old is not None:
                if self.old_kind not in ("K", "O"):
                    raise MalformedError
                out.append(self.old_kind.encode("ascii"))
                if type(self.old) is not TupleData:
                    raise MalformedError
                self.old._pack(out, encoding)
            elif self.old_kind is not None or self.old is not None:
                raise MalformedError
            out.append(_B.pack(0x4E))
            if type(self.new) is not TupleData:
                raise MalformedError
            self.new._pack(out, encoding)
            return b"".join(out)
        except _UNFIT as error:
            raise encode_error(LOGICALREP, 2, self, error, encoding=encoding) from None


_update__xid, _update__relation_id, _update__old_kind, _update__old, _update__new = setters(Update)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Delete:
    """A deleted row.

    The server also sends a Delete for an UPDATE that moves a row out of the publication's row filter.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-DELETE
    Sent by change_cb, stream_change_cb.
    """

    tag: ClassVar[Literal["D"]] = "D"

    xid: TransactionId | None
    """The id of the streamed transaction, or of the subtransaction that made the change.

    Present if the message is between Stream Start and Stream Stop.
    """
    relation_id: Oid
    """The table, as in its Relation."""
    old_kind: Literal["K", "O"]
    """K when the old row's key follows, O when the whole old row does (REPLICA IDENTITY FULL)."""
    old: TupleData
    """The old row; of a K row only the key columns count.

    A K row has every column of the Relation; the server sends the columns outside the key as NULL, for every
    value. With publish_via_partition_root, the row has the partition's key, while the Relation flags the root's
    key: a flagged column may be NULL here, and a column without a flag may have a value.
    """

    struct: ClassVar[DataclassStruct[Delete]] = DataclassStruct(
        "tag" / Const(b"D"),
        "xid"
        / IfSession("streaming", Int32ub)
        * "The id of the streamed transaction, or of the subtransaction that made the change.",
        "relation_id" / Int32ub * "The table, as in its Relation.",
        "old_kind"
        / Char("KO")
        * "K when the old row's key follows, O when the whole old row does (REPLICA IDENTITY FULL).",
        "old" / TupleData.struct * "The old row; of a K row only the key columns count.",
    )

    def __init__(
        self, *, xid: TransactionId | None = None, relation_id: Oid, old_kind: Literal["K", "O"], old: TupleData
    ) -> None:
        _delete__xid(self, xid)
        _delete__relation_id(self, relation_id)
        _delete__old_kind(self, old_kind)
        _delete__old(self, old)

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[Delete, int]:
        offset += 1
        xid: TransactionId | None = None
        if streaming:
            (xid,) = _I.unpack_from(data, offset)
            offset += 4
        relation_id, old_kind = _IB.unpack_from(data, offset)
        offset += 5
        if old_kind != 0x4B and old_kind != 0x4F:
            raise MalformedError
        old, offset = TupleData._parse(data, offset, encoding)
        self = _new(Delete)
        _delete__xid(self, xid)
        _delete__relation_id(self, relation_id)
        _delete__old_kind(self, "K" if old_kind == 0x4B else "O")
        _delete__old(self, old)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            out: list[bytes] = []
            out.append(_B.pack(0x44))
            if self.xid is not None:
                out.append(_I.pack(self.xid))
            if self.old_kind not in ("K", "O"):
                raise MalformedError
            out.append(_IB.pack(self.relation_id, ord(self.old_kind)))
            if type(self.old) is not TupleData:
                raise MalformedError
            self.old._pack(out, encoding)
            return b"".join(out)
        except _UNFIT as error:
            raise encode_error(LOGICALREP, 2, self, error, encoding=encoding) from None


_delete__xid, _delete__relation_id, _delete__old_kind, _delete__old = setters(Delete)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Truncate:
    """Tables that were emptied by one TRUNCATE.

    Names only the published tables among the tables that the command emptied. PostgreSQL 10 does not send the
    message.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-TRUNCATE
    Sent by truncate_cb, stream_truncate_cb.
    """

    tag: ClassVar[Literal["T"]] = "T"

    xid: TransactionId | None
    """The id of the streamed transaction, or of the subtransaction that made the change.

    Present if the message is between Stream Start and Stream Stop.
    """
    options: int
    """The options of the command."""
    relation_ids: tuple[Oid, ...]
    """The tables, each as in its Relation."""

    struct: ClassVar[DataclassStruct[Truncate]] = DataclassStruct(
        "tag" / Const(b"T"),
        "xid"
        / IfSession("streaming", Int32ub)
        * "The id of the streamed transaction, or of the subtransaction that made the change.",
        "relation_count" / Rebuild(Int32sb, len_(this.relation_ids)) * "The number of the following tables.",
        "options" / Flags(Int8ub, cascade=1, restart_identity=2) * "The options of the command.",
        "relation_ids" / Array(this.relation_count, Int32ub) * "The tables, each as in its Relation.",
    )

    def __init__(
        self,
        *,
        xid: TransactionId | None = None,
        options: int | None = None,
        cascade: bool | None = None,
        restart_identity: bool | None = None,
        relation_ids: tuple[Oid, ...],
    ) -> None:
        _truncate__xid(self, xid)
        _truncate__options(
            self, flags_of("options", options, {"cascade": (1, cascade), "restart_identity": (2, restart_identity)})
        )
        _truncate__relation_ids(self, relation_ids)

    @property
    def cascade(self) -> bool:
        """The mask 0x01 of `options`."""
        return bool(self.options & 1)

    @property
    def restart_identity(self) -> bool:
        """The mask 0x02 of `options`."""
        return bool(self.options & 2)

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[Truncate, int]:
        offset += 1
        xid: TransactionId | None = None
        if streaming:
            (xid,) = _I.unpack_from(data, offset)
            offset += 4
        relation_count, options = _iB.unpack_from(data, offset)
        offset += 5
        if not 0 <= relation_count * 4 <= len(data) - offset:
            raise MalformedError
        relation_ids = Format(f">{relation_count}I").unpack_from(data, offset)
        offset += 4 * relation_count
        self = _new(Truncate)
        _truncate__xid(self, xid)
        _truncate__options(self, options)
        _truncate__relation_ids(self, relation_ids)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            out: list[bytes] = []
            out.append(_B.pack(0x54))
            if self.xid is not None:
                out.append(_I.pack(self.xid))
            out.append(_iB.pack(len(self.relation_ids), self.options))
            out.append(Format(f">{len(self.relation_ids)}I").pack(*self.relation_ids))
            return b"".join(out)
        except _UNFIT as error:
            raise encode_error(LOGICALREP, 2, self, error, encoding=encoding) from None


_truncate__xid, _truncate__options, _truncate__relation_ids = setters(Truncate)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class StreamStart:
    """Opens a segment of a transaction that is still in progress.

    After a reconnection the server sends a streamed transaction again from its first segment, without a Stream
    Abort.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-STREAM-START
    Sent by stream_start_cb.
    """

    tag: ClassVar[Literal["S"]] = "S"

    xid: TransactionId
    """The id of the top-level transaction."""
    first_segment: bool
    """Whether the segment is the transaction's first segment."""

    struct: ClassVar[DataclassStruct[StreamStart]] = DataclassStruct(
        "tag" / Const(b"S"),
        "xid" / Int32ub * "The id of the top-level transaction.",
        "first_segment" / Boolean * "Whether the segment is the transaction's first segment.",
    )

    def __init__(self, *, xid: TransactionId, first_segment: bool) -> None:
        _stream_start__xid(self, xid)
        _stream_start__first_segment(self, first_segment)

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[StreamStart, int]:
        offset += 1
        xid, first_segment = _IB.unpack_from(data, offset)
        offset += 5
        if first_segment > 1:
            raise MalformedError
        self = _new(StreamStart)
        _stream_start__xid(self, xid)
        _stream_start__first_segment(self, bool(first_segment))
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            if self.first_segment not in (0, 1):
                raise MalformedError
            return _BIB.pack(0x53, self.xid, self.first_segment)
        except _UNFIT as error:
            raise encode_error(LOGICALREP, 2, self, error, encoding=encoding) from None


_stream_start__xid, _stream_start__first_segment = setters(StreamStart)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class StreamStop:
    """Closes the segment that Stream Start opened.

    May follow Stream Start at once.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-STREAM-STOP
    Sent by stream_stop_cb.
    """

    tag: ClassVar[Literal["E"]] = "E"

    struct: ClassVar[DataclassStruct[StreamStop]] = DataclassStruct(
        "tag" / Const(b"E"),
    )

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[StreamStop, int]:

        self = _new(StreamStop)

        return self, offset + 1

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            return _B.pack(0x45)
        except _UNFIT as error:
            raise encode_error(LOGICALREP, 2, self, error, encoding=encoding) from None


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class StreamCommit:
    """Commits a streamed transaction.

    Comes after the last Stream Stop, never inside a segment.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-STREAM-COMMIT
    Sent by stream_commit_cb.
    """

    tag: ClassVar[Literal["c"]] = "c"

    xid: TransactionId
    """The id of the top-level transaction."""
    commit_lsn: Lsn
    """The start of the commit record."""
    end_lsn: Lsn
    """The end of the commit record, the position to acknowledge once the transaction is safe."""
    commit_timestamp: TimestampTz
    """The time of the transaction's commit.

    For a transaction replayed from a replication origin, the time at the origin.
    """

    struct: ClassVar[DataclassStruct[StreamCommit]] = DataclassStruct(
        "tag" / Const(b"c"),
        "xid" / Int32ub * "The id of the top-level transaction.",
        "flags" / Const(0, Int8ub) * "Unused so far.",
        "commit_lsn" / Typed(Int64ub, Lsn) * "The start of the commit record.",
        "end_lsn"
        / Typed(Int64ub, Lsn)
        * "The end of the commit record, the position to acknowledge once the transaction is safe.",
        "commit_timestamp" / Typed(Int64sb, TimestampTz) * "The time of the transaction's commit.",
    )

    def __init__(self, *, xid: TransactionId, commit_lsn: Lsn, end_lsn: Lsn, commit_timestamp: TimestampTz) -> None:
        _stream_commit__xid(self, xid)
        _stream_commit__commit_lsn(self, commit_lsn)
        _stream_commit__end_lsn(self, end_lsn)
        _stream_commit__commit_timestamp(self, commit_timestamp)

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[StreamCommit, int]:
        offset += 1
        xid, flags, commit_lsn, end_lsn, commit_timestamp = _IBQQq.unpack_from(data, offset)
        offset += 29
        if flags != 0:
            raise MalformedError
        self = _new(StreamCommit)
        _stream_commit__xid(self, xid)
        _stream_commit__commit_lsn(self, lsn_of(commit_lsn))
        _stream_commit__end_lsn(self, lsn_of(end_lsn))
        _stream_commit__commit_timestamp(self, TimestampTz(commit_timestamp))
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            return _BIBQQq.pack(0x63, self.xid, 0, self.commit_lsn, self.end_lsn, self.commit_timestamp)
        except _UNFIT as error:
            raise encode_error(LOGICALREP, 2, self, error, encoding=encoding) from None


_stream_commit__xid, _stream_commit__commit_lsn, _stream_commit__end_lsn, _stream_commit__commit_timestamp = setters(
    StreamCommit
)


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

    struct: ClassVar[DataclassStruct[StreamAbort]] = DataclassStruct(
        "tag" / Const(b"A"),
        "xid" / Int32ub * "The id of the top-level transaction.",
        "subxid" / Int32ub * "The id of the subtransaction; equal to xid if the whole transaction is rolled back.",
    )

    def __init__(self, *, xid: TransactionId, subxid: TransactionId) -> None:
        _stream_abort__xid(self, xid)
        _stream_abort__subxid(self, subxid)

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[StreamAbort, int]:
        offset += 1
        xid, subxid = _II.unpack_from(data, offset)
        offset += 8
        self = _new(StreamAbort)
        _stream_abort__xid(self, xid)
        _stream_abort__subxid(self, subxid)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            return _BII.pack(0x41, self.xid, self.subxid)
        except _UNFIT as error:
            raise encode_error(LOGICALREP, 2, self, error, encoding=encoding) from None


_stream_abort__xid, _stream_abort__subxid = setters(StreamAbort)


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
)
"""Any message of protocol version 2."""

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
}

native_read: Callable[..., AnyMessage | None] | None = native_reader(LOGICALREP, 2, globals(), message)
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
    raise decode_error(LOGICALREP, 2, data, facts=facts, encoding=encoding)


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
    raise decode_error(LOGICALREP, 2, data[offset:], facts=facts, encoding=encoding, is_whole=False)
