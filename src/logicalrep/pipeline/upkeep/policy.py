"""The files of a table that are to be written anew: few small ones stay, and none with many marked rows.

A table is at rest in the end: each merge leaves fewer files, or fewer marked rows, until none is due. Files that are
not full are of classes by the numbers of their rows, each `STEP` times those of the class below. `STEP` files of a
class are due, and become one of a higher class: so a row is written anew once for each class at most, and there are
fewer than `STEP` files of each class.
"""

from __future__ import annotations

from collections.abc import Collection

from logicalrep.pipeline.schema.forms import END
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile

STEP = 8
"""The least number of files of a class that are merged."""
LEAST_ROWS = 64
"""Files of fewer rows are the lowest class."""
MOST_FILES = 2 * STEP
"""The most files that are merged at once."""
MOST_MARKED = 8
"""A file is written anew once one row of so many is marked; docs/explanation/performance.md has the cost of others."""


def due_files(table: TableSpec, files: Collection[DataFile]) -> tuple[DataFile, ...]:
    """Return the files of a table that are to be written anew at once; none if the table is at rest.

    Files of different file partitions stay apart. Of files that become fewer, the smallest one of each file partition
    stays apart too, as it takes in new rows.
    """
    worn = [file for file in files if MOST_MARKED * (file.rows - file.rows_there) >= file.rows > 0]
    if worn:
        return (max(worn, key=lambda file: file.rows - file.rows_there),)
    classes: dict[object, list[DataFile]] = {}
    growing: set[object] = set()
    for file in sorted((each for each in files if not each.is_full), key=lambda file: file.size):
        if file.partition not in growing:
            growing.add(file.partition)
            continue
        # Ended versions of rows never change; current ones do. They are kept in different files.
        is_past = table.form == "history" and not file.statistics.nulls.get(END["history"], 1)
        classes.setdefault((file.partition, is_past, _class_of(file)), []).append(file)
    most = max(classes.values(), key=len, default=[])
    if len(most) < STEP:
        return ()
    # Neighbours by the first column of the key.
    name = table.key_names[0] if table.key_names else ""
    most.sort(key=lambda file: (name not in file.statistics.least, file.statistics.least.get(name)))
    return tuple(most[:MOST_FILES])


def _class_of(file: DataFile) -> int:
    number, bound = 0, LEAST_ROWS
    while file.rows_there >= bound:
        number, bound = number + 1, bound * STEP
    return number
