"""Rows of the change feed without what settings mask or leave out, before they are written anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from logicalrep.pipeline.errors import NeedsResync
from logicalrep.pipeline.masks.mask_key import MaskKey
from logicalrep.pipeline.spec.table_settings import TableSettings

_Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Masking:
    """The masking of a table's rows.

    Rows tell columns by their names alone. A column that was renamed would bring its values in clear, and so rows are
    taken only if their columns are those that are known, with all that are masked or left out, and if the Relation
    messages that they follow list them in the known order: two columns may have exchanged their names.
    """

    settings: TableSettings
    columns: Sequence[str]
    """The names of the server's columns, with those that are left out, in the order of their numbers."""
    has_whole_old: bool
    """Whether old rows have all columns, by REPLICA IDENTITY FULL."""
    key: MaskKey | None = field(repr=False)

    def rows(self, rows: pa.Table, sent: Sequence[Sequence[str]]) -> pa.Table:
        """Return a table's rows of the change feed, masked.

        Args:
            rows: the rows.
            sent: the columns of each Relation message that they follow; none are not known, and so refused.

        Raises NeedsResync for a row with other columns, or if values were hashed with another key.
        """
        if not self.settings.protected or not rows.num_rows:
            return rows
        if not sent or any(tuple(names) != tuple(self.columns) for names in sent):
            raise NeedsResync("its columns, of which some are masked or left out, are not those that were there before")
        check = self.settings.mask_key
        if check is not None and (self.key is None or self.key.check != check):
            raise NeedsResync("its values were hashed with another key")
        return pa.Table.from_batches([self._batch(batch) for batch in rows.to_batches()], rows.schema)

    def _batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        before, after, unchanged = columns["before"], columns["after"], columns["unchanged"]
        sent = self._protected(after, after.keys) + self._protected(unchanged, unchanged.values)
        self._refuse_other(after, sent)
        old = self._protected(before, before.keys)
        if self.has_whole_old:
            self._refuse_other(before, old)
        columns["before"], columns["after"] = self._masked(before), self._masked(after)
        columns["key"], columns["unchanged"] = self._without(columns["key"]), self._without(unchanged)
        return pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)

    def _protected(self, lists: pa.Array, values: pa.Array) -> _Ints:
        """Return for each row how many of its columns are masked or left out. Raises NeedsResync for unknown ones."""
        names, of_rows = _items(lists, values)
        unknown = pc.invert(pc.is_in(names, pa.array(sorted(self.columns), names.type)))
        if pc.any(unknown).as_py():
            raise NeedsResync(f"it has a column {pc.filter(names, unknown)[0]} that was not there before")
        is_protected = pc.is_in(names, pa.array(sorted(self.settings.protected), names.type)).to_numpy(False)
        return np.bincount(of_rows[is_protected], minlength=len(lists))

    def _refuse_other(self, rows: pa.Array, counts: _Ints) -> None:
        if (counts[rows.is_valid().to_numpy(False)] != len(self.settings.protected)).any():
            raise NeedsResync("a column that is masked or left out is not there any more")

    def _masked(self, maps: pa.MapArray) -> pa.MapArray:
        names, of_rows = _items(maps, maps.keys)
        values, _ = _items(maps, maps.items)
        for name, mask in self.settings.masked.items():
            chosen = pc.equal(names, name)
            if mask == "nulled":
                values = pc.if_else(chosen, pa.scalar(None, values.type), values)
            else:
                assert self.key is not None
                values = pc.replace_with_mask(values, chosen, self.key.hashed(values.filter(chosen)))
        stays = self._stay(names)
        offsets = _offsets(of_rows[stays], maps)
        return pa.MapArray.from_arrays(offsets, names.filter(pa.array(stays)), values.filter(pa.array(stays)))

    def _without(self, lists: pa.ListArray) -> pa.ListArray:
        names, of_rows = _items(lists, lists.values)
        stays = self._stay(names)
        offsets = _offsets(of_rows[stays], lists)
        return pa.ListArray.from_arrays(offsets, names.filter(pa.array(stays))).cast(lists.type)

    def _stay(self, names: pa.Array) -> NDArray[np.bool_]:
        left_out = pa.array(self.settings.left_out, names.type)
        stay: NDArray[np.bool_] = ~pc.is_in(names, left_out).to_numpy(False)
        return stay


def _items(lists: pa.Array, values: pa.Array) -> tuple[pa.Array, _Ints]:
    """Return the items of lists one after another, and the number of the row of each."""
    ends = lists.offsets.to_numpy()
    return values[int(ends[0]) : int(ends[-1])], np.repeat(np.arange(len(lists)), np.diff(ends))


def _offsets(of_rows: _Ints, rows: pa.Array) -> pa.Array:
    """Return the offsets of lists whose items are of these rows; null where there is no list."""
    ends = np.cumsum(np.bincount(of_rows, minlength=len(rows)), dtype=np.int32)
    is_null = np.append(rows.is_null().to_numpy(False), False)
    return pa.array(np.append(np.int32(0), ends).astype(np.int32), mask=is_null)
