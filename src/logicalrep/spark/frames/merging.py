"""The state of a table after a batch of its changes, as DataFrames; the last change of each key decides."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, col, concat, concat_ws, expr, lit, max_by, raise_error, size, struct, when

from logicalrep.spark.frames.events import IS_GONE, ORDER, POSITION, column
from logicalrep.spark.frames.fitting import MergeError, fitted
from logicalrep.spark.frames.unchanged import with_unchanged


def changed_rows(table: DataFrame, changes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return a row for each changed key: the table's columns, and `_deleted`, which is true if the row was deleted.

    Use the rows in a MERGE: delete matched rows that are `_deleted`, update other matched rows, insert the rest
    unless `_deleted`. A deleted row has values for the keys only. After a truncate the result includes all rows of
    `table`.

    Args:
        table: the copy before the changes, or the rows of a snapshot: its columns in any order, of the types of
            `changes`, and NULL where it lacks a column.
        changes: rows of a typed table, complete for their transactions. Spark reads both DataFrames several times,
            partly before this function returns: persist `changes`.
        keys: the columns of the replica identity; with REPLICA IDENTITY FULL the columns of any unique index that is
            not deferrable.

    Raises:
        MergeError: columns, types or keys do not fit.

    Reading the rows fails on a change without a value for a key, on a change that leaves out a value which the copy
    lacks too, and after a truncate on a row of the copy without a value for a key.

    Example:
        >>> rows = changed_rows(copy, changes.persist(), keys=["id"])
        >>> merge = DeltaTable.forName(spark, "orders").alias("t").merge(rows.alias("c"), "t.id = c.id")
        >>> merge = merge.whenMatchedDelete("c._deleted").whenMatchedUpdateAll()
        >>> merge.whenNotMatchedInsertAll("NOT c._deleted").execute()
    """
    current = fitted(table, changes, keys)
    changed, is_truncated = _changed(current, changes, keys)
    if not is_truncated:
        return changed
    truncated = current.join(changed, list(keys), "left_anti")
    checked = [
        _named_key(name, "a row of the copy", "no MERGE deletes it after this truncate: delete it first")
        for name in keys
    ]
    return changed.unionByName(truncated.select(*checked, lit(True).alias("_deleted")), allowMissingColumns=True)


def merged(table: DataFrame, changes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the table after the changes, its columns in the order of `changes`.

    For arguments and errors see `changed_rows`. A truncate removes all rows of the copy, also rows without a value
    for a key.

    Example:
        >>> merged(spark.read.parquet("orders/1"), batch, keys=["id"]).write.parquet("orders/2")
    """
    current = fitted(table, changes, keys)
    changed, is_truncated = _changed(current, changes, keys)
    after = changed.where("NOT _deleted").drop("_deleted")
    if is_truncated:
        return after
    untouched = current.join(changed, list(keys), "left_anti")
    return untouched.select([column(name) for name in after.columns]).union(after)


def _changed(current: DataFrame, changes: DataFrame, keys: Sequence[str]) -> tuple[DataFrame, bool]:
    """Return a row for each key with changes after the last truncate, and whether the changes truncate."""
    facts = changes.selectExpr(
        f"max({POSITION}) FILTER (WHERE _change_type = 'truncate') AS truncated",
        "array_distinct(flatten(collect_set(_unchanged))) AS unchanged",
    ).first()
    assert facts is not None
    events = changes.where("_change_type <> 'truncate'")
    if facts.truncated is not None:
        version, ordinal = facts.truncated
        events = events.where(f"{POSITION} > struct({version}L, {ordinal}L)")
        current = current.limit(0)
    if facts.unchanged:
        events = with_unchanged(current, events, keys, facts.unchanged)
    is_gone = expr(IS_GONE)
    values = [when(~is_gone, column(name)).alias(name) for name in current.columns if name not in keys]
    row = struct(is_gone.alias("_deleted"), "_unchanged", *values)
    # The row's struct is named `_deleted`, the only name that no column of the table can have.
    checked = [_named_key(name, "a change", "is it a column of the replica identity?") for name in keys]
    last = events.groupBy(checked).agg(max_by(row, expr(ORDER)).alias("_deleted"))
    changed = last.select(
        *(column(name) if name in keys else _last_change_field(name).alias(name) for name in current.columns),
        _checked(keys).alias("_deleted"),
    )
    return changed, facts.truncated is not None


def _last_change_field(name: str) -> Column:
    return col("_deleted").getField(name)


def _named_key(key: str, whose: str, remedy: str) -> Column:
    error = MergeError(f"{whose} has no value for the key {key}: {remedy}", code="KEY_NULL")
    return coalesce(column(key), raise_error(lit(str(error)))).alias(key)


def _checked(keys: Sequence[str]) -> Column:
    """Return whether the last change deletes, or an error for a row with an unknown value."""
    row = concat_ws(", ", *(concat(lit(f"{name} = "), column(name).cast("string")) for name in keys))
    unchanged = _last_change_field("_unchanged")
    text = (
        lit(str(MergeError("the values of ", code="VALUE_NOT_SENT"))),
        concat_ws(", ", unchanged),
        lit(" were not sent for the row "),
        row,
        lit(", and the copy lacks them: add them to the copy, or recreate it"),
    )
    is_deleted = _last_change_field("_deleted")
    return when(~is_deleted & (size(unchanged) > 0), raise_error(concat(*text))).otherwise(is_deleted)
