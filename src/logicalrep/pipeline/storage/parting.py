"""The division of rows by a table's file partitions, before replicate writes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from logicalrep.pipeline.schema.file_partitions import FilePartition, PartitionColumnError, PartitionValue

MOST_PARTITIONS = 10_000
"""Limit of the partitions of rows that are written at once: each partition gets a file."""


def parted(
    partitions: Sequence[FilePartition], rows: pa.Table
) -> Iterator[tuple[tuple[PartitionValue, ...], pa.Table]]:
    """Yield the rows of each partition, in their order, with the partition's values.

    A copy of the rows is in memory, unless they all have one partition.

    Raises:
        PartitionValueError: the table's format cannot store a value.
        PartitionColumnError: the rows have more than MOST_PARTITIONS partitions.
    """
    if not rows.num_rows or not partitions:
        yield (), rows
        return
    codes = _codes(partitions, rows)
    ends = np.cumsum(np.bincount(codes)).tolist()
    if len(ends) > 1:
        rows = rows.take(pa.array(np.argsort(codes, kind="stable")))
    for first, end in pairwise([0, *ends]):
        part = rows.slice(first, end - first)
        yield partition_of(partitions, part), part


def partition_of(partitions: Sequence[FilePartition], rows: pa.Table) -> tuple[PartitionValue, ...]:
    """Return the partition of the first row."""
    return tuple(
        _value(partition.values_of(rows.column(partition.source).slice(0, 1).combine_chunks()))
        for partition in partitions
    )


def partitions_of(partitions: Sequence[FilePartition], rows: pa.Table) -> set[tuple[PartitionValue, ...]]:
    """Return the partitions of the rows."""
    if not rows.num_rows:
        return set()
    firsts = np.unique(_codes(partitions, rows), return_index=True)[1] if partitions else [0]
    return {partition_of(partitions, rows.slice(first)) for first in firsts}


def split_off(
    partitions: Sequence[FilePartition], rows: pa.Table, partition: tuple[PartitionValue, ...]
) -> tuple[pa.Table, pa.Table]:
    """Return the rows of a partition, and the rows of all other partitions."""
    if not partitions:
        return rows, rows.slice(0, 0)
    is_match = np.ones(rows.num_rows, bool)
    for file_partition, value in zip(partitions, partition, strict=True):
        values = file_partition.values_of(rows.column(file_partition.source).combine_chunks())
        is_equal = values.is_null() if value is None else pc.equal(values, value).fill_null(False)
        is_match &= is_equal.to_numpy(zero_copy_only=False)
    return rows.filter(pa.array(is_match)), rows.filter(pa.array(~is_match))


def _codes(partitions: Sequence[FilePartition], rows: pa.Table) -> NDArray[np.int64]:
    """Return a number from 0 for each row, equal for rows of one partition."""
    codes = np.zeros(rows.num_rows, np.int64)
    for partition in partitions:
        column = rows.column(partition.source)
        distinct = partition.values_of(column.combine_chunks()).dictionary_encode("encode")
        codes = codes * len(distinct.dictionary) + distinct.indices.to_numpy(zero_copy_only=False)
        # The numbers of existing combinations stay small with any number of columns.
        codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
        if int(codes.max()) >= MOST_PARTITIONS:
            raise PartitionColumnError(
                f"{rows.num_rows:,} rows are in more than {MOST_PARTITIONS:,} partitions by {partition.name}, "
                "each with a file of its own: partition by fewer values, as bucket(16, COLUMN) or month(COLUMN) do"
            )
    return codes


def _value(values: pa.Array) -> PartitionValue:
    value: PartitionValue = values[0].as_py()
    return value
