"""The combination of consecutive effects into one.

An effect equals changes that happen at one moment: they take every removed row, then put every new row; the change
that takes a removed row puts the row that replaces it. So `reduced` combines effects as it combines changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.pipeline.apply.events import RowEvents
from logicalrep.pipeline.apply.reduction import Reduced, reduced
from logicalrep.pipeline.schema.row_keys import row_keys
from logicalrep.pipeline.schema.table_spec import TableSpec

_Ints = NDArray[np.int64]


def combined(table: TableSpec, effects: Sequence[Reduced]) -> Reduced:
    """Return the effect of all changes of a table from the effects of consecutive parts.

    Example:
        >>> combined(table, [first, second]).expected
        3

    Raises NeedsResync for effects that contradict each other.
    """
    truncated = [number for number, effect in enumerate(effects) if effect.replaces_all]
    effects = effects[truncated[-1] if truncated else 0 :]
    if len(effects) == 1:
        return effects[0]
    parts = [_changes_of(effect) for effect in effects]
    effect_of_all = reduced(
        RowEvents(
            has_key=table.key is not None,
            is_truncated=bool(truncated),
            turns=np.repeat(np.arange(len(parts)), [len(old_of) for old_of, _ in parts]),
            old_of=_one_after_another([old_of for old_of, _ in parts], [_count(effect) for effect in effects]),
            new_of=_one_after_another([new_of for _, new_of in parts], [effect.rows.num_rows for effect in effects]),
            old_keys=pa.concat_arrays([_removed_keys(effect) for effect in effects]),
            new_keys=pa.concat_arrays([row_keys(table, effect.rows) for effect in effects]),
            new_rows=pa.concat_tables([effect.rows for effect in effects]),
            unsent=_holes(effects),
        )
    )
    return replace(effect_of_all, unfit=sum((Counter(effect.unfit) for effect in effects), Counter()))


def _changes_of(effect: Reduced) -> tuple[_Ints, _Ints]:
    """Return the numbers of the rows that each change of an effect takes and puts; -1 for none."""
    rows = effect.rows.num_rows
    # Without a key, no row replaces another row.
    deleted = np.setdiff1d(np.arange(_count(effect)), effect.origins)
    old_of = np.concatenate((effect.origins, deleted))
    return old_of, np.concatenate((np.arange(rows), np.full(len(deleted), -1)))


def _count(effect: Reduced) -> int:
    return int(effect.removed_counts.sum())


def _removed_keys(effect: Reduced) -> pa.Array:
    return effect.removed_keys.take(pa.array(np.repeat(np.arange(len(effect.removed_keys)), effect.removed_counts)))


def _one_after_another(parts: Sequence[_Ints], counts: Sequence[int]) -> _Ints:
    """Return the parts' numbers, each part's shifted by the counts of the parts before it; -1 stays -1."""
    firsts = np.cumsum([0, *counts])
    return np.concatenate([np.where(part < 0, part, part + first) for part, first in zip(parts, firsts, strict=False)])


def _holes(effects: Sequence[Reduced]) -> dict[str, NDArray[np.bool_]]:
    names = dict.fromkeys(name for effect in effects for name in effect.holes)
    return {
        name: np.concatenate([effect.holes.get(name, np.zeros(effect.rows.num_rows, bool)) for effect in effects])
        for name in names
    }
