"""The values that vectors have: a message as usual, each other thing that a row may be, and bytes that are refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from codegen.shared import mask
from codegen.spec.model import Field, Message, counted
from codegen.spec.notation import Byten, String
from codegen.spec.versions import View
from codegen.vectors.codec import Fields, Written, plain, write

_TEXT, _OTHER_TEXTS = "public", {"empty": "", "of several bytes a character": "Größe 表 🐘"}
_BYTES, _OTHER_BYTES = "00ff41", {"empty": ""}
_ITEMS = 2


class Samples:
    """The values of one version's layouts in one session."""

    def __init__(self, view: View, facts: Mapping[str, bool]) -> None:
        self.view = view
        self.facts = facts

    def usual(self, fields: tuple[Field, ...]) -> Fields:
        """Return values for all rows that are always there in this session."""
        values: Fields = {}
        for row in fields:
            if self._is_there(row, values) and not row.optional:
                values[row.name] = [self._value(row)] * _ITEMS if row.repeat else self._value(row)
        return self._counted(fields, values)

    def others(self, fields: tuple[Field, ...], usual: Fields) -> Iterator[tuple[str, Fields]]:
        """Yield the same with one row changed, each with what is special about it."""
        for row in fields:
            if row.optional:
                for constant in row.constants:
                    depending = {other.name: self._value(other) for other in fields if other.when == row.name}
                    values = usual | {row.name: constant} | depending
                    ordered = {other.name: values[other.name] for other in fields if other.name in values}
                    yield f"{row.name} is {constant}", ordered
            elif row.name not in usual or counted(fields, row) is not None:
                continue
            elif row.repeat:
                for what, items in self._lists(row):
                    yield f"{row.name}: {what}", self._counted(fields, usual | {row.name: items})
            else:
                for what, value in self._variants(row):
                    yield f"{row.name}: {what}", self._counted(fields, usual | {row.name: value})

    def _is_there(self, row: Field, values: Fields) -> bool:
        return row.when is None or self.facts.get(row.when, row.when in values)

    def _lists(self, row: Field) -> Iterator[tuple[str, list[Any]]]:
        usual = self._value(row)
        yield "none", []
        yield "one", [usual]
        for what, value in self._variants(row):
            yield what, [usual, value]

    def _value(self, row: Field) -> Any:
        part = self.view.part_of(row)
        if part is not None:
            return self.usual(part.fields or max((other.fields for other in part.alternatives), key=len))
        if isinstance(row.type, String):
            return _TEXT
        if isinstance(row.type, Byten):
            return _BYTES
        if row.codes:
            return plain(row, row.codes[0])
        if row.boolean or row.bits:
            return 1
        return plain(row, int.from_bytes(bytes(range(1, row.width + 1)), "big"))

    def _variants(self, row: Field) -> Iterator[tuple[str, Any]]:
        part = self.view.part_of(row)
        if part is not None:
            for alternative in part.alternatives:
                usual = self.usual(alternative.fields)
                yield alternative.name, usual
                for what, values in self.others(alternative.fields, usual):
                    yield f"{alternative.name}, {what}", values
            if part.fields:
                yield from self.others(part.fields, self.usual(part.fields))
        elif isinstance(row.type, String):
            yield from _OTHER_TEXTS.items()
        elif isinstance(row.type, Byten):
            yield from _OTHER_BYTES.items()
        elif row.legal:
            yield from ((str(value), value) for value in row.legal[1:])
        else:
            yield from self._numbers(row)

    def _numbers(self, row: Field) -> Iterator[tuple[str, Any]]:
        signed = self.view.protocol.signed(row)
        numbers = {"greatest": 2 ** (8 * row.width - signed) - 1}
        if row.boolean:
            numbers = {"false": 0}
        elif signed:
            numbers |= {"least": -(2 ** (8 * row.width - 1)), "minus one": -1}
        if not row.nonzero and not row.boolean:
            numbers["zero"] = 0
        numbers |= {f"mask {mask(bit)}, {name}": bit for bit, name in row.bits.items()}
        yield from ((what, plain(row, number)) for what, number in numbers.items())

    def _counted(self, fields: tuple[Field, ...], values: Fields) -> Fields:
        """Return the values with each length and number as the row has it that it is of."""
        for row in fields:
            other = counted(fields, row)
            if row.name in values and other is not None:
                values[row.name] = len(values[other.name]) // (1 if other.repeat else 2)
        return values


def damaged(view: View, message: Message, usual: Fields) -> dict[bytes, str]:
    """Return bytes that are one change away from a message, each with the change; some of them are messages too."""
    data, written = write(view, message, usual)
    found: dict[bytes, str] = {}
    for place in written:
        for what, patch in _patches(place):
            found.setdefault(data[: place.start] + patch + data[place.end :], f"{place.path}: {what}")
    for place in written:
        if place.end > place.start:
            found.setdefault(data[: place.end - 1], f"ends within {place.path}")
    found.setdefault(data + b"\0", "a byte too many")
    found.pop(data, None)
    return found


def _patches(place: Written) -> Iterator[tuple[str, bytes]]:
    width = place.end - place.start
    if isinstance(place.row.type, String):
        yield "not UTF-8", b"\xff\0"
    elif place.row.is_character:
        yield "another character", b"?"
    elif not isinstance(place.row.type, Byten):
        yield "all bits set", b"\xff" * width
        yield "zero", bytes(width)
        yield "two", (2).to_bytes(width, "big")
        yield "greatest", b"\x7f" + b"\xff" * (width - 1)
