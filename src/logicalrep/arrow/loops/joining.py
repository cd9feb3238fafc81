"""The end of plain loops that concatenate bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from logicalrep_runtime.columnar.located import Bytes, Ints


def write_joined(parts: Sequence[bytes], ends: Ints, target: Bytes) -> int:
    """Write the parts one after another, and 0 and the end of each to `ends`. Return their size."""
    sizes: Any = np.cumsum([0, *map(len, parts)])
    ends[: len(sizes)] = sizes
    target[: sizes[-1]] = np.frombuffer(b"".join(parts), np.uint8)
    return int(sizes[-1])
