"""Arrow arrays of maps, lists and variants from flat Python lists, without a Python object for each entry."""

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


class Variants:
    """Collects rows of names and values, and makes an array of Spark's VARIANT objects of strings."""

    __slots__ = ("_layouts", "_rows")

    def __init__(self) -> None:
        self._rows: list[dict[str, bytes] | None] = []
        # The metadata and the columns' places in the order of their names, by column names.
        self._layouts: dict[tuple[str, ...], tuple[bytes, list[int]]] = {}

    def append(self, names: Sequence[str], values: Sequence[bytes | None]) -> None:
        """Add a row."""
        key = tuple(names)
        layout = self._layouts.get(key)
        if layout is None:
            order = sorted(range(len(key)), key=lambda at: key[at].encode())
            layout = self._layouts[key] = _metadata([key[at].encode() for at in order]), order
        metadata, order = layout
        self._rows.append({"value": _object([_string(values[at]) for at in order]), "metadata": metadata})

    def append_null(self) -> None:
        """Add a null row."""
        self._rows.append(None)

    def finish(self, type_: Any) -> Any:
        """Return the array, of Spark's VARIANT."""
        return pa.array(self._rows, type_)


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


# The binary encoding of VARIANT, as Parquet and Spark define it.

_SORTED_VERSION_1 = 0b0001_0001
_OBJECT = 2
_SHORT_STRING = 1
_LONG_STRING = 16 << 2
_NULL = b"\0"


def _size(number: int) -> int:
    return max((number.bit_length() + 7) // 8, 1)


def _metadata(names: list[bytes]) -> bytes:
    """Return the dictionary of the names, which are in order."""
    total = sum(map(len, names))
    size = _size(max(total, len(names)))
    parts = [bytes([_SORTED_VERSION_1 | (size - 1) << 6]), len(names).to_bytes(size, "little")]
    parts += [offset.to_bytes(size, "little") for offset in accumulate(map(len, names), initial=0)]
    return b"".join(parts + names)


def _object(values: list[bytes]) -> bytes:
    """Return an object whose field ids are 0, 1, …: the places of its names in the dictionary."""
    count = len(values)
    offset_size, id_size = _size(sum(map(len, values))), _size(max(count - 1, 0))
    is_large = count > 255
    header = (is_large << 4 | (id_size - 1) << 2 | (offset_size - 1)) << 2 | _OBJECT
    parts = [bytes([header]), count.to_bytes(4 if is_large else 1, "little")]
    parts += [number.to_bytes(id_size, "little") for number in range(count)]
    parts += [offset.to_bytes(offset_size, "little") for offset in accumulate(map(len, values), initial=0)]
    return b"".join(parts + values)


def _string(value: bytes | None) -> bytes:
    if value is None:
        return _NULL
    value.decode()
    if len(value) < 64:
        return bytes([len(value) << 2 | _SHORT_STRING]) + value
    return bytes([_LONG_STRING]) + len(value).to_bytes(4, "little") + value
