"""One change of a committed transaction: its operation, its table, and its rows with the five states of a column.

A column's value is text, bytes, NULL, unchanged (stored out of line (TOAST) and not sent), or absent (only the key
was sent). An empty text differs from all the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from logicalrep.transactions.errors import refused, width_reason
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.table_names import TableName
from logicalrep.transactions.tags import BINARY, NULL, UNCHANGED
from logicalrep_protocol.v1 import Binary, NullValue, Text, TupleData
from logicalrep_protocol.versions import Delete, Insert, Message, Relation, Truncate, Update
from logicalrep_runtime.scalars import Lsn, Oid

Op = Literal["insert", "update", "delete", "truncate", "message"]
"""The operation of a change; `message` is a message from pg_logical_emit_message."""

ChangeMessage = Insert | Update | Delete | Truncate | Message

Value = Text | Binary | NullValue
"""A column's value: in text format, in binary format, or NULL."""

_OPS: dict[str, Op] = {"I": "insert", "U": "update", "D": "delete", "T": "truncate", "M": "message"}
_NULL = NullValue()


class Change:
    """One row inserted, updated or deleted, one table truncated, or one logical message.

    Example:
        >>> for change in transaction.changes:
        ...     print(change.op, change.relation, change.before, change.after)
    """

    __slots__ = ("lsn", "message", "ordinal", "relation")

    def __init__(self, ordinal: int, lsn: Lsn, message: ChangeMessage, relation: TableDescription | None) -> None:
        self.ordinal = ordinal
        """The number within the transaction, from 0."""
        self.lsn = lsn
        """The LSN of its record: the start of the record, or the end for a logical message.

        These LSNs are neither unique nor in order; `ordinal` gives the order.
        """
        self.message = message
        """The decoded message. A Truncate names one table here: one of several tables becomes several changes."""
        self.relation = relation
        """The table's description when the change arrived; None for a logical message."""

    def __repr__(self) -> str:
        return f"Change({self.ordinal}, {self.lsn!r}, {self.message!r})"

    @property
    def op(self) -> Op:
        """The operation."""
        return _OPS[self.message.tag]

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that identify a row, as the Relation flags them: the replica identity, all columns with FULL."""
        return () if self.relation is None else self.relation.key

    @property
    def before(self) -> dict[str, Value] | None:
        """The old row by column name: all columns with REPLICA IDENTITY FULL, else the key alone.

        None if the server sent no old row: for an Insert, a Truncate, and an Update that left the key unchanged.
        """
        return None if self.relation is None else _before(self.message, self.relation, self.relation.names)

    @property
    def after(self) -> dict[str, Value] | None:
        """The new row by column name, without the columns in `unchanged`; None without a new row."""
        return None if self.relation is None else _after(self.message, self.relation.names)

    @property
    def unchanged(self) -> tuple[str, ...]:
        """The columns of the new row whose values did not change and were not sent.

        An Insert may have some too, if a row filter made it from an Update.
        """
        return () if self.relation is None else _unchanged(self.message, self.relation.names)


class NamedRows(NamedTuple):
    """The rows of an Insert, Update or Delete by column name, as in `Change`."""

    before: dict[str, Value] | None
    """The old row; None if the server sent none."""
    after: dict[str, Value] | None
    """The new row without the columns in `unchanged`; None for a Delete."""
    unchanged: tuple[str, ...]
    """The columns of the new row whose values did not change and were not sent."""


def named_rows(message: Insert | Update | Delete, relations: Mapping[Oid, Relation]) -> NamedRows:
    """Return a message's rows by column name; `relations` are from the session's `Decoder`.

    Raises TransactionError if no Relation has described the table, or if a row has another number of values.

    Example:
        >>> message = decoder.decode(data)
        >>> if message.tag == "I":
        ...     print(named_rows(message, decoder.relations).after)
    """
    relation = relations.get(message.relation_id)
    if relation is None:
        raise refused(message, None, None, f"no Relation has described table {message.relation_id}")
    names = tuple(column.name for column in relation.columns)
    for row in (getattr(message, "old", None), getattr(message, "new", None)):
        if row is not None and len(row.kinds) != len(names):
            table = str(TableName(relation.namespace or "pg_catalog", relation.name))
            raise refused(message, None, None, width_reason(len(row.kinds), table, len(names)))
    return NamedRows(_before(message, relation, names), _after(message, names), _unchanged(message, names))


def _before(
    message: ChangeMessage, relation: Relation | TableDescription, names: tuple[str, ...]
) -> dict[str, Value] | None:
    if not isinstance(message, Update | Delete) or message.old is None:
        return None
    old = message.old
    return {names[index]: _value(old, index) for index in old_columns(relation, message)}


def _after(message: ChangeMessage, names: tuple[str, ...]) -> dict[str, Value] | None:
    if not isinstance(message, Insert | Update):
        return None
    new = resolved(message)
    kinds = new.kinds
    return {name: _value(new, index) for index, name in enumerate(names) if kinds[index] != UNCHANGED}


def _unchanged(message: ChangeMessage, names: tuple[str, ...]) -> tuple[str, ...]:
    if not isinstance(message, Insert | Update) or UNCHANGED not in message.new.kinds:
        return ()
    kinds = resolved(message).kinds
    return tuple(name for name, kind in zip(names, kinds, strict=True) if kind == UNCHANGED)


def old_columns(relation: Relation | TableDescription, message: Update | Delete) -> range | list[int]:
    """Return the indexes of the old row's columns: all in an O row, the key's columns in a K row.

    The other columns of a K row are sent as NULL, whatever their values. A value in a column without the key's flag
    belongs to the key too: a detached partition's rows have its own key under its former parent's Relation.
    """
    assert message.old is not None
    if message.old_kind == "O":
        return range(len(relation.columns))
    kinds = message.old.kinds
    return [index for index, column in enumerate(relation.columns) if column.key or kinds[index] != NULL]


def resolved(message: Insert | Update) -> TupleData:
    """Take missing values from a whole old row; a K row has none: an unchanged key column is in `before` already."""
    new = message.new
    if UNCHANGED not in new.kinds or not isinstance(message, Update) or message.old is None or message.old_kind != "O":
        return new
    kinds = bytearray(new.kinds)
    values = list(new.values)
    for index, kind in enumerate(new.kinds):
        if kind == UNCHANGED:
            kinds[index] = message.old.kinds[index]
            values[index] = message.old.values[index]
    return TupleData(kinds=bytes(kinds), values=tuple(values))


def _value(row: TupleData, index: int) -> Value:
    kind, value = row.kinds[index], row.values[index]
    if value is None:
        return _NULL
    return Binary(value) if kind == BINARY else Text(value)
