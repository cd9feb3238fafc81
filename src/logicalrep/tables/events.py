"""The rows of a typed table as events, in Spark's SQL: their order, what they say of a row, the columns' names."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql.functions import col

POSITION = "struct(_commit_version, _ordinal)"
"""The two images of an update share it."""

ORDER = "struct(_commit_version, _ordinal, _change_type <> 'update_preimage')"
IS_GONE = "_change_type IN ('update_preimage', 'delete')"
"""Of the two images of an update the one after it counts: where there is none of the same key, the row has another."""


def column(name: str) -> Column:
    """The column of that name, whatever characters are in it."""
    return col("`" + name.replace("`", "``") + "`")
