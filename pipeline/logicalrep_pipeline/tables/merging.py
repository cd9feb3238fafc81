"""What there is of a table after a batch of its changes, in DataFrames: for every table format, and without one.

Of the changes of a key the last one counts. What it leaves out, `unchanged` finds.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, col, concat, concat_ws, expr, lit, max_by, raise_error, size, struct, when

from logicalrep_pipeline.spark.schemas import TYPED_COLUMNS
from logicalrep_pipeline.tables.events import IS_GONE, ORDER, POSITION, column
from logicalrep_pipeline.tables.unchanged import with_unchanged


def changed_rows(table: DataFrame, changes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """A row for each key that changes: the table's columns, and `_deleted`, which is true where the row is gone.

    It is what a MERGE takes: delete what is there and `_deleted`, update what else is there, insert the rest unless
    `_deleted`. Of a deleted row only the keys have values. After a truncate all rows of `table` are among them.

    `changes` are rows of a typed table, all those of some transactions; `table` is the copy before them, its columns in
    any order, or the rows of a snapshot. `keys` are the columns of the replica identity, or where that is FULL those of
    any unique index that is not deferrable. Spark reads both several times, some of it before this returns: persist
    `changes`.

    Raises ValueError where the columns do not fit. A change without a value for a key, and one that leaves out a value
    which the copy does not have either, are errors when the rows are read.
    """
    columns = _columns(table, changes, keys)
    before = table.select([column(name) for name in columns])
    facts = changes.selectExpr(
        f"max({POSITION}) FILTER (WHERE _change_type = 'truncate') AS truncated",
        "array_distinct(flatten(collect_set(_unchanged))) AS unchanged",
    ).first()
    assert facts is not None
    events = changes.where("_change_type <> 'truncate'")
    if facts.truncated is not None:
        version, ordinal = facts.truncated
        events = events.where(f"{POSITION} > struct({version}L, {ordinal}L)")
    if facts.unchanged:
        copied = before if facts.truncated is None else before.limit(0)
        events = with_unchanged(copied, events, keys, facts.unchanged)
    is_gone = expr(IS_GONE)
    values = [when(~is_gone, column(name)).alias(name) for name in columns if name not in keys]
    row = struct(is_gone.alias("_deleted"), "_unchanged", *values)
    last = events.groupBy([_given(name) for name in keys]).agg(max_by(row, expr(ORDER)).alias("last"))
    changed = last.select(
        *(column(name) if name in keys else col("last").getField(name).alias(name) for name in columns),
        _checked(keys).alias("_deleted"),
    )
    if facts.truncated is None:
        return changed
    truncated = before.join(changed, list(keys), "left_anti")
    return changed.unionByName(
        truncated.select(*map(column, keys), lit(True).alias("_deleted")), allowMissingColumns=True
    )


def merged(table: DataFrame, changes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The table after the changes, its columns in the order of `changes`; takes and raises what `changed_rows` does."""
    changed = changed_rows(table, changes, keys)
    columns = [column(name) for name in changed.columns if name != "_deleted"]
    kept = table.join(changed, list(keys), "left_anti").select(columns)
    return kept.union(changed.where("NOT _deleted").select(columns))


def _columns(table: DataFrame, changes: DataFrame, keys: Sequence[str]) -> list[str]:
    """The columns of the table as the changes have them, once it is clear that all are there."""
    added = [field.name for field in TYPED_COLUMNS]
    columns, copied = ([name for name in frame.columns if name not in added] for frame in (changes, table))
    if not set(added) <= set(changes.columns):
        raise ValueError(f"these are no rows of a typed table, as the option `table` gives them: {changes.columns}")
    if set(copied) != set(columns):
        raise ValueError(f"the columns of the copy are {copied}, those of the changes {columns}")
    if isinstance(keys, str) or not keys or not set(keys) <= set(columns):
        raise ValueError(f"keys: {keys!r} is no list of columns of the table; it has {columns}")
    if "_deleted" in columns:
        raise ValueError("the table has a column _deleted itself")
    return columns


def _given(key: str) -> Column:
    """The key's value; an error where a change has none."""
    error = raise_error(lit(f"a change has no value for the key {key}: is it a column of the replica identity?"))
    return coalesce(column(key), error).alias(key)


def _checked(keys: Sequence[str]) -> Column:
    """Whether the last change deletes; an error where it writes a row of which nobody has all values."""
    row = concat_ws(", ", *(concat(lit(f"{name} = "), column(name).cast("string")) for name in keys))
    names = concat_ws(", ", "last._unchanged")
    text = (lit("the values of "), names, lit(" were not sent for the row "), row, lit(", and the copy lacks that row"))
    is_deleted = col("last._deleted")
    return when(~is_deleted & (size("last._unchanged") > 0), raise_error(concat(*text))).otherwise(is_deleted)
