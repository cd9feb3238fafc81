"""Batches of messages to Arrow: the hand-written half, driven by a generated package's plans.

`locate` walks a batch and locates every value, with the walk of `logicalrep-native` or by `parse`; `arrow` makes arrays
from the positions; `batches` does both for a whole batch.
"""

from __future__ import annotations

import importlib.util

_MISSING = [name for name in ("numpy", "pyarrow") if importlib.util.find_spec(name) is None]
if _MISSING:
    raise ImportError(
        f"reading in columns needs {' and '.join(_MISSING)}: run pip install 'logicalrep[arrow]'",
        name=_MISSING[0],
    )

from logicalrep_runtime.columnar.batches import (  # noqa: E402
    LocatedBatch,
    RowDecodeError,
    batch_schema,
    decode_batch,
    locate_batch,
)
from logicalrep_runtime.columnar.session import ColumnarSession  # noqa: E402

__all__ = [
    "ColumnarSession",
    "LocatedBatch",
    "RowDecodeError",
    "batch_schema",
    "decode_batch",
    "locate_batch",
]
