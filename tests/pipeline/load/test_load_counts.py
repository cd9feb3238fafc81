"""The loads of an hour, by their reasons; those of partitions count for each of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from logicalrep.pipeline.load.load_counts import LoadCounts, LoadedTooOftenError
from logicalrep.pipeline.storage.storage import Storage


def test_the_third_load_for_one_reason_is_refused_also_of_one_partition(tmp_path: Path) -> None:
    counts = LoadCounts(Storage(str(tmp_path)))
    for partitions in ((7,), (8,), (7, 8), (7,), (8,), (8, 7)):
        counts.add("public/t", "attached", partitions)
    for number in (1, 2):
        counts.add("public/t", f"{number} rows are missing")
    refused: list[tuple[str, tuple[int, ...]]] = [
        ("attached", (7,)),
        ("attached", (7, 8)),
        ("3,456 rows are missing", ()),
    ]
    for reason, of in refused:
        with pytest.raises(LoadedTooOftenError, match="2 times within an hour for the same reason"):
            counts.add("public/t", reason, of)
    counts.add("public/t", "attached")
    counts.add("public/u", "attached", (7,))
    counts.clear("public/t")
    counts.add("public/t", "attached", (7,))
