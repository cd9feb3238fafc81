"""The change feed a chunk of messages at a time, in columns: what `feed` makes row by row, many times faster.

It reads sessions in which transactions come whole, as in peek mode and without streaming. What is rare (logical
messages, truncates) is made row by row in between; `UnsupportedError` says that the rest of a session has to be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from logicalrep import Lsn, Oid, TimestampTz, TransactionId, v1
from logicalrep.columnar import Session, decode_batch
from logicalrep_pipeline.changes import BINARY, NULL, UNCHANGED, Change
from logicalrep_pipeline.errors import TransactionError
from logicalrep_pipeline.relations import Relation, Relations
from logicalrep_pipeline.spark.feed import EPOCH, FeedBuilder, Reads, Texts
from logicalrep_pipeline.spark.runs import D, I, M, R, Run, Runs, T, U, Y, preamble
from logicalrep_pipeline.spill import ChangeLog
from logicalrep_pipeline.transactions import NonTransactionalMessage, Transaction

_OPS = pa.array(["insert", "update", "delete"], pa.string())
_OP_OF_TAG = np.zeros(256, dtype=np.int32)
_OP_OF_TAG[[I, U, D]] = 0, 1, 2


class ColumnarFeed:
    """Makes record batches of the feed from chunks of messages, which may end anywhere."""

    def __init__(
        self,
        schema: Any,
        reads: Reads,
        session: Session,
        *,
        start: int | None,
        end: int | None,
    ) -> None:
        """For the feed's Arrow schema; what commits at or after `start` and before `end`."""
        self._schema = schema
        self._reads = reads
        self._session = session
        self._runs = Runs(start, end)
        self._rows = FeedBuilder(schema, reads)
        self._texts = Texts("utf-8")
        self._relations = Relations()
        self._described: dict[int, int] = {}
        # All descriptions so far, and what of them rows need, to be taken by number.
        self._known: list[Relation] = []
        self._wanted: list[bool] = []
        self._tables: _Tables | None = None

    def preamble(self) -> Iterator[tuple[Lsn, bytes]]:
        """An empty transaction that describes all tables, for who reads on row by row."""
        return preamble(self._known[number] for number in self._described.values())

    def batches(self, lsns: Sequence[int], messages: Sequence[bytes]) -> Iterator[Any]:
        """The rows of a chunk; raises UnsupportedError after those that come before the message in question."""
        tags = np.frombuffer(b"".join([data[:1] for data in messages]), dtype=np.uint8)
        stop = self._runs.supported(tags)
        if stop:
            positions = np.asarray(lsns[:stop], dtype=np.uint64).view(np.int64)
            yield from self._chunk(positions, messages[:stop], tags[:stop])
        if stop < len(messages):
            self._runs.refuse(stop, int(tags[stop]))

    def _chunk(self, lsns: Any, messages: Sequence[bytes], tags: Any) -> Iterator[Any]:
        decoded, self._session = decode_batch(pa.array(messages, pa.binary()), self._session, for_spark=True)
        column = {name: decoded.column(at) for at, name in enumerate(decoded.schema.names)}
        run = self._runs.next(messages, tags)
        table_of = self._bind(column, messages, tags)
        wanted = np.isin(tags, (I, U, D)) & run.in_range
        if not all(self._wanted):
            wanted &= np.asarray([*self._wanted, True])[table_of]
        position = 0
        for at in [*np.flatnonzero((tags == M) | (tags == T)).tolist(), len(tags)]:
            chosen = np.flatnonzero(wanted[position:at]) + position
            if len(chosen):
                yield self._plain(column, chosen, tags, lsns, table_of, run)
            if at < len(tags):
                yield from self._rare(messages[at], int(lsns[at]) % (1 << 64), run, at)
            position = at + 1

    def _bind(self, column: dict[str, Any], messages: Sequence[bytes], tags: Any) -> Any:
        """For each row the number of its table's description; that of no table is the number of all descriptions."""
        table_of = np.full(len(tags), -1, dtype=np.int64)
        rows = np.flatnonzero(np.isin(tags, (I, U, D)))
        oids = column["relation_id"].fill_null(0).to_numpy(zero_copy_only=False)
        described = np.flatnonzero((tags == R) | (tags == Y))
        position = 0
        for at in [*described.tolist(), len(tags)]:
            part = rows[np.searchsorted(rows, position) : np.searchsorted(rows, at)]
            if len(part):
                found, places = np.unique(oids[part], return_inverse=True)
                numbers = [self._described.get(int(oid), -1) for oid in found]
                if -1 in numbers:
                    reason = f"no Relation has described the table with OID {found[numbers.index(-1)]}"
                    raise TransactionError("message", None, None, reason)
                table_of[part] = np.asarray(numbers)[places]
            if at < len(tags):
                self._describe(messages[at])
            position = at + 1
        if self._tables is None or len(self._tables.widths) != len(self._known):
            self._tables = _Tables(self._known, self._schema)
        return table_of

    def _describe(self, data: bytes) -> None:
        message = v1.parse(data)
        if isinstance(message, v1.Type):
            self._relations.name_type(message)
            return
        assert isinstance(message, v1.Relation)
        self._relations.describe(message, None)
        relation = self._relations.find(message.relation_id, None)
        assert relation is not None
        number = self._described.get(relation.relation_id)
        if number is None or self._known[number] is not relation:
            self._described[relation.relation_id] = len(self._known)
            self._known.append(relation)
            self._wanted.append(self._reads(relation.schema, relation.name))

    def _plain(self, column: dict[str, Any], chosen: Any, tags: Any, lsns: Any, table_of: Any, run: Run) -> Any:
        assert self._tables is not None
        tables = self._tables
        table = table_of[chosen]
        transaction = run.transaction_of[chosen]
        indices = pa.array(table)
        field = self._schema.field
        after, unchanged = self._after(column, chosen, table, field("after").type, field("unchanged").type)
        moments = run.commit_timestamp[transaction]
        origin: Any = pa.nulls(len(chosen), pa.string())
        if run.origins:
            names = [run.origins.get(number) for number in range(len(run.xid))]
            origin = pa.array(names, pa.string()).take(pa.array(transaction))
        arrays = {
            "op": _OPS.take(pa.array(_OP_OF_TAG[tags[chosen]])),
            "schema": tables.schemas.take(indices),
            "table": tables.names.take(indices),
            "relation_id": tables.oids.take(indices),
            "before": self._before(column, chosen, table, field("before").type),
            "after": after,
            "key": tables.keys.take(indices),
            "unchanged": unchanged,
            "lsn": pa.array(lsns[chosen]),
            "commit_lsn": pa.array(run.final_lsn[transaction]),
            "commit_timestamp": pa.array(moments).cast(field("commit_timestamp").type),
            "xid": pa.array(run.xid[transaction]),
            "ordinal": pa.array(run.ordinals[chosen]),
            "origin": origin,
            "gid": pa.nulls(len(chosen), pa.string()),
        }
        return pa.RecordBatch.from_arrays([arrays[name] for name in self._schema.names], schema=self._schema)

    def _after(self, column: dict[str, Any], chosen: Any, table: Any, type_: Any, names_type: Any) -> tuple[Any, Any]:
        cells = _Cells(column["new"], chosen)
        self._check_widths(cells, table)
        values = cells.values
        kept: Any = None
        unchanged = _empty_lists(len(chosen), names_type)
        if (cells.kinds == UNCHANGED).any():
            old = _Cells(column["old"], chosen)
            full = _full_rows(column, chosen)
            missing = cells.kinds == UNCHANGED
            # With the whole old row at hand, what was not sent is taken from there.
            resolved = missing & full[cells.row]
            if resolved.any():
                source = old.starts[cells.row[resolved]] + cells.column[resolved]
                order = np.arange(len(cells.kinds), dtype=np.int64)
                order[resolved] = len(cells.kinds) + source
                values = pa.concat_arrays([cells.values, old.values]).take(pa.array(order))
                kinds = cells.kinds.copy()
                kinds[resolved] = old.kinds[source]
                cells.kinds = kinds
            missing = missing & ~resolved
            if missing.any():
                kept = ~missing
                named = self._names(cells, table, missing)
                unchanged = _lists(cells.row[missing], named, len(chosen), names_type)
        return self._maps(cells, values, table, kept, cells.present, type_), unchanged

    def _before(self, column: dict[str, Any], chosen: Any, table: Any, type_: Any) -> Any:
        cells = _Cells(column["old"], chosen)
        if not len(cells.kinds):
            return _null_maps(len(chosen), cells.present, type_)
        self._check_widths(cells, table)
        kept = None
        full = _full_rows(column, chosen)
        if not full[cells.present].all():
            assert self._tables is not None
            place = self._tables.bases[table[cells.row]] + cells.column
            kept = full[cells.row] | self._tables.is_key[place] | (cells.kinds != NULL)
        return self._maps(cells, cells.values, table, kept, cells.present, type_)

    def _maps(self, cells: _Cells, values: Any, table: Any, kept: Any, present: Any, type_: Any) -> Any:
        names = self._names(cells, table, kept)
        sizes = cells.sizes
        if (cells.kinds == BINARY).any():
            values = self._as_text(cells, values, table)
        if kept is not None:
            values = values.filter(pa.array(kept))
            sizes = np.bincount(cells.row[kept], minlength=len(sizes))
        entries = pa.StructArray.from_arrays(
            [names, values.cast(type_.item_type)], fields=[type_.key_field, type_.item_field]
        )
        offsets = np.zeros(len(sizes) + 1, dtype=np.int32)
        np.cumsum(sizes, out=offsets[1:])
        return _nested(type_, offsets, entries, present)

    def _names(self, cells: _Cells, table: Any, kept: Any) -> Any:
        assert self._tables is not None
        place = self._tables.bases[table[cells.row]] + cells.column
        return self._tables.columns.take(pa.array(place if kept is None else place[kept]))

    def _as_text(self, cells: _Cells, values: Any, table: Any) -> Any:
        """Values in binary format become text one by one."""
        texts: list[bytes | None] = values.to_pylist()
        for at in np.flatnonzero(cells.kinds == BINARY):
            column = self._texts.columns(self._known[int(table[cells.row[at]])])[int(cells.column[at])]
            value = texts[at]
            assert value is not None
            texts[at] = column.type.to_text(column.load("b", value)).encode()
        return pa.array(texts, pa.binary())

    def _check_widths(self, cells: _Cells, table: Any) -> None:
        assert self._tables is not None
        wrong = np.flatnonzero(cells.present & (cells.sizes != self._tables.widths[table]))
        if len(wrong):
            relation = self._known[int(table[wrong[0]])]
            reason = (
                f"{cells.sizes[wrong[0]]} values, but the Relation of {relation} has {len(relation.columns)} columns"
            )
            raise TransactionError("message", None, None, reason)

    def _rare(self, data: bytes, lsn: int, run: Run, index: int) -> Iterator[Any]:
        message = v1.parse(data)
        if isinstance(message, v1.Message) and not message.transactional:
            if self._runs.start <= message.message_lsn < self._runs.end:
                self._rows.add_message(NonTransactionalMessage(lsn=Lsn(lsn), message=message))
                yield self._rows.finish()
            return
        if not run.in_range[index]:
            return
        number, ordinal = int(run.transaction_of[index]), int(run.ordinals[index])
        commit_lsn = Lsn(int(run.final_lsn[number]) % (1 << 64))
        owner = Transaction(
            xid=TransactionId(int(run.xid[number])),
            commit_lsn=commit_lsn,
            end_lsn=commit_lsn,
            commit_timestamp=TimestampTz(int(run.commit_timestamp[number]) - EPOCH),
            origin=run.origins.get(number),
            changes=ChangeLog(),
        )
        if isinstance(message, v1.Message):
            self._rows.add(Change(ordinal, Lsn(lsn), message, None), owner)
        else:
            assert isinstance(message, v1.Truncate)
            for offset, oid in enumerate(message.relation_ids):
                relation = self._relations.find(Oid(oid), None)
                self._rows.add(Change(ordinal + offset, Lsn(lsn), message, relation), owner)
        if self._rows.rows:
            yield self._rows.finish()


class _Tables:
    """What rows need of all descriptions of tables, to be taken by their number."""

    def __init__(self, known: list[Relation], schema: Any) -> None:
        self.schemas = pa.array([relation.schema for relation in known], pa.string())
        self.names = pa.array([relation.name for relation in known], pa.string())
        self.oids = pa.array([relation.relation_id for relation in known], pa.int64())
        self.keys = pa.array([list(relation.key) for relation in known], schema.field("key").type)
        self.widths = np.asarray([len(relation.columns) for relation in known], dtype=np.int64)
        self.bases = np.concatenate(([0], np.cumsum(self.widths)))[:-1]
        self.columns = pa.array([name for relation in known for name in relation.names], pa.string())
        self.is_key = np.asarray([column.key for relation in known for column in relation.columns], dtype=bool)


class _Cells:
    """The values of the chosen rows of a column of tuples, flat, each with its row and its place in it."""

    def __init__(self, tuples: Any, chosen: Any) -> None:
        offsets = np.frombuffer(tuples.buffers()[1], dtype=np.int64 if _is_large(tuples) else np.int32)
        offsets = offsets[tuples.offset : tuples.offset + len(tuples) + 1].astype(np.int64)
        starts, self.sizes = offsets[chosen], np.diff(offsets)[chosen]
        self.present = tuples.is_valid().to_numpy(zero_copy_only=False)[chosen]
        """Whether there is a tuple at all."""
        total = int(self.sizes.sum())
        children = tuples.values
        self.row = np.repeat(np.arange(len(chosen)), self.sizes)
        self.starts = np.cumsum(self.sizes) - self.sizes
        """Of each row the place of its first value in the flat arrays."""
        self.column = np.arange(total) - self.starts[self.row]
        first = int(starts[0]) if len(starts) else 0
        if total and (starts[self.sizes > 0] - first == (self.starts - self.starts[0])[self.sizes > 0]).all():
            children = children.slice(first, total)
        else:
            children = children.take(pa.array(starts[self.row] + self.column))
        self.kinds = children.field("kind").to_numpy(zero_copy_only=False)
        self.values = children.field("value")


def _full_rows(column: dict[str, Any], chosen: Any) -> Any:
    """Whether the old tuple of each row is the whole row, and not the key alone."""
    kinds = column["old_kind"].take(pa.array(chosen))
    return pa.compute.equal(kinds, "O").fill_null(False).to_numpy(zero_copy_only=False)


def _is_large(array: Any) -> bool:
    return bool(pa.types.is_large_list(array.type))


def _nested(type_: Any, offsets: Any, children: Any, present: Any) -> Any:
    null_count = 0 if present is None else int((~present).sum())
    validity = pa.array(present, pa.bool_()).buffers()[1] if null_count else None
    return pa.Array.from_buffers(
        type_, len(offsets) - 1, [validity, pa.py_buffer(offsets)], null_count=null_count, children=[children]
    )


def _null_maps(count: int, present: Any, type_: Any) -> Any:
    if present.any():
        # Tuples without columns.
        entries = pa.StructArray.from_arrays(
            [pa.array([], type_.key_type), pa.array([], type_.item_type)], fields=[type_.key_field, type_.item_field]
        )
        return _nested(type_, np.zeros(count + 1, dtype=np.int32), entries, present)
    return pa.nulls(count, type_)


def _empty_lists(count: int, type_: Any) -> Any:
    return _nested(type_, np.zeros(count + 1, dtype=np.int32), pa.array([], type_.value_type), None)


def _lists(row: Any, items: Any, count: int, type_: Any) -> Any:
    offsets = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(np.bincount(row, minlength=count), out=offsets[1:])
    return _nested(type_, offsets, items, None)
