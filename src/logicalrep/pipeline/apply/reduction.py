"""The reduction of a batch of a table's changes to the removed rows and the resulting rows.

Each change takes a row under its old key, puts a row under its new key, or both. Takes and puts of one key alternate.
A later change takes a put row, or the row is in the result. An earlier change of the batch put a taken row, or the row
was in the table. A value that was not sent is the value of the row that the change took, which may come from the row
that an earlier change took, and so on: doubling steps follow such chains.

Five changes of a table with the key `id` that had the row (1, a, big); `?` is a value that was not sent:

    change                  takes   puts        the row's chain
    0  UPDATE to (1, b, ?)  1       (1, b, ?)   table -> 0
    1  UPDATE to (2, b, ?)  1       (2, b, ?)   table -> 0 -> 1
    2  INSERT (1, c, new)           (1, c, new) 2
    3  UPDATE to (1, d, ?)  1       (1, d, ?)   2 -> 3
    4  DELETE 2             2                   table -> 0 -> 1, which ends

The removed key is 1: change 0 took the table's row. The result is (1, d, new): change 3 put it, and change 2 of its
chain has the value. Without change 4 the result would have (2, b, big) too, whose value is a hole, filled from the
table's row of key 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.pipeline.apply.events import RowEvents
from logicalrep.pipeline.errors import NeedsResync

_Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Reduced:
    """The effect of changes on a table."""

    replaces_all: bool
    """Whether all stored rows are removed."""
    removed_keys: pa.Array
    """The distinct keys of the stored rows that are removed or replaced."""
    removed_counts: _Ints
    """The number of removed rows of each of these keys: 1 if the table has a key."""
    rows: pa.Table
    """The resulting rows: new rows, and replacements of removed rows."""
    origins: _Ints
    """The number of the removed row that each row replaces; -1 for a new row."""
    holes: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    """The columns with values to copy from the replaced row, and a mask of the rows that take them."""
    are_marked: bool = False
    """True if removed rows may be marked as deleted, see `is_marked`."""
    is_marked: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    """True for each key of which only a row marked as deleted is removed; such a row need not exist."""
    unfit: Mapping[str, int] = field(default_factory=dict)
    """The number of values of the changes that their column's type cannot hold, by column name."""

    @property
    def nbytes(self) -> int:
        """The approximate bytes in memory."""
        return int(self.rows.nbytes) + int(self.removed_keys.nbytes) + 8 * (len(self.removed_keys) + len(self.origins))

    @property
    def expected(self) -> int:
        """The number of removed rows that the table must have."""
        return int(self.removed_counts[~self.is_marked].sum() if self.are_marked else self.removed_counts.sum())


def reduced(events: RowEvents) -> Reduced:
    """Return the effect of changes in commit order on a table that stores current rows only.

    Raises NeedsResync for changes that contradict each other.
    """
    return _by_key(events) if events.has_key else reduced_by_count(events)


def reduced_by_count(events: RowEvents) -> Reduced:
    """Return the effect of changes of rows without a key: the difference in the number of equal rows.

    Raises NeedsResync if a value was not sent: without it, rows cannot be distinguished.
    """
    for name in events.unsent:
        raise NeedsResync(f"PostgreSQL did not send a value of its column {name}, and its rows have no key")
    ids, keys = _numbered([events.old_keys, events.new_keys])
    taken, put = ids[: len(events.old_keys)], ids[len(events.old_keys) :]
    more = np.bincount(put, minlength=len(keys)) - np.bincount(taken, minlength=len(keys))
    example = np.zeros(len(keys), np.int64)
    example[put[::-1]] = np.arange(len(put))[::-1]
    added, removed = np.flatnonzero(more > 0), np.flatnonzero(more < 0)
    rows = events.new_rows.take(pa.array(np.repeat(example[added], more[added])))
    return Reduced(
        replaces_all=events.is_truncated,
        removed_keys=keys.take(pa.array(removed)),
        removed_counts=-more[removed],
        rows=rows,
        origins=np.full(rows.num_rows, -1, np.int64),
    )


@dataclass(frozen=True)
class Chains:
    """The successive rows of each key."""

    put_by: _Ints
    """The change that put the row that each change takes; -1 for a stored row, and for other changes."""
    taken_by: _Ints
    """The change that takes the row that each change puts; -1 for a resulting row."""
    is_last: NDArray[np.bool_]
    """Whether each change is the last take of its key."""
    removed_keys: pa.Array
    """The distinct keys of the stored rows that are taken."""
    removed_counts: _Ints
    """The number of taken stored rows of each of these keys."""
    removed_of: _Ints
    """The number, in the order of `removed_keys`, of the stored row that each change takes; -1 for other changes."""
    new: pa.Array
    """The keys whose first change is a put."""
    origins: _Ints
    """The number of the stored row that each change's row comes from; -1 for none."""


def chains_of(events: RowEvents) -> Chains:
    """Return the successive rows of each key; of equal rows without a key, a change takes the last one.

    Raises NeedsResync for changes that contradict each other.
    """
    ids, keys = _numbered([events.old_keys, events.new_keys])
    takes, puts = np.flatnonzero(events.old_of >= 0), np.flatnonzero(events.new_of >= 0)
    # A change takes before it puts.
    change = np.concatenate((takes, puts))
    value = np.concatenate((ids[events.old_of[takes]], ids[len(events.old_keys) + events.new_of[puts]]))
    moment = np.concatenate((2 * events.turns[takes], 2 * events.turns[puts] + 1))
    level = np.zeros(len(value), np.int64)
    if not events.has_key:
        level = _levels(value, moment)
    order = np.lexsort((moment, level, value))
    value, level, moment, change = value[order], level[order], moment[order], change[order]
    is_put = moment % 2 == 1
    is_first = (np.diff(value, prepend=-1) != 0) | (np.diff(level, prepend=0) != 0)
    is_last = np.append(is_first[1:], True)[: len(value)]
    wrong = ~is_first & (is_put == np.roll(is_put, 1))
    if wrong.any():
        raise NeedsResync("its changes contradict each other: two rows have the same key at the same time")
    put_by, taken_by = np.full(len(events), -1, np.int64), np.full(len(events), -1, np.int64)
    takes_in_order = np.flatnonzero(~is_put)
    put_by[change[takes_in_order]] = np.where(is_first[takes_in_order], -1, change[takes_in_order - 1])
    chained_takes = takes_in_order[~is_first[takes_in_order]]
    taken_by[change[chained_takes - 1]] = change[chained_takes]
    is_last_take = np.zeros(len(events), bool)
    is_last_take[change[~is_put & is_last]] = True
    # The first taken of equal stored rows is at level -1, the next at level -2.
    first_takes = np.flatnonzero(~is_put & is_first)
    first_takes = first_takes[np.lexsort((-level[first_takes], value[first_takes]))]
    removed_of = np.full(len(events), -1, np.int64)
    removed_of[change[first_takes]] = np.arange(len(first_takes))
    removed, counts = np.unique(value[first_takes], return_counts=True)
    # The change at which each change's row was a stored row, or was new.
    takes_one = events.old_of >= 0
    roots = _followed(np.where(takes_one & (put_by >= 0), put_by, np.arange(len(events))))
    return Chains(
        put_by=put_by,
        taken_by=taken_by,
        is_last=is_last_take,
        removed_keys=keys.take(pa.array(removed)),
        removed_counts=counts.astype(np.int64),
        removed_of=removed_of,
        new=keys.take(pa.array(value[is_put & is_first])),
        origins=np.where(takes_one[roots], removed_of[roots], -1),
    )


def _levels(value: _Ints, moment: _Ints) -> _Ints:
    """Return each event's level, the number of equal rows beneath: on one level, takes and puts alternate."""
    order = np.lexsort((moment, value))
    steps = np.where(moment[order] % 2 == 1, 1, -1)
    sums = np.cumsum(steps)
    starts = np.flatnonzero(np.diff(value[order], prepend=-1))
    previous_sums = np.repeat(sums[starts] - steps[starts], np.diff(starts, append=len(order)))
    level = np.empty(len(value), np.int64)
    level[order] = sums - previous_sums - (steps == 1)
    return level


def _by_key(events: RowEvents) -> Reduced:
    chains = chains_of(events)
    ends = np.flatnonzero((events.new_of >= 0) & (chains.taken_by < 0))
    rows, origins, holes = fill_values(events, chains, ends)
    return Reduced(events.is_truncated, chains.removed_keys, chains.removed_counts, rows, origins, holes)


def fill_values(events: RowEvents, chains: Chains, ends: _Ints) -> tuple[pa.Table, _Ints, dict[str, NDArray[np.bool_]]]:
    """Return the rows that changes put, with values of earlier changes filled in; their origins; their holes."""
    columns, holes = {}, {}
    origins = chains.origins[ends]
    new_of, put_by = events.new_of, chains.put_by
    own = np.arange(len(events))
    for name in events.new_rows.column_names:
        column = events.new_rows.column(name)
        unsent = events.unsent.get(name)
        if unsent is None:
            columns[name] = column.take(pa.array(new_of[ends]))
            continue
        is_hole = np.zeros(len(events), bool)
        is_hole[new_of >= 0] = unsent[new_of[new_of >= 0]]
        # The last change of the chain has the value, or took a stored row.
        source = _followed(np.where(is_hole & (put_by >= 0), put_by, own))[ends]
        is_unfilled = is_hole[source]
        if (is_unfilled & (origins < 0)).any():
            raise NeedsResync(f"PostgreSQL did not send a value of its column {name}, and no earlier change has it")
        columns[name] = column.take(pa.array(new_of[source]))
        if is_unfilled.any():
            holes[name] = is_unfilled
    return pa.table(columns, schema=events.new_rows.schema), origins, holes


def _followed(following: _Ints) -> _Ints:
    """Return the end of each chain; the last item of a chain follows itself."""
    while True:
        further = following[following]
        if np.array_equal(further, following):
            return following
        following = further


def _numbered(parts: list[pa.Array]) -> tuple[_Ints, pa.Array]:
    """Return a number for each key, equal for equal keys, and the key of each number."""
    encoded = pa.concat_arrays(parts).dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary
