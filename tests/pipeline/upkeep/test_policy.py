"""The policy of upkeep: how often a row is written anew, how many files stay, and that a table comes to rest."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile
from logicalrep.pipeline.storage.deletion_vectors import DeletionVector
from logicalrep.pipeline.storage.statistics import Statistics
from logicalrep.pipeline.upkeep.policy import LEAST_ROWS, due_files
from tests.pipeline.histories import table

BYTES_OF_A_ROW = 100
LIMITS = Limits()
# Size classes below full files; a row passes each class once.
CLASSES = 6


def data_file(number: int, rows: int, marked: int = 0) -> DataFile:
    vector = DeletionVector(marked) if marked else None
    return DataFile(f"part-{number}", rows * BYTES_OF_A_ROW, rows, Statistics(), vector)


class Files:
    """Files of a table, and how often the rows of each were written."""

    def __init__(self) -> None:
        self.spec: TableSpec = table(("id",))
        self.files: dict[str, DataFile] = {}
        self.times: dict[str, int] = {}
        self.number = 0

    def add(self, rows: int, times: int = 1, marked: int = 0) -> None:
        self.number += 1
        file = data_file(self.number, rows, marked)
        self.files[file.path], self.times[file.path] = file, times

    def merge(self) -> bool:
        due = due_files(self.spec, self.files.values(), LIMITS)
        rows, times = 0, 0
        for file in due:
            del self.files[file.path]
            rows, times = rows + file.live_rows, max(times, self.times.pop(file.path))
            if rows >= LIMITS.file_rows:
                break
        if due:
            self.add(rows, times + 1)
        return bool(due)


SIZES: dict[str, Callable[[random.Random], int]] = {
    "all of one size": lambda chance: 1000,
    "of two sizes": lambda chance: chance.choice([70, 100_000]),
    "of all sizes": lambda chance: int(64 * 2 ** chance.uniform(0, 13)),
    "tiny": lambda chance: LEAST_ROWS,
}


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_a_row_is_written_a_few_times_and_few_files_stay(size: Callable[[random.Random], int]) -> None:
    files, chance = Files(), random.Random(1)
    for _ in range(3000):
        files.add(size(chance))
        while files.merge():
            pass
        small = [file for file in files.files.values() if not file.is_full(LIMITS)]
        assert len(small) <= CLASSES * (LIMITS.merged_files - 1) + 1
    assert max(files.times.values()) <= CLASSES + 1
    assert not files.merge()


def test_a_file_is_rewritten_once_an_eighth_of_it_is_marked() -> None:
    files = Files()
    files.add(800_000, marked=99_999)
    files.add(80, marked=0)
    assert not files.merge()
    files.add(800_000, marked=100_000)
    files.add(800, marked=800)
    (first,) = due_files(files.spec, files.files.values(), LIMITS)
    assert first.live_rows == 700_000
    assert files.merge()
    (then,) = due_files(files.spec, files.files.values(), LIMITS)
    assert then.live_rows == 0
    assert files.merge()
    assert not files.merge()


class Updated(Files):
    """A table of a million rows with marked rows that gets random updates; `of_row` has the file of each row."""

    UPDATES = 4_000
    """The updates of twenty seconds at 200 a second."""

    def __init__(self) -> None:
        super().__init__()
        self.chance = np.random.default_rng(1)
        self.add(1_000_000)
        self.of_row = np.full(1_000_000, self.number, np.int64)
        self.written = {"rows": 0, "vectors": 0, "merges": 0}

    def update(self) -> None:
        """Apply a batch: rows are marked where they are, and a small file takes in what comes in their place."""
        rows = np.unique(self.chance.integers(0, len(self.of_row), self.UPDATES))
        numbers, counts = np.unique(self.of_row[rows], return_counts=True)
        small = min(
            (file for file in self.files.values() if file.size <= LIMITS.small_file_bytes), key=_rows, default=None
        )
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            file = self.files[f"part-{number}"]
            marked = file.rows - file.live_rows + count
            self.files[file.path] = data_file(number, file.rows, marked)
            # A Roaring bitmap has two bytes for a row, and at most 8 KiB for 65,536 of them.
            self.written["vectors"] += min(2 * marked, file.rows // 8) * (file != small)
        if small is None:
            self.number += 1
            small = data_file(self.number, 0)
            self.times[small.path] = 1
        taken = self.files.get(small.path, small).live_rows + len(rows)
        number = int(small.path.partition("-")[2])
        self.files[small.path] = data_file(number, taken)
        self.of_row[rows] = number
        self.written["rows"] += self.files[small.path].size

    def merge(self) -> bool:
        previous_files = set(self.files)
        is_due = super().merge()
        removed_numbers = [int(path.partition("-")[2]) for path in previous_files - self.files.keys()]
        if is_due:
            self.of_row[np.isin(self.of_row, removed_numbers)] = self.number
            self.written["merges"] += self.files[f"part-{self.number}"].size
        return is_due


def _rows(file: DataFile) -> int:
    return file.rows


@pytest.mark.slow
def test_random_updates_write_no_more_in_each_half_hour_than_in_the_one_before() -> None:
    """In the first one it is less: vectors grow until the first file is written anew without its marked rows."""
    table_, written = Updated(), [0]
    for _ in range(3):
        for _ in range(90):
            table_.update()
            table_.merge()
            assert len(table_.files) <= 3 * LIMITS.merged_files
        written.append(sum(table_.written.values()))
    first, second, third = np.diff(written).tolist()
    assert third < 1.1 * second < 1.6 * first
    while table_.merge():
        pass
    assert sum(file.live_rows for file in table_.files.values()) == 1_000_000
    assert all(8 * (file.rows - file.live_rows) < file.rows for file in table_.files.values())
