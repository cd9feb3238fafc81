"""The tables of a batch: each relation's rows as typed Arrow columns by name. Needs `logicalrep[arrow]`.

    tables = TableDecoder(Session(version=1))
    for messages in batches:                      # pyarrow arrays of whole messages
        for table in tables.decode(messages):
            table.new.values["price"]             # decimal128(10, 2), null where no price was sent
            table.new.states["price"]             # why: ord("n") is NULL, ord("u") unchanged, 0 absent

A row is bound to the Relation that is current where it arrives, so a change of the schema within a batch gives a table
before it and one after it; a repeated Relation does not. `values` decides the Arrow type of each column.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.arrow.loops.finding import group_rows
from logicalrep.arrow.table.columns import LocatedRows, LocatedValues, PresentRows, RowReader, Rows, has
from logicalrep.arrow.table.loading import load
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.tags import DELETE, INSERT, RELATION, STREAM_START, STREAM_STOP, TRUNCATE, TYPE, UPDATE
from logicalrep.values import Column, ColumnType, TypeCatalog, column_type
from logicalrep_protocol.columnar import LocatedBatch, RowDecodeError, Session, locate_batch
from logicalrep_protocol.layouts import LOGICALREP
from logicalrep_protocol.versions import PARSE, Relation, Truncate, Type
from logicalrep_runtime.columnar.located import Bytes, Int64s, Ints, room
from logicalrep_runtime.scalars import Oid

__all__ = ["DecodedTable", "Rows", "TableDecoder"]


@dataclass(frozen=True, slots=True)
class DecodedTable:
    """The changes of one table in a batch, under one description."""

    relation: TableDescription
    rows: pa.Array
    """int64: the index of each change's message in the batch, in ascending order."""
    tag_codes: Bytes
    """The first byte of each change's message."""
    xids: pa.Array
    """int64: the id of the streamed transaction or subtransaction; null outside of stream segments."""
    old_kind_codes: Bytes
    """The byte of each old row's kind; 0 where there is none."""
    old: Rows
    """The old rows, an item per change: absent for an Insert.

    A key has the key's columns and any others that were sent; the rest are absent (see `changes.old_columns`).
    """
    new: Rows

    @property
    def tags(self) -> pa.Array:
        """string: I, U or D."""
        return _characters(self.tag_codes)

    @property
    def old_kinds(self) -> pa.Array:
        """string: K or O, the kind of the old row; null where there is none."""
        return _characters(self.old_kind_codes)

    def batch(self) -> pa.RecordBatch:
        columns: dict[str, pa.Array] = {
            "row": self.rows,
            "tag": self.tags,
            "xid": self.xids,
            "old_kind": self.old_kinds,
        }
        for name, rows in (("old", self.old), ("new", self.new)):
            columns[name] = rows.values.to_struct_array()
            columns[f"{name}_states"] = rows.states.to_struct_array()
        return pa.RecordBatch.from_pydict(columns)


@dataclass
class _Version:
    relation: TableDescription
    reader: RowReader
    is_wanted: bool
    rows: list[Int64s] = field(default_factory=list)


class TableDecoder:
    def __init__(
        self,
        session: Session,
        *,
        typed: bool = True,
        text_columns: Container[str] = (),
        for_spark: bool = False,
        lc_monetary: str | None = None,
        catalog: TypeCatalog | None = None,
        wanted: Callable[[TableDescription], bool] = lambda table: True,
        own_type: Callable[[str, ColumnType], ColumnType] = lambda name, type_: type_,
    ) -> None:
        """Create a decoder for a session from its start.

        Args:
            typed: False makes every column a string, with PostgreSQL's text for values in binary format.
            text_columns: the columns that are strings in every table.
            lc_monetary, catalog: see `values.column_type`.
            wanted: whether to make columns of a table; the rows of other tables are checked and left out.
            own_type: returns a column's type for its name and the type that the server gives it.
        """
        self.session = session
        self.typed = typed
        self.text_columns = text_columns
        self.for_spark = for_spark
        self.lc_monetary = lc_monetary
        self.catalog = catalog
        self.wanted = wanted
        self.own_type = own_type
        self.truncated: dict[int, list[TableDescription]] = {}
        """The current descriptions of the tables of each Truncate in the last batch, by its index."""
        self.described: dict[int, TableDescription] = {}
        """The description of each Relation message in the last batch, by its index."""
        self._types: dict[int, Any] = {}
        self._current: dict[int, _Version] = {}
        # The bytes of each table's last Relation, to recognize a repetition; without Relations in stream segments.
        self._last: dict[int, bytes] = {}

    def decode(self, messages: pa.Array | pa.ChunkedArray) -> list[DecodedTable]:
        """Return the tables of the next batch, in the order of their first changes.

        Raises:
            DecodeError: a message is invalid or lacks its Relation; `row` is its index. The decoder forgets the batch.
        """
        types, current = dict(self._types), dict(self._current)
        with locate_batch(messages, self.session) as walked:
            try:
                versions = self._versions(walked)
                in_segments = self.session.streaming or bool((walked.located.tags == STREAM_START).any())
                tables = self._tables(walked, versions, in_segments)
            except ValueError:
                self._types, self._current = types, current
                self._last.clear()
                raise
        self.session = walked.session
        return sorted(tables, key=lambda table: table.rows[0].as_py())

    def _versions(self, batch: LocatedBatch) -> list[_Version]:
        number = batch.numbers
        tags = batch.located.tags
        described = np.flatnonzero((tags == RELATION) | (tags == TYPE) | (tags == TRUNCATE))
        is_change = (tags == INSERT) | (tags == UPDATE) | (tags == DELETE)
        changes = np.flatnonzero(is_change)
        oids = batch.located.fixed.get(number["relation_id"], np.empty(0, np.int32)).view(np.uint32)
        touched: dict[int, _Version] = {}
        self.truncated, self.described = {}, {}
        streaming = self._streaming(tags) if len(described) else None
        start = 0
        for row in [*described.tolist(), len(tags)]:
            if streaming is None or row == len(tags):
                first, last = np.searchsorted(changes, [start, len(tags)])
                self._assign(batch, changes[first:last], oids, touched)
                break
            data = self._bytes(batch, row)
            is_relation = tags[row] == RELATION
            if is_relation and not streaming[row] and data == self._last.get(int(oids[row])):
                self.described[row] = self._current[int(oids[row])].relation
                continue
            message = PARSE[self.session.version](
                data,
                streaming=bool(streaming[row]),
                parallel=self.session.parallel,
                encoding=self.session.encoding,
            )
            if isinstance(message, Type):
                self._types[message.type_id] = message
                self._last.clear()
                continue
            if isinstance(message, Truncate):
                self.truncated[row] = [
                    self._known(batch, oid, row, f"relation_ids[{index}]").relation
                    for index, oid in enumerate(message.relation_ids)
                ]
                continue
            assert isinstance(message, Relation)
            self._last[message.relation_id] = b"" if streaming[row] else data
            relation = self._described(message)
            current = self._current.get(message.relation_id)
            if current is None or current.relation != relation:
                # The changes up to here belong to the previous descriptions.
                first, last = np.searchsorted(changes, [start, row])
                self._assign(batch, changes[first:last], oids, touched)
                start = row
                self._current[message.relation_id] = self._version(relation)
            self.described[row] = self._current[message.relation_id].relation
        return list(touched.values())

    def _streaming(self, tags: Bytes) -> NDArray[np.bool_]:
        result = np.empty(len(tags), bool)
        streaming, start = self.session.streaming, 0
        for row in np.flatnonzero((tags == STREAM_START) | (tags == STREAM_STOP)).tolist():
            result[start : row + 1] = streaming
            streaming, start = tags[row] == STREAM_START, row + 1
        result[start:] = streaming
        return result

    def _bytes(self, batch: LocatedBatch, row: int) -> bytes:
        return batch.data[batch.offsets[row] : batch.offsets[row + 1]].tobytes()

    def _assign(self, batch: LocatedBatch, changes: Int64s, oids: Ints, touched: dict[int, _Version]) -> None:
        for oid, rows in _by_table(oids, changes):
            version = self._known(batch, oid, int(rows[0]), "relation_id")
            if id(version) not in touched:
                version.rows = []
                touched[id(version)] = version
            version.rows.append(rows)

    def _known(self, batch: LocatedBatch, oid: int, row: int, path: str) -> _Version:
        version = self._current.get(oid)
        if version is None:
            raise self._error(batch, row, path, "a table that a Relation has described", f"OID {oid}")
        return version

    def _described(self, message: Relation) -> TableDescription:
        return TableDescription(
            relation_id=message.relation_id,
            schema=message.namespace or "pg_catalog",
            name=message.name,
            replica_identity=message.replica_identity,
            columns=message.columns,
            types=tuple(self._types.get(column.type_id) for column in message.columns),
        )

    def _version(self, relation: TableDescription) -> _Version:
        columns = []
        for column in relation.columns:
            its_type = column_type(
                column.type_id,
                column.type_modifier,
                self._types,
                lc_monetary=self.lc_monetary,
                catalog=self.catalog,
            )
            if not self.typed or column.name in self.text_columns:
                its_type = its_type.as_sent()
            its_type = self.own_type(column.name, its_type)
            columns.append(Column(column.name, its_type, table=str(relation), encoding=self.session.encoding))
        in_key = [column.key for column in relation.columns]
        return _Version(relation, RowReader(columns, in_key, for_spark=self.for_spark), self.wanted(relation))

    def _tables(self, batch: LocatedBatch, versions: list[_Version], in_segments: bool) -> list[DecodedTable]:
        number = batch.numbers
        fixed = batch.located.fixed
        old_kinds = fixed.get(number["old_kind"])
        located_old, located_new = _located(batch, "old"), _located(batch, "new")
        parts, changes = [], []
        for version in versions:
            rows = np.concatenate(version.rows)
            old = self._find(batch, "old", located_old, version, rows, old_kinds)
            new = self._find(batch, "new", located_new, version, rows, None)
            if version.is_wanted:
                parts += [(version.reader, old), (version.reader, new)]
                changes.append((version, rows))
        loaded = iter(load(batch.located.data, parts))
        tables = []
        for version, rows in changes:
            xids = pa.nulls(len(rows), pa.int64())
            if in_segments and number["xid"] in fixed:
                values = fixed[number["xid"]][rows].view(np.uint32).astype(np.int64)
                xids = pa.array(values, mask=~has(batch.located.validity[number["xid"]], rows))
            table = DecodedTable(
                relation=version.relation,
                rows=pa.array(rows),
                tag_codes=batch.located.tags[rows],
                xids=xids,
                old_kind_codes=np.zeros(len(rows), np.uint8) if old_kinds is None else old_kinds[rows].view(np.uint8),
                old=next(loaded),
                new=next(loaded),
            )
            tables.append(table)
        return tables

    def _find(
        self, batch: LocatedBatch, name: str, located: LocatedRows | None, version: _Version, rows: Int64s,
        kinds: Ints | None,
    ) -> PresentRows:  # fmt: skip
        """Find the old or new rows of messages. `kinds` has each message's kind of row if rows can be a key."""
        if located is None:
            return version.reader.find_none(len(rows))
        present, wrong = version.reader.find(rows, located, kinds)
        if wrong is not None:
            raise self._error(
                batch,
                wrong,
                f"{name}.column_count",
                f"{len(version.reader.columns)} values, as many as {version.relation} has columns",
                str(located.offsets[wrong + 1] - located.offsets[wrong]),
            )
        return present

    def _error(self, batch: LocatedBatch, row: int, path: str, expected: str, actual: str) -> RowDecodeError:
        from logicalrep_runtime.layout_walk import walk

        data = self._bytes(batch, row)
        streaming = bool(self._streaming(batch.located.tags)[row])
        facts = {"streaming": streaming, "parallel": self.session.parallel}
        steps = walk(LOGICALREP, self.session.version, data, facts=facts, encoding=self.session.encoding)
        offset = next(step.offset for step in steps if step.path == path)
        layout = LOGICALREP.message(data[0])
        assert layout is not None
        return RowDecodeError(layout.name, path, offset, expected, actual, row)

    @property
    def relations(self) -> dict[Oid, TableDescription]:
        return {Oid(oid): version.relation for oid, version in self._current.items()}


def _located(batch: LocatedBatch, name: str) -> LocatedRows | None:
    """Return the offsets of all old or new rows; None if the batch has none."""
    number = batch.numbers[name]
    cells = batch.located.cells.get(number)
    if cells is None:
        return None
    values = LocatedValues(batch.located.data, cells.kinds, cells.starts, cells.lengths)
    return LocatedRows(values, cells.offsets, batch.located.validity[number])


def _by_table(oids: Ints, rows: Int64s) -> Iterator[tuple[int, Int64s]]:
    grouped = room(len(rows), np.int64)
    stop = 0
    for oid, count in group_rows(rows, oids, grouped):
        yield oid, grouped[stop : stop + count]
        stop += count


def _characters(values: Bytes) -> pa.Array:
    offsets = pa.py_buffer(np.arange(len(values) + 1, dtype=np.int32))
    validity = None if values.all() else pa.py_buffer(np.packbits(values != 0, bitorder="little"))
    return pa.Array.from_buffers(pa.string(), len(values), [validity, offsets, pa.py_buffer(values.copy())])
