"""Batches of messages straight to Arrow, without a Python object for each: `pip install logicalrep[arrow]`.

    from logicalrep.columnar import Session, decode_batch

    batch, session = decode_batch(messages, Session(version=1))     # messages: a pyarrow array of bytes
    batch, session = decode_batch(more_messages, session)           # the next batch goes on from there

How it comes from the spec: `plans.py` (generated) has each version's columns, the field names of its messages;
`kernel_v1.py` and so on (generated) read and check messages in one compiled pass and note where every value is;
`walk.py` runs a kernel, `numpy_walk.py` does without numba what a kernel does, from the layouts; `arrow.py` makes
arrays of what either found. So a field that is added to the spec is read, checked and a column without a change here.
`kept.py` says where on disk compiled kernels are kept, and when they are compiled again.
"""

from __future__ import annotations

import importlib.util

_MISSING = [name for name in ("numpy", "pyarrow") if importlib.util.find_spec(name) is None]
if _MISSING:
    raise ImportError(
        f"logicalrep.columnar needs {' and '.join(_MISSING)}: pip install 'logicalrep[arrow]'", name=_MISSING[0]
    )

from logicalrep.columnar.batches import (  # noqa: E402
    RowDecodeError,
    Session,
    WalkedBatch,
    batch_schema,
    decode_batch,
    default_backend,
    walk_batch,
)

__all__ = [
    "RowDecodeError",
    "Session",
    "WalkedBatch",
    "batch_schema",
    "decode_batch",
    "default_backend",
    "walk_batch",
]
