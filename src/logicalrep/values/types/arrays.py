"""Arrays of any type: nested lists, with their lower bounds unless all are 1."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any, SupportsIndex

from logicalrep.values.types.binary import BinaryReader, FromBinary, FromText, ToText

__all__ = ["BoundedArray"]

# The server's own limit (MAXDIM).
MOST_DIMENSIONS = 6


class BoundedArray(list[Any]):
    """An array with a dimension that does not start at 1: a list with its lower bounds.

    It equals only a BoundedArray with the same elements and bounds, and no plain list.

    Attributes:
        lower_bounds: the index of the first element, for each dimension.
    """

    __slots__ = ("lower_bounds",)
    __hash__ = None

    def __init__(self, elements: Iterable[object], lower_bounds: tuple[int, ...]) -> None:
        super().__init__(elements)
        self.lower_bounds = lower_bounds

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoundedArray) and self.lower_bounds == other.lower_bounds and list.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __repr__(self) -> str:
        return f"BoundedArray({list(self)!r}, lower_bounds={self.lower_bounds!r})"

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[type[BoundedArray], tuple[object, ...]]:
        return BoundedArray, (list(self), self.lower_bounds)


def shaped(elements: list[object], lengths: list[int], lower_bounds: list[int]) -> list[object]:
    """Nest elements in storage order; `lengths` and `lower_bounds` start with the outermost dimension."""
    for length in reversed(lengths[1:]):
        elements = [elements[start : start + length] for start in range(0, len(elements), length)]
    if any(bound != 1 for bound in lower_bounds):
        return BoundedArray(elements, tuple(lower_bounds))
    return elements


# --- text ------------------------------------------------------------------------------------------------------

_BOUNDS = re.compile(r"((?:\[-?[0-9]{1,10}:-?[0-9]{1,10}\])+)=")
_BOUND = re.compile(r"\[(-?[0-9]+):(-?[0-9]+)\]")
_BACKSLASH = re.compile(r"\\(.)", re.DOTALL)

# The server quotes an element that is empty, is NULL in any case, or contains one of these or the delimiter.
_SPECIAL = r'"\\{} \t\n\r\v\f'


class ArrayText:
    """The text format of arrays: `{1,NULL,"a b"}`, `{{1,2},{3,4}}`, `[0:1]={1,2}`."""

    def __init__(self, load: FromText, format: ToText, delimiter: str) -> None:
        self._load = load
        self._format = format
        self._delimiter = delimiter
        # A token is an opening brace, or a quoted or unquoted element; closing braces and a delimiter follow.
        self._token = re.compile(rf'(?:(\{{)|"((?:[^"\\]|\\.)*)"|([^{_SPECIAL}{delimiter}]+))', re.DOTALL).match
        self._plain = re.compile(rf"\{{[^{_SPECIAL}]+\}}").fullmatch
        self._to_quote = re.compile(rf"[{_SPECIAL}{delimiter}]").search

    def load(self, text: str) -> list[object]:
        load = self._load
        if self._plain(text):  # one dimension, nothing quoted
            return [
                None if element.upper() == "NULL" else load(_not_empty(element))
                for element in text[1:-1].split(self._delimiter)
            ]
        declared: list[tuple[int, int]] | None = None
        start = 0
        if match := _BOUNDS.match(text):
            declared = [(int(low), int(high)) for low, high in _BOUND.findall(match[1])]
            start = match.end()
        elements, lengths = self._scan(text, start)
        if declared is None:
            return shaped(elements, lengths, [1] * len(lengths))
        if [high - low + 1 for low, high in declared] != lengths:
            raise ValueError("the bounds of the array do not agree with its elements")
        return shaped(elements, lengths, [low for low, _ in declared])

    def _scan(self, text: str, position: int) -> tuple[list[object], list[int]]:
        if text[position:] == "{}":
            return [], []
        load, delimiter, token = self._load, self._delimiter, self._token
        elements: list[object] = []
        counts: list[int] = []  # how many members each open brace has so far
        lengths: list[int] = []  # of each dimension, once its first brace is closed; 0 before
        end = len(text)
        while True:
            match = token(text, position)
            if match is None:
                raise ValueError(f"not the text of an array, at character {position}")
            position = match.end()
            brace, quoted, unquoted = match.groups()
            if brace:
                if len(counts) == MOST_DIMENSIONS:
                    raise ValueError(f"more than {MOST_DIMENSIONS} dimensions")
                if len(counts) == len(lengths):
                    if elements:
                        raise ValueError("braces at different depths")
                    lengths.append(0)
                counts.append(0)
                continue
            if len(counts) != len(lengths) or not counts:
                raise ValueError("elements at different depths")
            if unquoted is None:
                elements.append(load(_BACKSLASH.sub(r"\1", quoted) if "\\" in quoted else quoted))
            else:
                elements.append(None if unquoted.upper() == "NULL" else load(unquoted))
            counts[-1] += 1
            while position < end and text[position] == "}":
                position += 1
                depth = len(counts) - 1
                count = counts.pop()
                if not lengths[depth]:
                    lengths[depth] = count
                elif lengths[depth] != count:
                    raise ValueError("inner arrays of different lengths")
                if not counts:
                    if position != end:
                        raise ValueError("text after the array's end")
                    return elements, lengths
                counts[-1] += 1
            if position >= end or text[position] != delimiter:
                raise ValueError(f"no delimiter at character {position}")
            position += 1

    def format(self, value: list[object]) -> str:
        lengths = []
        level: object = value
        while isinstance(level, list) and level:
            lengths.append(len(level))
            level = level[0]
        if not lengths:
            return "{}"
        texts: list[Any] = value
        for _ in lengths[1:]:
            texts = [element for inner in texts for element in inner]
        members = [self._element(element) for element in texts]
        for length in reversed(lengths):
            members = [
                "{" + self._delimiter.join(members[start : start + length]) + "}"
                for start in range(0, len(members), length)
            ]
        if not isinstance(value, BoundedArray):
            return members[0]
        bounds = "".join(f"[{low}:{low + length - 1}]" for low, length in zip(value.lower_bounds, lengths, strict=True))
        return f"{bounds}={members[0]}"

    def _element(self, value: object) -> str:
        if value is None:
            return "NULL"
        text = self._format(value)
        if text and text.upper() != "NULL" and not self._to_quote(text):
            return text
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'


def _not_empty(element: str) -> str:
    if not element:
        raise ValueError("an element is missing")
    return element


# --- binary ----------------------------------------------------------------------------------------------------


def array_binary(
    loader: Callable[[int], FromBinary],
) -> Callable[[bytes, str], list[object]]:
    """Return a loader for binary arrays; `loader` returns the loader for an element type's OID, or refuses the OID."""

    def load_array(value: bytes, encoding: str) -> list[object]:
        reader = BinaryReader(value)
        dimensions, has_null, element_oid = reader.int32(), reader.int32(), reader.uint32()
        if not 0 <= dimensions <= MOST_DIMENSIONS:
            raise ValueError(f"{dimensions} dimensions")
        if has_null not in (0, 1):
            raise ValueError(f"the flag for NULLs is {has_null}")
        load = loader(element_oid)
        lengths, lower_bounds = [], []
        for _ in range(dimensions):
            lengths.append(reader.int32())
            lower_bounds.append(reader.int32())
            if lengths[-1] < 1:
                raise ValueError(f"a dimension of length {lengths[-1]}")
        count = math.prod(lengths) if lengths else 0
        if 4 * count > reader.remaining:
            raise ValueError(f"{count} elements, where {reader.remaining} bytes are left")
        elements: list[object] = []
        for _ in range(count):
            field = reader.field()
            if field is None:
                if not has_null:
                    raise ValueError("a NULL in an array without NULLs")
                elements.append(None)
            else:
                elements.append(load(field, encoding))
        reader.end()
        return shaped(elements, lengths, lower_bounds)

    return load_array


def for_element_type(oid: int, load: FromBinary) -> Callable[[int], FromBinary]:
    """Return a `loader` for `array_binary` that accepts only the element type with this OID."""

    def loader(element_oid: int) -> FromBinary:
        if element_oid != oid:
            raise ValueError(f"elements of the type with OID {element_oid}, not {oid}")
        return load

    return loader
