"""Batches of messages to Arrow: the hand-written half, which a generated package brings its plans and kernels to.

`locate` runs a version's compiled kernel, which notes where every value is; `arrow` makes arrays of that; `batches` is
both, for a whole batch. `memory`, `rows` and `utf8` are what kernels are made of.
"""

from __future__ import annotations

import importlib.util

_MISSING = [name for name in ("numpy", "numba", "pyarrow") if importlib.util.find_spec(name) is None]
if _MISSING:
    raise ImportError(
        f"reading in columns needs {' and '.join(_MISSING)}: pip install 'logicalrep[arrow]'", name=_MISSING[0]
    )

from logicalrep_runtime.columnar.batches import (  # noqa: E402
    ColumnarSession,
    LocatedBatch,
    RowDecodeError,
    batch_schema,
    decode_batch,
    locate_batch,
)

__all__ = [
    "ColumnarSession",
    "LocatedBatch",
    "RowDecodeError",
    "batch_schema",
    "decode_batch",
    "locate_batch",
]
