"""The files of a table that are to be written anew: few small ones stay, and none with many marked rows.

A table is at rest in the end: each merge leaves fewer files, or fewer marked rows, until none is due. Files that are
not full are of classes by the numbers of their rows, each `Limits.merged_files` times those of the class below. So many
files of a class are due, and become one of a higher class: so a row is written anew once for each class at most, and
there are fewer files of each class than that.
"""

from __future__ import annotations

from collections.abc import Collection

from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.forms import END
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile

LEAST_ROWS = 64
"""Files of fewer rows are the lowest class."""


def due_files(table: TableSpec, files: Collection[DataFile], limits: Limits) -> tuple[DataFile, ...]:
    """Return the files of a table that are to be written anew at once; none if the table is at rest.

    Files of different file partitions stay apart. Of files that become fewer, the smallest one of each file partition
    stays apart too, as it takes in new rows.
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
        # Ended versions of rows never change; current ones do. They are kept in different files.
        is_past = table.form == "history" and not file.statistics.nulls.get(END["history"], 1)
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
