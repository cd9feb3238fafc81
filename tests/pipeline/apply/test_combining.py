"""The effects of parts of changes, combined: the same as the effect of all of them."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from logicalrep.arrow.changes.change_batch import ChangeBatch
from logicalrep.pipeline.apply.combining import combined
from logicalrep.pipeline.apply.events import events_of
from logicalrep.pipeline.apply.reduction import Reduced, reduced
from logicalrep.pipeline.errors import NeedsResync
from logicalrep.pipeline.schema.table_spec import TableSpec
from tests.pipeline.changes import change_batch, relation
from tests.pipeline.histories import NAMES, OID, History, table
from tests.pipeline.stored import KEYS


def effect_of(spec: TableSpec, batches: list[ChangeBatch]) -> Reduced:
    return reduced(events_of(spec, batches))


def shown(effect: Reduced) -> tuple[Any, ...]:
    """Return an effect without the order of its rows."""
    removed_keys = effect.removed_keys.to_pylist()
    stems = [None if origin < 0 else removed_keys[origin] for origin in effect.origins.tolist()]
    holes = np.array([effect.holes.get(name, np.zeros(len(stems), bool)) for name in effect.rows.column_names]).T
    # NaN is not equal to itself.
    rows = [str(row) for row in effect.rows.to_pylist()]
    return (
        effect.replaces_all,
        dict(zip(removed_keys, effect.removed_counts.tolist(), strict=True)),
        Counter(zip(rows, stems, map(str, holes.tolist()), strict=True)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("seed", range(12))
def test_effects_of_parts_are_the_effect_of_all(key: tuple[str, ...] | None, seed: int) -> None:
    chance = random.Random(seed)
    spec, history = table(key), History(key, chance)
    for _ in range(chance.randrange(40)):
        history.step()
    history.take()
    batches = []
    for _ in range(chance.randrange(2, 7)):
        for _ in range(chance.randrange(1, 25)):
            history.step()
        batches += history.take()
    parts = [effect_of(spec, [batch]) for batch in batches]
    whole = shown(effect_of(spec, batches))
    assert shown(combined(spec, parts)) == whole
    assert shown(combined(spec, [combined(spec, parts[:2]), *parts[2:]])) == whole


def test_two_exchanges_of_keys_combine_into_the_rows_with_their_own_keys() -> None:
    def update(old: int, new: int, lsn: int) -> dict[str, Any]:
        row = {"id": str(new), "b": f"from {old} at {lsn}", "v": None}
        return {"op": "update", "before": {"id": str(old)}, "after": row, "unchanged": ("big",), "commit_lsn": lsn}

    def part(*changes: tuple[int, int], lsn: int) -> Reduced:
        updates = [update(old, new, lsn) | {"ordinal": number} for number, (old, new) in enumerate(changes)]
        return effect_of(spec, [change_batch(relation(NAMES, oid=OID), updates)])

    spec = table(("id",))
    swapped, repeated = part((1, 9), (2, 1), (9, 2), lsn=5), part((1, 9), (2, 1), (9, 2), lsn=6)
    both = combined(spec, [swapped, repeated])
    assert sorted(both.removed_keys.to_pylist()) == [1, 2]
    removed_keys = both.removed_keys.to_pylist()
    # Each has its key back, and the large value of the row that it was before.
    assert {row["id"]: removed_keys[at] for row, at in zip(both.rows.to_pylist(), both.origins, strict=True)} == {
        1: 1,
        2: 2,
    }
    assert both.holes["big"].all()


def test_effects_that_cannot_follow_one_another_are_refused() -> None:
    spec = table(("id",))
    insert = {"op": "insert", "after": {"id": "1", "b": "", "v": None, "big": ""}, "commit_lsn": 5, "ordinal": 0}
    effect = effect_of(spec, [change_batch(relation(NAMES, oid=OID), [insert])])
    with pytest.raises(NeedsResync, match="two rows have the same key"):
        combined(spec, [effect, effect])
