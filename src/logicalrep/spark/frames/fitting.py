"""The check that a copy of a table fits its changes; Spark would silently convert values of other types."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from logicalrep.spark.frames.events import column
from logicalrep.spark.schemas import TYPED_COLUMNS
from logicalrep_runtime.errors import LogicalRepError


class MergeError(LogicalRepError, ValueError):
    """A copy and its changes do not fit together; the text names the column and the remedy."""

    code = "COPY_DIFFERS"


def fitted(table: DataFrame, changes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the copy in the columns of `changes`, NULL where it lacks one. Raises MergeError if it does not fit."""
    added = {field.name for field in TYPED_COLUMNS}
    if not added <= set(changes.columns):
        raise MergeError(
            f"the changes are not rows of a typed table, read with the option `table`: {changes.columns}",
            code="CHANGES_NOT_TYPED",
        )
    for frame in (table, changes):
        _check_names(frame)
    copied, types = (
        {field.name: field.dataType for field in frame.schema if field.name not in added} for frame in (table, changes)
    )
    _check_keys(keys, list(types))
    more = [name for name in copied if name not in types]
    if more:
        raise MergeError(
            f"the copy has the columns {', '.join(more)}, which the changes lack: drop the columns that the table no "
            f"longer has by table.drop({', '.join(map(repr, more))})"
        )
    for name, type_ in types.items():
        if name not in copied:
            if name in keys:
                raise MergeError(f"the copy lacks the key's column {name}: recreate the copy")
        # Spark's text of a type leaves out the nullability of its parts.
        elif copied[name].simpleString() != type_.simpleString():
            raise MergeError(
                f"the column {name} is {copied[name].simpleString()} in the copy and {type_.simpleString()} in the "
                f"changes: cast one of them, for example by table.withColumn({name!r}, "
                f"table[{name!r}].cast({type_.simpleString()!r})) where that loses nothing, or recreate the copy"
            )
    return table.select(
        [column(name) if name in copied else lit(None).cast(type_).alias(name) for name, type_ in types.items()]
    )


def _check_names(frame: DataFrame) -> None:
    names = [*frame.columns, "_deleted"]
    is_case_sensitive = (frame.sparkSession.conf.get("spark.sql.caseSensitive") or "").lower() == "true"
    folded = names if is_case_sensitive else [name.lower() for name in names]
    ambiguous = [name for name, folded_name in zip(names, folded, strict=True) if folded.count(folded_name) > 1]
    if ambiguous:
        raise MergeError(
            f"Spark cannot tell the columns {', '.join(ambiguous)} apart (_deleted is one of changed_rows): where they "
            "differ in case set spark.sql.caseSensitive to true, else rename the table's column",
            code="COLUMNS_AMBIGUOUS",
        )


def _check_keys(keys: Sequence[str], columns: Sequence[str]) -> None:
    if not keys:
        raise MergeError(
            "keys is empty, and rows of a table without a key cannot be told apart: name the columns of a unique index "
            "(with REPLICA IDENTITY FULL where they are not the replica identity), or append the changes to a log",
            code="KEYS_INVALID",
        )
    if isinstance(keys, str) or len(set(keys)) < len(keys) or not set(keys) <= set(columns):
        raise MergeError(
            f"keys: {keys!r} is not a list of columns of the table; it has {', '.join(columns)}", code="KEYS_INVALID"
        )
