"""Raw messages to record batches of committed changes, without a Python object per message: no Spark, no socket.

`committed_batches` reads any session's messages into batches in the form that `feed_form` or `table_form` returns.
`logicalrep_protocol.columnar` makes columns of the messages themselves; `loops/` has the loops. Needs
`pip install 'logicalrep[arrow]'`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logicalrep.arrow.reading import committed_batches
    from logicalrep.arrow.row_form import RowForm, feed_form
    from logicalrep.arrow.table.rows import table_form

__all__ = ["RowForm", "committed_batches", "feed_form", "table_form"]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> object:
    # Compiled loops take a moment to load, which is spared to importers of a single module.
    if name in __all__:
        from logicalrep.arrow import reading, row_form
        from logicalrep.arrow.table import rows

        return getattr({"committed_batches": reading, "table_form": rows}.get(name, row_form), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
