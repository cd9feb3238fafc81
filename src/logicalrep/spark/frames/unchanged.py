"""The values that changes leave out, taken from earlier changes or from the copy of the table.

The server does not send an unchanged value that is stored out of line (TOAST); `_unchanged` names its column. A row
keeps such a value when its key changes: the value is then found under the previous key.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql.functions import (
    array,
    array_compact,
    array_contains,
    coalesce,
    count,
    expr,
    first,
    last,
    lit,
    struct,
    when,
    xxhash64,
)

from logicalrep.spark.frames.events import IS_GONE, ORDER, POSITION, column

_KNOWN, _MOVED, _NOWHERE = 0, 1, 2
"""The states of a column: its value is known; it is the preimage's value; it is unknown.

During the search each column is a struct of this `kind` and the `value`, or NULL if the previous change of the key
decides.
"""


def with_unchanged(table: DataFrame, events: DataFrame, keys: Sequence[str], names: Sequence[str]) -> DataFrame:
    """Return the events with the unchanged values of earlier events or of `table`, the copy before the changes.

    `_unchanged` of the result names the values that neither has. No event truncates.
    """
    # The preimage has a key that is stored out of line and was not sent again.
    sent = {name: _over_change(first(column(name), ignorenulls=True)) for name in names if name in keys}
    events = events.withColumns({name: coalesce(column(name), value) for name, value in sent.items()})
    names = [name for name in names if name not in keys]
    states = events.withColumns({name: _own_state(name) for name in names})
    states = states.unionByName(_initial_states(table, events, keys, names), allowMissingColumns=True)
    is_moved = reduce(or_, (column(name)["kind"] == _MOVED for name in names), lit(False))
    # A value can move with its row through several keys; each round resolves one move.
    while not states.where(is_moved).isEmpty():
        states = states.withColumns({name: struct(column(name).alias("state"), _latest(name, keys)) for name in names})
        states = states.withColumns({name: _resolved_state(name) for name in names}).localCheckpoint()
    states = states.withColumns({name: _latest(name, keys) for name in names})
    is_known = {name: coalesce(column(name)["kind"] == _KNOWN, lit(False)) for name in names}
    values = {name: when(is_known[name], column(name)["value"]) for name in names}
    nowhere = array_compact(array(*(when(~is_known[name], lit(name)) for name in names)))
    return states.where("_change_type IS NOT NULL").withColumns(values | {"_unchanged": nowhere})


def _own_state(name: str) -> Column:
    """Return a column's state after a change by itself. Inserts made from updates by a row filter lack values."""
    is_left_out = array_contains("_unchanged", name)
    has_preimage = _over_change(count("*")) > 1
    return (
        when(expr(IS_GONE), None)
        .when(~is_left_out, _state(_KNOWN, column(name)))
        .when(expr("_change_type = 'insert'"), _state(_NOWHERE, column(name)))
        .when(has_preimage, _state(_MOVED, column(name)))
    )


def _initial_states(table: DataFrame, events: DataFrame, keys: Sequence[str], names: Sequence[str]) -> DataFrame:
    """Return the copy's rows with changed keys, as states before the first change.

    NULL in the copy is not a known value: the copy may not have received a value that is stored out of line.
    """
    rows = table.join(events.select([column(key) for key in keys]), list(keys), "left_semi")
    # Each row has its own position, as Spark would gather rows that share one in a single partition.
    ordinal = xxhash64(*map(column, keys)).alias("_ordinal")
    states = (when(column(name).isNotNull(), _state(_KNOWN, column(name))).alias(name) for name in names)
    return rows.select(*map(column, keys), ordinal, *states)


def _resolved_state(name: str) -> Column:
    """Return a column's state: the preimage's if the value moved with the row, which may have moved before."""
    state = column(name)["state"]
    preimage = when(expr("_change_type = 'update_preimage'"), column(name)["latest"])
    moved = coalesce(_over_change(first(preimage, ignorenulls=True)), _state(_NOWHERE, state["value"]))
    return when(state["kind"] == _MOVED, moved).otherwise(state)


def _state(kind: int, value: Column) -> Column:
    return struct(lit(kind).alias("kind"), value.alias("value"))


def _latest(name: str, keys: Sequence[str]) -> Column:
    until_now = (
        Window.partitionBy([column(key) for key in keys]).orderBy(expr(ORDER)).rowsBetween(Window.unboundedPreceding, 0)
    )
    return last(column(name), ignorenulls=True).over(until_now).alias("latest")


def _over_change(aggregate: Column) -> Column:
    return aggregate.over(Window.partitionBy(expr(POSITION)))
