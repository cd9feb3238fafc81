"""The policy of upkeep: how often a row is written anew, how many files stay, and that a table comes to rest."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from logicalrep.pipeline.spec.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import MOST_ROWS, DataFile
from logicalrep.pipeline.storage.deletion_vectors import DeletionVector
from logicalrep.pipeline.storage.statistics import Statistics
from logicalrep.pipeline.upkeep.policy import LEAST_ROWS, STEP, due_files
from tests.pipeline.histories import table

BYTES_OF_A_ROW = 100
# Classes below those of full files, of which each row passes each once.
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
        due = due_files(self.spec, self.files.values())
        rows, times = 0, 0
        for file in due:
            del self.files[file.path]
            rows, times = rows + file.rows_there, max(times, self.times.pop(file.path))
            if rows >= MOST_ROWS:
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
        small = [file for file in files.files.values() if not file.is_full]
        assert len(small) <= CLASSES * (STEP - 1) + 1
    assert max(files.times.values()) <= CLASSES + 1
    assert not files.merge()


def test_a_file_is_written_anew_once_an_eighth_of_it_is_marked() -> None:
    files = Files()
    files.add(800_000, marked=99_999)
    files.add(80, marked=0)
    assert not files.merge()
    files.add(800_000, marked=100_000)
    files.add(800, marked=800)
    (first,) = due_files(files.spec, files.files.values())
    assert first.rows_there == 700_000
    assert files.merge()
    (then,) = due_files(files.spec, files.files.values())
    assert then.rows_there == 0
    assert files.merge()
    assert not files.merge()
