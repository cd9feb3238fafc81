"""Arrow arrays of maps and lists from flat Python lists, without a Python object for each entry."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa


class MapArrays:
    """Collects rows of names and values, and makes an array of maps from them."""

    __slots__ = ("_keys", "_sizes", "_values")

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._keys: list[str] = []
        self._values: list[bytes | None] = []

    def append(self, names: Sequence[str], values: Sequence[bytes | None]) -> None:
        """Add a row."""
        self._sizes.append(len(names))
        self._keys.extend(names)
        self._values.extend(values)

    def append_null(self) -> None:
        """Add a null row."""
        self._sizes.append(-1)

    def finish(self, type_: Any) -> Any:
        """Return the array, of Spark's map<string,string>. Raises ValueError for a value that is not UTF-8."""
        keys = pa.array(self._keys, type_.key_type)
        items = pa.array(self._values, pa.binary()).cast(type_.item_type)
        entries = pa.StructArray.from_arrays([keys, items], fields=list(_entries(type_)))
        return _nested(type_, self._sizes, entries)


class Lists:
    """Collects lists of strings, and makes an array of them."""

    __slots__ = ("_items", "_sizes")

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._items: list[str] = []

    def append(self, items: Sequence[str]) -> None:
        """Add a row."""
        self._sizes.append(len(items))
        self._items.extend(items)

    def finish(self, type_: Any) -> Any:
        """Return the array."""
        return _nested(type_, self._sizes, pa.array(self._items, type_.value_type))


def _entries(type_: Any) -> tuple[Any, Any]:
    return type_.key_field, type_.item_field


def _nested(type_: Any, sizes: list[int], children: Any) -> Any:
    """Make a list or map array from each row's number of children; -1 for a null row."""
    offsets = pa.array(accumulate((max(size, 0) for size in sizes), initial=0), pa.int32())
    null_count = sizes.count(-1)
    validity = None
    if null_count:
        validity = pa.array([size >= 0 for size in sizes], pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(
        type_, len(sizes), [validity, offsets.buffers()[1]], null_count=null_count, children=[children]
    )
