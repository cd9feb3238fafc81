"""The rows of the change feed, made change by change: the readable oracle of the columnar makers."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa

from logicalrep.arrow.feed.texts import Texts, refuse_texts
from logicalrep.arrow.row_form import Reads
from logicalrep.transactions.changes import Change, old_columns, resolved
from logicalrep.transactions.logs import warn
from logicalrep.transactions.relations import SchemaChange, TableDescription, added_columns
from logicalrep.transactions.tags import BINARY, UNCHANGED
from logicalrep.transactions.transaction import Event, NonTransactionalMessage, PreparedTransaction, Transaction
from logicalrep_protocol.v1 import TupleData
from logicalrep_protocol.versions import Delete, Insert, Message, Update
from logicalrep_runtime.scalars import UNIX_EPOCH
from tests.arrow.oracle.arrays import Lists, MapArrays


def signed(lsn: int) -> int:
    """Return an LSN as Spark's bigint with the same 64 bits."""
    return lsn if lsn < 1 << 63 else lsn - (1 << 64)


class Builder(Protocol):
    """Collects changes, and makes record batches of them."""

    rows: int
    """The number of rows."""
    size: int
    """The approximate bytes of their values."""

    def add(self, change: Change, transaction: Transaction | PreparedTransaction) -> None:
        """Add a change."""

    def add_schema_change(self, change: SchemaChange, transaction: Transaction | PreparedTransaction) -> None:
        """Add a changed description of a table."""

    def add_message(self, event: NonTransactionalMessage) -> None:
        """Add a non-transactional message."""

    def finish(self) -> Any:
        """Return the rows as a record batch, and empty the builder."""


def batches(events: Iterable[Event], builder: Builder, *, rows: int, size: int = 16 << 20) -> Iterator[Any]:
    """Yield record batches of committed changes, of at most `rows` rows and about `size` bytes.

    Raises TransactionError for the commit of a prepared transaction whose changes came before the first message.
    """
    for batch in _full_batches(events, builder, rows, size):
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def _full_batches(events: Iterable[Event], builder: Builder, rows: int, size: int) -> Iterator[Any]:
    def is_full() -> bool:
        return builder.rows >= rows or builder.size >= size

    for event in events:
        if isinstance(event, Transaction | PreparedTransaction):
            with event:
                for item in event.events():
                    if isinstance(item, SchemaChange):
                        builder.add_schema_change(item, event)
                    else:
                        builder.add(item, event)
                    if is_full():
                        yield builder.finish()
        elif isinstance(event, NonTransactionalMessage):
            builder.add_message(event)
            if is_full():
                yield builder.finish()
        elif event.error is not None:
            raise event.error
    if builder.rows:
        yield builder.finish()


class FeedBuilder:
    """Rows of the change feed."""

    def __init__(self, schema: Any, reads: Reads, *, relations: bool = False, encoding: str = "utf-8") -> None:
        """Make one for the feed's Arrow schema; `relations` says whether changed table descriptions become rows."""
        self._schema = schema
        self._reads = reads
        self._relations = relations
        self._texts = Texts(encoding)
        self._transcoded_from = None if encoding == "utf-8" else encoding
        self._wanted: dict[int, tuple[TableDescription, bool]] = {}
        self._clear()

    def _clear(self) -> None:
        self.rows = 0
        self.size = 0
        self._plain: list[tuple[Any, ...]] = []
        self._old_rows = MapArrays()
        self._new_rows = MapArrays()
        self._key = Lists()
        self._unchanged = Lists()

    def add(self, change: Change, transaction: Transaction | PreparedTransaction) -> None:
        relation = change.relation
        if relation is None:
            assert isinstance(change.message, Message)
            self._message(change.message)
            self._append("message", None, change.lsn, change.ordinal, transaction)
            return
        if not self._is_wanted(relation):
            return
        message = change.message
        new: TupleData | None = None
        old: TupleData | None = None
        if isinstance(message, Insert | Update):
            new = resolved(message)
        if isinstance(message, Update | Delete):
            old = message.old
        if old is None:
            self._old_rows.append_null()
        elif isinstance(message, Update | Delete) and message.old_kind == "O":
            self._row(self._old_rows, relation, old, None)
        else:
            assert isinstance(message, Update | Delete)
            self._row(self._old_rows, relation, old, old_columns(relation, message))
        if new is None:
            self._new_rows.append_null()
            self._unchanged.append(())
        elif UNCHANGED in new.kinds:
            kinds = new.kinds
            self._row(self._new_rows, relation, new, [at for at, kind in enumerate(kinds) if kind != UNCHANGED])
            self._unchanged.append(
                [name for name, kind in zip(relation.names, kinds, strict=True) if kind == UNCHANGED]
            )
        else:
            self._row(self._new_rows, relation, new, None)
            self._unchanged.append(())
        self._key.append(relation.key)
        self._append(change.op, relation, change.lsn, change.ordinal, transaction)

    def add_schema_change(self, change: SchemaChange, transaction: Transaction | PreparedTransaction) -> None:
        if not self._relations or not self._is_wanted(change.new):
            return
        if change.old is not None:
            warn(added_columns(change.old, change.new))
        for rows, relation in ((self._old_rows, change.old), (self._new_rows, change.new)):
            if relation is None:
                rows.append_null()
            else:
                types = self._texts.columns(relation)
                rows.append(relation.names, [column.type.name.encode() for column in types])
        self._key.append(change.new.key)
        self._unchanged.append(())
        self._append("relation", change.new, None, change.ordinal, transaction)

    def add_message(self, event: NonTransactionalMessage) -> None:
        self._message(event.message)
        self._append("message", None, event.lsn, None, None)

    def finish(self) -> Any:
        field = self._schema.field
        columns = list(zip(*self._plain, strict=True)) if self._plain else [()] * 11
        arrays: dict[str, Any] = {
            name: pa.array(column, field(name).type) for name, column in zip(_PLAIN, columns, strict=True)
        }
        with refuse_texts():
            arrays["before"] = self._old_rows.finish(field("before").type)
            arrays["after"] = self._new_rows.finish(field("after").type)
        arrays["key"] = self._key.finish(field("key").type)
        arrays["unchanged"] = self._unchanged.finish(field("unchanged").type)
        batch = pa.RecordBatch.from_arrays([arrays[name] for name in self._schema.names], schema=self._schema)
        self._clear()
        return batch

    def _is_wanted(self, relation: TableDescription) -> bool:
        cached = self._wanted.get(id(relation))
        if cached is None or cached[0] is not relation:
            cached = self._wanted[id(relation)] = relation, self._reads(relation.schema, relation.name)
        return cached[1]

    def _row(self, rows: MapArrays, relation: TableDescription, row: TupleData, columns: Sequence[int] | None) -> None:
        values: Sequence[bytes | None] = row.values
        if BINARY in row.kinds:
            values = self._texts.of(relation, row)
        elif self._transcoded_from is not None:
            encoding = self._transcoded_from
            values = [None if value is None else value.decode(encoding).encode() for value in values]
        names: Sequence[str] = relation.names
        if columns is not None:
            names = [names[at] for at in columns]
            values = [values[at] for at in columns]
        rows.append(names, values)
        self.size += sum(map(len, filter(None, values)))

    def _message(self, message: Message) -> None:
        self._old_rows.append_null()
        self._new_rows.append(*message_columns(message))
        self.size += len(message.content)
        self._key.append(())
        self._unchanged.append(())

    def _append(
        self,
        op: str,
        relation: TableDescription | None,
        lsn: int | None,
        ordinal: int | None,
        transaction: Transaction | PreparedTransaction | None,
    ) -> None:
        self.rows += 1
        commit: tuple[Any, ...]
        described = (None, None, None) if relation is None else (relation.schema, relation.name, relation.relation_id)
        if isinstance(transaction, Transaction):
            moment = transaction.commit_timestamp + UNIX_EPOCH
            commit = (
                signed(transaction.commit_lsn),
                moment,
                transaction.xid,
                ordinal,
                transaction.origin,
                transaction.gid,
            )
        else:
            commit = (None,) * 6
        self._plain.append((op, *described, None if lsn is None else signed(lsn), *commit))


# The columns in the order of FeedBuilder._append.
_PLAIN = (
    "op",
    "schema",
    "table",
    "relation_id",
    "lsn",
    "commit_lsn",
    "commit_timestamp",
    "xid",
    "ordinal",
    "origin",
    "gid",
)


def message_columns(message: Message) -> tuple[tuple[str, ...], tuple[bytes, ...]]:
    """Return a logical message's entries in `after`: prefix, and content as text, or base64 if it is not text."""
    try:
        message.content.decode()
    except UnicodeDecodeError:
        return ("prefix", "content_base64"), (message.prefix.encode(), base64.b64encode(message.content))
    return ("prefix", "content"), (message.prefix.encode(), message.content)
