"""The rows of a typed table as events, in Spark's SQL: their order, their effect on a row, the columns' names."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql.functions import col

POSITION = "struct(_commit_version, _ordinal)"
"""The position of a change, which the two images of an update share."""

ORDER = "struct(_commit_version, _ordinal, _change_type <> 'update_preimage')"
IS_GONE = "_change_type IN ('update_preimage', 'delete')"
"""A preimage removes the row only if the update's new row has another key."""


def column(name: str) -> Column:
    return col("`" + name.replace("`", "``") + "`")
