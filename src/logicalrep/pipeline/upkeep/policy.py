"""The choice of files to merge: few small files remain, and no file with many marked rows.

Merging ends: each merge leaves fewer files, or fewer marked rows, until none is due. Files that are not full have
classes by their numbers of rows; the bound of each class is `Limits.merged_files` times the bound of the class below.
`Limits.merged_files` files of a class are due, and become one file of a higher class. So each row is rewritten at most
once for each class, and fewer files than that remain in each class.
"""

from __future__ import annotations

from collections.abc import Collection

from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.forms import END_COLUMN
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile

LEAST_ROWS = 64
"""The lowest class has files of fewer rows."""


def due_files(table: TableSpec, files: Collection[DataFile], limits: Limits) -> tuple[DataFile, ...]:
    """Return the files of a table for one merge; none if no merge is due.

    Files of different file partitions are not merged. Nor is the smallest file of each file partition, as it takes in
    new rows.
    """
    worn = [file for file in files if limits.merged_share * (file.rows - file.live_rows) >= file.rows > 0]
    if worn:
        return (max(worn, key=lambda file: file.rows - file.live_rows),)
    classes: dict[object, list[DataFile]] = {}
    growing: set[object] = set()
    for file in sorted((file for file in files if not file.is_full(limits)), key=lambda file: file.size):
        if file.partition not in growing:
            growing.add(file.partition)
            continue
        # Past versions never change, current ones do: they stay in different files.
        is_past = table.form == "history" and not file.statistics.nulls.get(END_COLUMN["history"], 1)
        classes.setdefault((file.partition, is_past, _class_of(file, limits.merged_files)), []).append(file)
    largest_class = max(classes.values(), key=len, default=[])
    if len(largest_class) < limits.merged_files:
        return ()
    # Neighbours by the first column of the key.
    name = table.key_names[0] if table.key_names else ""
    largest_class.sort(key=lambda file: (name not in file.statistics.least, file.statistics.least.get(name)))
    return tuple(largest_class[: limits.merged_at_once])


def _class_of(file: DataFile, step: int) -> int:
    number, bound = 0, LEAST_ROWS
    while file.live_rows >= bound:
        number, bound = number + 1, bound * step
    return number
