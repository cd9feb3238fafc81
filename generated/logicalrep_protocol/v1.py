"""Protocol version 1, of PostgreSQL 10 and later.

Whole transactions, sent at their commit.

Generated from the spec by `python -m codegen regen`; do not edit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
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
    NoneOf,
    Rebuild,
    len_,
    this,
)

from logicalrep_protocol.layouts import LOGICALREP
from logicalrep_runtime.any_message import Tagged, Whole
from logicalrep_runtime.constructs import (
    Char,
    DataclassStruct,
    Flags,
    IfPresent,
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
_BBQ = Format(">BBQ")
_BBQQq = Format(">BBQQq")
_BI = Format(">BI")
_BIB = Format(">BIB")
_BQ = Format(">BQ")
_BQQq = Format(">BQQq")
_BQqI = Format(">BQqI")
_Bh = Format(">Bh")
_Bi = Format(">Bi")
_BiB = Format(">BiB")
_I = Format(">I")
_IB = Format(">IB")
_Ii = Format(">Ii")
_Q = Format(">Q")
_QqI = Format(">QqI")
_h = Format(">h")
_i = Format(">i")
_iB = Format(">iB")

_new = object.__new__
_MALFORMED = (LookupError, ValueError, FormatError)
_UNFIT = (LookupError, ValueError, FormatError, TypeError, AttributeError, OverflowError)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Begin:
    """Opens a transaction; its changes follow, then Commit.

    PostgreSQL 10 to 14 send a transaction without published changes too, with nothing between the two.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-BEGIN
    Sent by begin_cb.
    """

    tag: ClassVar[Literal["B"]] = "B"

    final_lsn: Lsn
    """The start of the transaction's commit record, equal to commit_lsn of its Commit.

    Never zero.
    """
    commit_timestamp: TimestampTz
    """The time of the transaction's commit.

    For a transaction replayed from a replication origin, the time at the origin.
    """
    xid: TransactionId
    """The transaction's id."""

    struct: ClassVar[DataclassStruct[Begin]] = DataclassStruct(
        "tag" / Const(b"B"),
        "final_lsn"
        / Typed(NoneOf(Int64ub, (0,)), Lsn)
        * "The start of the transaction's commit record, equal to commit_lsn of its Commit.",
        "commit_timestamp" / Typed(Int64sb, TimestampTz) * "The time of the transaction's commit.",
        "xid" / Int32ub * "The transaction's id.",
    )

    def __init__(self, *, final_lsn: Lsn, commit_timestamp: TimestampTz, xid: TransactionId) -> None:
        _begin__final_lsn(self, final_lsn)
        _begin__commit_timestamp(self, commit_timestamp)
        _begin__xid(self, xid)

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[Begin, int]:
        offset += 1
        final_lsn, commit_timestamp, xid = _QqI.unpack_from(data, offset)
        offset += 20
        if not final_lsn:
            raise MalformedError
        self = _new(Begin)
        _begin__final_lsn(self, lsn_of(final_lsn))
        _begin__commit_timestamp(self, TimestampTz(commit_timestamp))
        _begin__xid(self, xid)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            if not self.final_lsn:
                raise MalformedError
            return _BQqI.pack(0x42, self.final_lsn, self.commit_timestamp, self.xid)
        except _UNFIT as error:
            raise encode_error(LOGICALREP, 1, self, error, encoding=encoding) from None


_begin__final_lsn, _begin__commit_timestamp, _begin__xid = setters(Begin)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Message:
    """Something that pg_logical_emit_message wrote into the log; sent when the option messages is on.

    The server sends a message that is not transactional as soon as it decodes the message: between transactions,
    before older transactions, and even if the transaction that wrote the message rolled back.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-MESSAGE
    Sent by message_cb, stream_message_cb.
    """

    tag: ClassVar[Literal["M"]] = "M"

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
        "flags" / Flags(Int8ub, transactional=1) * "Whether the message belongs to a transaction.",
        "message_lsn" / Typed(Int64ub, Lsn) * "The position of the message in the log.",
        "prefix" / String * "The prefix that the writer of the message chose.",
        "content_length" / Rebuild(Int32sb, len_(this.content)) * "The length of the content in bytes.",
        "content" / Bytes(this.content_length) * "The content.",
    )

    def __init__(
        self,
        *,
        flags: int | None = None,
        transactional: bool | None = None,
        message_lsn: Lsn,
        prefix: str,
        content: bytes,
    ) -> None:
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
            out.append(_BBQ.pack(0x4D, self.flags, self.message_lsn))
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
            raise encode_error(LOGICALREP, 1, self, error, encoding=encoding) from None


_message__flags, _message__message_lsn, _message__prefix, _message__content = setters(Message)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Commit:
    """Closes the transaction that Begin opened.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-COMMIT
    Sent by commit_cb.
    """

    tag: ClassVar[Literal["C"]] = "C"

    commit_lsn: Lsn
    """The start of the commit record."""
    end_lsn: Lsn
    """The end of the commit record, the position to acknowledge once the transaction is safe."""
    commit_timestamp: TimestampTz
    """The time of the transaction's commit.

    For a transaction replayed from a replication origin, the time at the origin.
    """

    struct: ClassVar[DataclassStruct[Commit]] = DataclassStruct(
        "tag" / Const(b"C"),
        "flags" / Const(0, Int8ub) * "Unused so far.",
        "commit_lsn" / Typed(Int64ub, Lsn) * "The start of the commit record.",
        "end_lsn"
        / Typed(Int64ub, Lsn)
        * "The end of the commit record, the position to acknowledge once the transaction is safe.",
        "commit_timestamp" / Typed(Int64sb, TimestampTz) * "The time of the transaction's commit.",
    )

    def __init__(self, *, commit_lsn: Lsn, end_lsn: Lsn, commit_timestamp: TimestampTz) -> None:
        _commit__commit_lsn(self, commit_lsn)
        _commit__end_lsn(self, end_lsn)
        _commit__commit_timestamp(self, commit_timestamp)

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[Commit, int]:
        offset += 1
        flags, commit_lsn, end_lsn, commit_timestamp = _BQQq.unpack_from(data, offset)
        offset += 25
        if flags != 0:
            raise MalformedError
        self = _new(Commit)
        _commit__commit_lsn(self, lsn_of(commit_lsn))
        _commit__end_lsn(self, lsn_of(end_lsn))
        _commit__commit_timestamp(self, TimestampTz(commit_timestamp))
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            return _BBQQq.pack(0x43, 0, self.commit_lsn, self.end_lsn, self.commit_timestamp)
        except _UNFIT as error:
            raise encode_error(LOGICALREP, 1, self, error, encoding=encoding) from None


_commit__commit_lsn, _commit__end_lsn, _commit__commit_timestamp = setters(Commit)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Origin:
    """Says which replication origin the transaction was replayed from.

    Has no xid, not even in a stream block, and is only in the first segment of a stream.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-ORIGIN
    Sent by begin_cb, begin_prepare_cb, stream_start_cb.
    """

    tag: ClassVar[Literal["O"]] = "O"

    origin_lsn: Lsn
    """The position of the transaction's commit on the origin's server.

    Zero if the origin set no position, and always in a stream block, as the transaction has not ended there.
    """
    name: str
    """The origin's name."""

    struct: ClassVar[DataclassStruct[Origin]] = DataclassStruct(
        "tag" / Const(b"O"),
        "origin_lsn" / Typed(Int64ub, Lsn) * "The position of the transaction's commit on the origin's server.",
        "name" / String * "The origin's name.",
    )

    def __init__(self, *, origin_lsn: Lsn, name: str) -> None:
        _origin__origin_lsn(self, origin_lsn)
        _origin__name(self, name)

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[Origin, int]:
        offset += 1
        (origin_lsn,) = _Q.unpack_from(data, offset)
        offset += 8
        end = data.index(0, offset)
        name = data[offset:end].decode(encoding)
        offset = end + 1
        self = _new(Origin)
        _origin__origin_lsn(self, lsn_of(origin_lsn))
        _origin__name(self, name)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            out: list[bytes] = []
            out.append(_BQ.pack(0x4F, self.origin_lsn))
            text = self.name.encode(encoding)
            if 0 in text:
                raise MalformedError
            out.append(text)
            out.append(b"\0")
            return b"".join(out)
        except _UNFIT as error:
            raise encode_error(LOGICALREP, 1, self, error, encoding=encoding) from None


_origin__origin_lsn, _origin__name = setters(Origin)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Column:
    """A column of a Relation."""

    flags: int
    """Whether the column belongs to the replica identity.

    With REPLICA IDENTITY FULL every column is flagged; with NOTHING or a dropped identity index no column is
    flagged. So the flag does not mean the primary key.
    """
    name: str
    """The column's name."""
    type_id: Oid
    """The OID of its data type; a Type message precedes for types that are not built in."""
    type_modifier: int
    """The type's modifier as in pg_attribute.atttypmod, a length or a precision and scale; -1 for none."""

    struct: ClassVar[DataclassStruct[Column]] = DataclassStruct(
        "flags" / Flags(Int8ub, key=1) * "Whether the column belongs to the replica identity.",
        "name" / String * "The column's name.",
        "type_id" / Int32ub * "The OID of its data type; a Type message precedes for types that are not built in.",
        "type_modifier"
        / Int32sb
        * "The type's modifier as in pg_attribute.atttypmod, a length or a precision and scale; -1 for none.",
    )

    def __init__(
        self, *, flags: int | None = None, key: bool | None = None, name: str, type_id: Oid, type_modifier: int
    ) -> None:
        _column__flags(self, flags_of("flags", flags, {"key": (1, key)}))
        _column__name(self, name)
        _column__type_id(self, type_id)
        _column__type_modifier(self, type_modifier)

    @property
    def key(self) -> bool:
        """The mask 0x01 of `flags`."""
        return bool(self.flags & 1)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[Column, int]:
        (flags,) = _B.unpack_from(data, offset)
        offset += 1
        end = data.index(0, offset)
        name = data[offset:end].decode(encoding)
        offset = end + 1
        type_id, type_modifier = _Ii.unpack_from(data, offset)
        offset += 8
        self = _new(Column)
        _column__flags(self, flags)
        _column__name(self, name)
        _column__type_id(self, type_id)
        _column__type_modifier(self, type_modifier)
        return self, offset

    def _pack(self, out: list[bytes], encoding: str) -> None:
        out.append(_B.pack(self.flags))
        text = self.name.encode(encoding)
        if 0 in text:
            raise MalformedError
        out.append(text)
        out.append(b"\0")
        out.append(_Ii.pack(self.type_id, self.type_modifier))


_column__flags, _column__name, _column__type_id, _column__type_modifier = setters(Column)


class ReplicaIdentity(StrEnum):
    """The replica identity, which identifies a row in an Update or Delete, as in pg_class.relreplident."""

    DEFAULT = "d"
    NOTHING = "n"
    FULL = "f"
    INDEX = "i"


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
        relation_id: Oid,
        namespace: str,
        name: str,
        replica_identity: ReplicaIdentity,
        columns: tuple[Column, ...],
    ) -> None:
        _relation__relation_id(self, relation_id)
        _relation__namespace(self, namespace)
        _relation__name(self, name)
        _relation__replica_identity(self, replica_identity)
        _relation__columns(self, columns)

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[Relation, int]:
        offset += 1
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
            out.append(_BI.pack(0x52, self.relation_id))
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
            raise encode_error(LOGICALREP, 1, self, error, encoding=encoding) from None


_relation__relation_id, _relation__namespace, _relation__name, _relation__replica_identity, _relation__columns = (
    setters(Relation)
)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Type:
    """Names a data type that is not built in, ahead of the Relation that uses it.

    Sent only for OIDs of 10000 and above, also for types in pg_catalog, and not again after the type is renamed.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-TYPE
    Sent by change_cb, truncate_cb, stream_change_cb, stream_truncate_cb.
    """

    tag: ClassVar[Literal["Y"]] = "Y"

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
        "type_id" / Int32ub * "The data type's OID; columns refer to the type by it.",
        "namespace" / String * "The type's schema; empty for pg_catalog.",
        "name" / String * "The type's name.",
    )

    def __init__(self, *, type_id: Oid, namespace: str, name: str) -> None:
        _type__type_id(self, type_id)
        _type__namespace(self, namespace)
        _type__name(self, name)

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[Type, int]:
        offset += 1
        (type_id,) = _I.unpack_from(data, offset)
        offset += 4
        end = data.index(0, offset)
        namespace = data[offset:end].decode(encoding)
        offset = end + 1
        end = data.index(0, offset)
        name = data[offset:end].decode(encoding)
        offset = end + 1
        self = _new(Type)
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
            out.append(_BI.pack(0x59, self.type_id))
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
            raise encode_error(LOGICALREP, 1, self, error, encoding=encoding) from None


_type__type_id, _type__namespace, _type__name = setters(Type)


@dataclass(frozen=True, slots=True)
class NullValue:
    """NULL; in a K row also a column outside the key of the row's own table."""

    kind: ClassVar[Literal["n"]] = "n"

    struct: ClassVar[DataclassStruct[NullValue]] = DataclassStruct(
        "kind" / Const(b"n") * "NULL.",
    )


@dataclass(frozen=True, slots=True)
class UnchangedToast:
    """A value stored out of line that the change did not touch; it is not sent, and it is not NULL."""

    kind: ClassVar[Literal["u"]] = "u"

    struct: ClassVar[DataclassStruct[UnchangedToast]] = DataclassStruct(
        "kind" / Const(b"u") * "Unchanged.",
    )


@dataclass(frozen=True, slots=True)
class Text:
    """A value as the type's output function prints it, in client_encoding."""

    kind: ClassVar[Literal["t"]] = "t"

    value: bytes
    """The value."""

    struct: ClassVar[DataclassStruct[Text]] = DataclassStruct(
        "kind" / Const(b"t") * "In text format.",
        "length" / Rebuild(Int32sb, len_(this.value)) * "The length of the value in bytes.",
        "value" / Bytes(this.length) * "The value.",
    )


@dataclass(frozen=True, slots=True)
class Binary:
    """A value as the type's send function writes it; for the option binary.

    With binary = true the server still sends a value as text if its type has no send function.
    """

    kind: ClassVar[Literal["b"]] = "b"

    value: bytes
    """The value."""

    struct: ClassVar[DataclassStruct[Binary]] = DataclassStruct(
        "kind" / Const(b"b") * "In binary format.",
        "length" / Rebuild(Int32sb, len_(this.value)) * "The length of the value in bytes.",
        "value" / Bytes(this.length) * "The value.",
    )


Cell = NullValue | UnchangedToast | Text | Binary
"""The value of one column."""

_CELL: Tagged[Cell] = Tagged(
    {
        b"n": NullValue.struct,
        b"u": UnchangedToast.struct,
        b"t": Text.struct,
        b"b": Binary.struct,
    },
)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class TupleData:
    """The values of a row, one for each column of its Relation, in that order.

    PostgreSQL 15.0 and 15.1 could send more values than the Relation has columns, where a column list was
    published.
    """

    kinds: bytes
    """One byte for each value: n NullValue, u UnchangedToast, t Text, b Binary."""
    values: tuple[bytes | None, ...]
    """The values. None for the kinds n and u."""

    struct: ClassVar[DataclassStruct[TupleData]] = DataclassStruct(
        "column_count" / Rebuild(Int16sb, len_(this.cells)) * "The number of the following columns.",
        "cells" / Array(this.column_count, _CELL) * "The values.",
        cells="cells",
    )

    def __init__(self, *, kinds: bytes, values: tuple[bytes | None, ...]) -> None:
        _tuple_data__kinds(self, kinds)
        _tuple_data__values(self, values)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The values as objects."""
        return tuple(_tuple_data_cell(kind, value) for kind, value in zip(self.kinds, self.values, strict=True))

    def __len__(self) -> int:
        return len(self.kinds)

    def __bool__(self) -> bool:
        """Return True, also for a row without values: only an absent row, None, is false."""
        return True

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.cells)

    def __getitem__(self, index: int) -> Cell:
        return _tuple_data_cell(self.kinds[index], self.values[index])

    @classmethod
    def of(cls, *cells: Cell) -> TupleData:
        """Make the row from values as objects."""
        kinds = "".join(cell.kind for cell in cells).encode("ascii")
        values = tuple(getattr(cell, "value", None) for cell in cells)
        return cls(kinds=kinds, values=values)

    @staticmethod
    def _parse(data: bytes, offset: int, encoding: str) -> tuple[TupleData, int]:
        (column_count,) = _h.unpack_from(data, offset)
        offset += 2
        if column_count < 0:
            raise MalformedError
        kinds: list[int] = []
        values: list[bytes | None] = []
        read_length = _I.unpack_from
        for _ in range(column_count):
            kind = data[offset]
            kinds.append(kind)
            if kind == 0x74 or kind == 0x62:
                # Unsigned, a negative length exceeds the message.
                start = offset + 5
                offset = start + read_length(data, offset + 1)[0]
                values.append(data[start:offset])
            elif kind == 0x6E or kind == 0x75:
                values.append(None)
                offset += 1
            else:
                raise MalformedError
        if offset > len(data):
            raise MalformedError
        self = _new(TupleData)
        _tuple_data__kinds(self, bytes(kinds))
        _tuple_data__values(self, tuple(values))
        return self, offset

    def _pack(self, out: list[bytes], encoding: str) -> None:
        out.append(_h.pack(len(self.kinds)))
        for kind, value in zip(self.kinds, self.values, strict=True):
            if kind == 0x74 or kind == 0x62:
                if type(value) is not bytes:
                    raise MalformedError
                out.append(_Bi.pack(kind, len(value)))
                out.append(value)
            elif (kind == 0x6E or kind == 0x75) and value is None:
                out.append(bytes((kind,)))
            else:
                raise MalformedError


_tuple_data__kinds, _tuple_data__values = setters(TupleData)


def _tuple_data_cell(kind: int, value: bytes | None) -> Cell:
    if kind == 0x6E and value is None:
        return NullValue()
    if kind == 0x75 and value is None:
        return UnchangedToast()
    if kind == 0x74 and value is not None:
        return Text(value)
    if kind == 0x62 and value is not None:
        return Binary(value)
    raise ValueError(f"a cell of kind {kind} cannot have the value {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Insert:
    """A new row.

    The server also sends an Insert for an UPDATE that moves a row into the publication's row filter.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-INSERT
    Sent by change_cb, stream_change_cb.
    """

    tag: ClassVar[Literal["I"]] = "I"

    relation_id: Oid
    """The table, as in its Relation."""
    new: TupleData
    """The new row."""

    struct: ClassVar[DataclassStruct[Insert]] = DataclassStruct(
        "tag" / Const(b"I"),
        "relation_id" / Int32ub * "The table, as in its Relation.",
        "new_kind" / Const(b"N") * "The new row follows.",
        "new" / TupleData.struct * "The new row.",
    )

    def __init__(self, *, relation_id: Oid, new: TupleData) -> None:
        _insert__relation_id(self, relation_id)
        _insert__new(self, new)

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[Insert, int]:
        offset += 1
        relation_id, new_kind = _IB.unpack_from(data, offset)
        offset += 5
        if new_kind != 0x4E:
            raise MalformedError
        new, offset = TupleData._parse(data, offset, encoding)
        self = _new(Insert)
        _insert__relation_id(self, relation_id)
        _insert__new(self, new)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            out: list[bytes] = []
            out.append(_BIB.pack(0x49, self.relation_id, 0x4E))
            if type(self.new) is not TupleData:
                raise MalformedError
            self.new._pack(out, encoding)
            return b"".join(out)
        except _UNFIT as error:
            raise encode_error(LOGICALREP, 1, self, error, encoding=encoding) from None


_insert__relation_id, _insert__new = setters(Insert)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Update:
    """A changed row.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-UPDATE
    Sent by change_cb, stream_change_cb.
    """

    tag: ClassVar[Literal["U"]] = "U"

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
        relation_id: Oid,
        old_kind: Literal["K", "O"] | None = None,
        old: TupleData | None = None,
        new: TupleData,
    ) -> None:
        _update__relation_id(self, relation_id)
        _update__old_kind(self, old_kind)
        _update__old(self, old)
        _update__new(self, new)

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[Update, int]:
        offset += 1
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
            out.append(_BI.pack(0x55, self.relation_id))
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
            raise encode_error(LOGICALREP, 1, self, error, encoding=encoding) from None


_update__relation_id, _update__old_kind, _update__old, _update__new = setters(Update)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Delete:
    """A deleted row.

    The server also sends a Delete for an UPDATE that moves a row out of the publication's row filter.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-DELETE
    Sent by change_cb, stream_change_cb.
    """

    tag: ClassVar[Literal["D"]] = "D"

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
        "relation_id" / Int32ub * "The table, as in its Relation.",
        "old_kind"
        / Char("KO")
        * "K when the old row's key follows, O when the whole old row does (REPLICA IDENTITY FULL).",
        "old" / TupleData.struct * "The old row; of a K row only the key columns count.",
    )

    def __init__(self, *, relation_id: Oid, old_kind: Literal["K", "O"], old: TupleData) -> None:
        _delete__relation_id(self, relation_id)
        _delete__old_kind(self, old_kind)
        _delete__old(self, old)

    @staticmethod
    def _parse(data: bytes, offset: int, streaming: bool, parallel: bool, encoding: str) -> tuple[Delete, int]:
        offset += 1
        relation_id, old_kind = _IB.unpack_from(data, offset)
        offset += 5
        if old_kind != 0x4B and old_kind != 0x4F:
            raise MalformedError
        old, offset = TupleData._parse(data, offset, encoding)
        self = _new(Delete)
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
            if self.old_kind not in ("K", "O"):
                raise MalformedError
            out.append(_BIB.pack(0x44, self.relation_id, ord(self.old_kind)))
            if type(self.old) is not TupleData:
                raise MalformedError
            self.old._pack(out, encoding)
            return b"".join(out)
        except _UNFIT as error:
            raise encode_error(LOGICALREP, 1, self, error, encoding=encoding) from None


_delete__relation_id, _delete__old_kind, _delete__old = setters(Delete)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Truncate:
    """Tables that were emptied by one TRUNCATE.

    Names only the published tables among the tables that the command emptied. PostgreSQL 10 does not send the
    message.

    https://www.postgresql.org/docs/18/protocol-logicalrep-message-formats.html#PROTOCOL-LOGICALREP-MESSAGE-FORMATS-TRUNCATE
    Sent by truncate_cb, stream_truncate_cb.
    """

    tag: ClassVar[Literal["T"]] = "T"

    options: int
    """The options of the command."""
    relation_ids: tuple[Oid, ...]
    """The tables, each as in its Relation."""

    struct: ClassVar[DataclassStruct[Truncate]] = DataclassStruct(
        "tag" / Const(b"T"),
        "relation_count" / Rebuild(Int32sb, len_(this.relation_ids)) * "The number of the following tables.",
        "options" / Flags(Int8ub, cascade=1, restart_identity=2) * "The options of the command.",
        "relation_ids" / Array(this.relation_count, Int32ub) * "The tables, each as in its Relation.",
    )

    def __init__(
        self,
        *,
        options: int | None = None,
        cascade: bool | None = None,
        restart_identity: bool | None = None,
        relation_ids: tuple[Oid, ...],
    ) -> None:
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
        relation_count, options = _iB.unpack_from(data, offset)
        offset += 5
        if not 0 <= relation_count * 4 <= len(data) - offset:
            raise MalformedError
        relation_ids = Format(f">{relation_count}I").unpack_from(data, offset)
        offset += 4 * relation_count
        self = _new(Truncate)
        _truncate__options(self, options)
        _truncate__relation_ids(self, relation_ids)
        return self, offset

    def build(self, *, encoding: str = "utf-8") -> bytes:
        """Return the message's bytes. Raises EncodeError where an attribute does not fit its field."""
        if native_write is not None and (written := native_write(self, encoding)) is not None:
            return written
        try:
            out: list[bytes] = []
            out.append(_BiB.pack(0x54, len(self.relation_ids), self.options))
            out.append(Format(f">{len(self.relation_ids)}I").pack(*self.relation_ids))
            return b"".join(out)
        except _UNFIT as error:
            raise encode_error(LOGICALREP, 1, self, error, encoding=encoding) from None


_truncate__options, _truncate__relation_ids = setters(Truncate)


AnyMessage = Begin | Message | Commit | Origin | Relation | Type | Insert | Update | Delete | Truncate
"""Any message of protocol version 1."""

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
}

native_read: Callable[..., AnyMessage | None] | None = native_reader(LOGICALREP, 1, globals(), message)
native_write: Callable[..., bytes | None] | None = native_writer(native_read)


def parse(data: Buffer, *, streaming: bool = False, parallel: bool = False, encoding: str = "utf-8") -> AnyMessage:
    """Parse one whole message. Raises DecodeError unless the bytes are exactly one message.

    `streaming`: whether the message is between Stream Start and Stream Stop (no effect before version 2).
    `parallel`: whether the session was started with the option streaming = parallel (no effect before version 4).
    `encoding` is the session's client_encoding as a Python codec.
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
    raise decode_error(LOGICALREP, 1, data, facts=facts, encoding=encoding)


def parse_from(
    data: bytes, offset: int = 0, *, streaming: bool = False, parallel: bool = False, encoding: str = "utf-8"
) -> tuple[AnyMessage, int]:
    """Parse the message that begins at an offset, and return it with the offset of its end. A message that takes the
    rest ends with the data, or where its length says. DecodeError counts offsets from the message's first byte.

    `streaming`: whether the message is between Stream Start and Stream Stop (no effect before version 2).
    `parallel`: whether the session was started with the option streaming = parallel (no effect before version 4).
    `encoding` is the session's client_encoding as a Python codec.
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
    raise decode_error(LOGICALREP, 1, data[offset:], facts=facts, encoding=encoding, is_whole=False)
