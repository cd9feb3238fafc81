"""The access to memory of kernels in Python, each index checked: kernels run as written, without a compilation.

Imported before anything in columns, it stands in for `logicalrep_runtime.columnar.memory` and `utf8`, which write
instructions. A kernel of a changed spec is tried in a second so, where its compilation takes a dozen.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
Array = NDArray[Any]


def compiled(function: F) -> F:
    return function


def _check(array: Array, start: int, size: int) -> None:
    if start < 0 or size < 0 or start + size > len(array):
        raise IndexError(f"a kernel goes to {start} to {start + size} of an array of {len(array)}")


def _load(width: int, signed: bool) -> Callable[[Array, int], int]:
    def load(data: Array, offset: int) -> int:
        _check(data, offset, width)
        return int.from_bytes(data[offset : offset + width].tobytes(), "big", signed=signed)

    return load


def read(array: Array, index: int) -> int:
    _check(array, index, 1)
    return int(array[index])


def write(array: Array, index: int, value: int) -> None:
    _check(array, index, 1)
    width = array.dtype.itemsize
    array[index : index + 1] = np.frombuffer((value & ((1 << 8 * width) - 1)).to_bytes(width, "little"), array.dtype)


def copy(target: Array, to: int, source: Array, start: int, length: int, limit: int) -> None:
    _check(target[:limit], to, length)
    _check(source, start, length)
    target[to : to + length] = source[start : start + length]


def find_zero(data: Array, start: int, end: int) -> int:
    _check(data, start, end - start)
    return next((offset for offset in range(start, end) if data[offset] == 0), -1)


def is_utf8(data: Array, start: int, end: int) -> bool:
    _check(data, start, end - start)
    try:
        data[start:end].tobytes().decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def are_utf8(texts: Array, start: int, length: int, ends: Array) -> bool:
    return all(is_utf8(texts, start + int(a), start + int(b)) for a, b in pairwise(ends))


class _Record:
    """A column's record, whose fields are attributes in a kernel."""

    def __init__(self, columns: Array, index: int) -> None:
        vars(self).update(columns=columns, index=index)

    def __getattr__(self, name: str) -> int:
        return int(vars(self)["columns"][name][vars(self)["index"]])

    def __setattr__(self, name: str, value: int) -> None:
        vars(self)["columns"][name][vars(self)["index"]] = value


class _Records:
    """The records of all columns."""

    def __init__(self, columns: Array) -> None:
        self.columns = columns

    def __getitem__(self, index: int) -> _Record:
        return _Record(self.columns, index)


def _module(name: str, **names: Any) -> None:
    sys.modules[name] = ModuleType(name)
    vars(sys.modules[name]).update(names)


_integers = {
    f"{'' if signed else 'u'}int{8 * width}": _load(width, signed) for width in (1, 2, 4) for signed in (False, True)
}
_int64 = _load(8, True)
_module(
    "logicalrep_runtime.columnar.memory",
    **_integers,
    int64=_int64,
    # As in compiled kernels, which keep the bits alone.
    uint64=_int64,
    compiled=compiled,
    inlined=compiled,
    read=read,
    write=write,
    copy=copy,
    find_zero=find_zero,
)
_module("logicalrep_runtime.columnar.utf8", is_utf8=is_utf8, are_utf8=are_utf8)

from logicalrep_runtime.columnar import locate, rows  # noqa: E402


def _block(columns: Array, *integers: Array) -> rows.Block:
    return rows.Block(_Records(columns), *integers)  # type: ignore[arg-type]


vars(locate)["Block"] = _block
