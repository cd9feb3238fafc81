"""The change feed in columns, a chunk of messages at a time, from transactions sent whole (see `batch_intake`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.arrow.feed.maps import Names, RowMaps, TableNames, WantedRows
from logicalrep.arrow.feed.rare_rows import description_columns, feed_row, message_columns, table_columns
from logicalrep.arrow.feed.texts import Texts
from logicalrep.arrow.loops.transactions import (
    FeedColumns,
    Messages,
    TableArrays,
    Transactions,
    fill_rows,
    number_tables,
)
from logicalrep.arrow.message_batch import ROW_CHANGE, MessageBatch
from logicalrep.arrow.positioned_rows import PositionedRows
from logicalrep.arrow.row_form import RowForm
from logicalrep.arrow.table_numbers import TableNumbers
from logicalrep.arrow.transaction_index import IndexedBatch, TransactionIndex
from logicalrep.transactions.errors import TransactionError
from logicalrep.transactions.logs import warn
from logicalrep.transactions.relations import DeliveredRelations, Relations, TableDescription, added_columns
from logicalrep.transactions.tags import MESSAGE, RELATION, TRUNCATE, TYPE
from logicalrep_protocol import v1
from logicalrep_protocol.columnar import LocatedBatch, Session, locate_batch
from logicalrep_runtime.columnar.located import Int64s, room

_OPS = Names(["insert", "update", "delete"])
Numbers = NDArray[np.int32]
_MOST_VALUES = 1 << 22


class ColumnarFeed:
    def __init__(self, form: RowForm, session: Session, *, start: int | None, end: int | None) -> None:
        self._schema = form.schema
        self._reads = form.reads
        self._session = session
        self._runs = TransactionIndex(start, end)
        self._texts = Texts("utf-8")
        self._relations = Relations()
        # The number of each table's current description by OID; the second table is for loops.
        self._described: dict[int, int] = {}
        self._numbers = TableNumbers()
        # The last Relation's bytes by OID; none after a Type, which may give them another meaning.
        self._last_messages: dict[int, bytes] = {}
        # All descriptions so far, and the facts on them that rows need, by their number.
        self._descriptions: list[TableDescription] = []
        self._wanted: list[bool] = []
        self._tables: _TableFacts | None = None
        # The descriptions that changes have used, if the feed has a row for each new one.
        self._used = DeliveredRelations(()) if form.relations else None

    @property
    def relations(self) -> list[TableDescription]:
        return [self._descriptions[number] for number in self._described.values()]

    def rows(self, messages: MessageBatch, gids: Mapping[int, str] | None = None) -> Iterator[PositionedRows]:
        stop = self._runs.supported(messages.tags)
        if stop:
            with locate_batch(messages.array[:stop], self._session) as batch:
                self._session = batch.session
                yield from self._rows_of(messages[:stop], batch, gids or {})
        if stop < len(messages):
            self._runs.refuse(stop, int(messages.tags[stop]))

    def _rows_of(
        self, messages: MessageBatch, batch: LocatedBatch, gids: Mapping[int, str]
    ) -> Iterator[PositionedRows]:
        tags, lsns = messages.tags, messages.lsns
        run = self._runs.next(messages, batch)
        table_of, truncated = self._bind(batch, messages)
        assert self._tables is not None
        maps = RowMaps(batch, self._tables.for_maps, self._texts)
        changes = ROW_CHANGE.take(tags) & run.in_range
        wanted = changes
        if not all(self._wanted):
            wanted = changes & np.asarray([*self._wanted, True])[table_of]
        rare = np.flatnonzero((tags == MESSAGE) | (tags == TRUNCATE))
        if self._used is not None:
            rare = np.union1d(rare, _first_uses(table_of, changes))
        position = 0
        for at in [*rare.tolist(), len(tags)]:
            chosen = np.flatnonzero(wanted[position:at]) + position
            for part in self._parts(chosen, table_of):
                yield self._plain(maps, part, messages, table_of, run, gids)
            position = at
            if at == len(tags):
                break
            if changes[at]:
                # The row itself is in the next part.
                yield from self._new_description(self._descriptions[table_of[at]], run, at, gids)
            else:
                yield from self._take_rare(
                    messages.data(at), int(lsns[at]) % (1 << 64), run, at, truncated.get(at), gids
                )

    def _parts(self, chosen: Int64s, table_of: Numbers) -> list[Int64s]:
        assert self._tables is not None
        widths = self._tables.for_rows.widths
        if not len(chosen) or len(chosen) * int(widths.max()) <= _MOST_VALUES:
            return [chosen] if len(chosen) else []
        values = np.cumsum(widths[table_of[chosen]])
        stops = np.searchsorted(values, np.arange(_MOST_VALUES, int(values[-1]), _MOST_VALUES), side="right")
        return [part for part in np.split(chosen, stops) if len(part)]

    def _bind(self, batch: LocatedBatch, messages: MessageBatch) -> tuple[Numbers, dict[int, list[TableDescription]]]:
        """Return the rows' description numbers (without a table: the number of descriptions), and Truncates' tables."""
        tags = np.ascontiguousarray(messages.tags)
        table_of = np.full(len(tags), -1, dtype=np.int32)
        oids = batch.located.fixed.get(batch.numbers["relation_id"], table_of)
        truncated: dict[int, list[TableDescription]] = {}
        position = 0
        for at in [*np.flatnonzero((tags == RELATION) | (tags == TYPE) | (tags == TRUNCATE)).tolist(), len(tags)]:
            unknown = number_tables(tags, oids.view(np.uint32), position, at, self._numbers.buckets, table_of)
            if unknown >= 0:
                raise _not_described(int(oids.view(np.uint32)[unknown]))
            if at < len(tags) and tags[at] != TRUNCATE:
                self._describe(int(oids[at]), messages.data(at))
            elif at < len(tags):
                message = v1.parse(messages.data(at))
                assert isinstance(message, v1.Truncate)
                truncated[at] = [self._descriptions[self._number(oid)] for oid in message.relation_ids]
            position = at + 1
        if self._tables is None or len(self._tables.for_rows.oids) != len(self._descriptions):
            self._tables = _TableFacts(self._descriptions)
        return table_of, truncated

    def _number(self, oid: int) -> int:
        if oid not in self._described:
            raise _not_described(oid)
        return self._described[oid]

    def _describe(self, oid: int, data: bytes) -> None:
        if self._last_messages.get(oid) == data:
            # Servers repeat descriptions often.
            return
        message = v1.parse(data)
        if isinstance(message, v1.Type):
            self._relations.name_type(message)
            self._last_messages.clear()
            return
        self._last_messages[oid] = data
        assert isinstance(message, v1.Relation)
        self._relations.describe(message, None)
        relation = self._relations.find(message.relation_id, None)
        assert relation is not None
        number = self._described.get(relation.relation_id)
        if number is None or self._descriptions[number] is not relation:
            self._described[relation.relation_id] = self._numbers[relation.relation_id] = len(self._descriptions)
            self._descriptions.append(relation)
            self._wanted.append(self._reads(relation.schema, relation.name))

    def _plain(
        self,
        maps: RowMaps,
        chosen: Int64s,
        messages: MessageBatch,
        table_of: Numbers,
        run: IndexedBatch,
        gids: Mapping[int, str],
    ) -> PositionedRows:
        assert self._tables is not None
        tables, count = self._tables, len(chosen)
        columns = FeedColumns(
            *room(2 * count, np.int32).reshape(2, count), *room(6 * count, np.int64).reshape(6, count)
        )
        values, names = fill_rows(
            chosen,
            Messages(messages.tags, messages.lsns, table_of, run.transaction_of, run.ordinals),
            tables.for_rows,
            Transactions(run.final_lsn, run.commit_timestamp, run.xid),
            columns,
        )
        rows = WantedRows(chosen, columns.tables, values, names)
        field = self._schema.field
        after, unchanged = maps.after(rows, field("after").type, field("unchanged").type)
        origin = pa.nulls(count, pa.string())
        if run.origins:
            origins = [run.origins.get(number) for number in range(len(run.xid))]
            origin = pa.array(origins, pa.string()).take(pa.array(run.transaction_of[chosen]))
        arrays = {
            "op": _OPS.take(columns.ops, pa.string()),
            "schema": tables.schemas.take(columns.tables, pa.string()),
            "table": tables.names.take(columns.tables, pa.string()),
            "relation_id": pa.array(columns.relation_id),
            "before": maps.before(rows, field("before").type),
            "after": after,
            "key": tables.for_maps.keys(columns.tables, field("key").type),
            "unchanged": unchanged,
            "lsn": pa.array(columns.lsn),
            "commit_lsn": pa.array(columns.commit_lsn),
            "commit_timestamp": pa.array(columns.commit_timestamp).cast(field("commit_timestamp").type),
            "xid": pa.array(columns.xid),
            "ordinal": pa.array(columns.ordinal),
            "origin": origin,
            "gid": pa.nulls(count, pa.string()),
        }
        if gids:
            arrays["gid"] = pa.array(map(gids.get, columns.commit_lsn.tolist()), pa.string())
        batch = pa.RecordBatch.from_arrays([arrays[name] for name in self._schema.names], schema=self._schema)
        return PositionedRows(batch, columns.commit_lsn)

    def _take_rare(
        self,
        data: bytes,
        lsn: int,
        run: IndexedBatch,
        index: int,
        truncated: list[TableDescription] | None,
        gids: Mapping[int, str],
    ) -> Iterator[PositionedRows]:
        message = v1.parse(data)
        if isinstance(message, v1.Message) and not message.transactional:
            if self._runs.start < message.message_lsn:
                row = feed_row(self._schema, "message", lsn, **message_columns(message))
                yield _positioned(row, (int(message.message_lsn) - 1) % (1 << 64))
        elif not run.in_range[index]:
            return
        elif isinstance(message, v1.Message):
            yield self._row("message", lsn, run, index, gids, **message_columns(message))
        else:
            assert truncated is not None
            for relation in truncated:
                yield from self._new_description(relation, run, index, gids)
                if self._reads(relation.schema, relation.name):
                    yield self._row("truncate", lsn, run, index, gids, **table_columns(relation))
                run.ordinals[index] += 1

    def _new_description(
        self, relation: TableDescription, run: IndexedBatch, index: int, gids: Mapping[int, str]
    ) -> Iterator[PositionedRows]:
        """Yield a row if the change is the first with this description and the feed has such rows."""
        if self._used is None:
            return
        for change in self._used.deliver([(0, relation)]):
            if self._reads(relation.schema, relation.name):
                if change.old is not None:
                    warn(added_columns(change.old, relation))
                types = description_columns(change.old, relation, self._texts)
                yield self._row("relation", None, run, index, gids, **types)

    def _row(
        self, op: str, lsn: int | None, run: IndexedBatch, index: int, gids: Mapping[int, str], **values: Any
    ) -> PositionedRows:
        number = int(run.transaction_of[index])
        commit_lsn = int(run.final_lsn[number])
        row = feed_row(
            self._schema,
            op,
            lsn,
            commit_lsn=commit_lsn,
            commit_timestamp=int(run.commit_timestamp[number]),
            xid=int(run.xid[number]),
            ordinal=int(run.ordinals[index]),
            origin=run.origins.get(number),
            gid=gids.get(commit_lsn),
            **values,
        )
        return _positioned(row, commit_lsn % (1 << 64))


def _positioned(row: pa.RecordBatch, position: int) -> PositionedRows:
    return PositionedRows(row, np.array([position], np.uint64).view(np.int64))


def _first_uses(table_of: Numbers, changes: NDArray[np.bool_]) -> Int64s:
    indices = np.flatnonzero(changes)
    return indices[np.unique(table_of[indices], return_index=True)[1]]


def _not_described(oid: int) -> TransactionError:
    return TransactionError("message", None, None, f"no Relation has described the table with OID {oid}")


class _TableFacts:
    def __init__(self, descriptions: list[TableDescription]) -> None:
        self.schemas = Names([relation.schema for relation in descriptions])
        self.names = Names([relation.name for relation in descriptions])
        self.for_maps = TableNames(descriptions)
        oids = np.array([relation.relation_id for relation in descriptions], np.int64)
        self.for_rows = TableArrays(oids, self.for_maps.columns.widths, self.for_maps.name_sizes)
