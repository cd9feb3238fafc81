"""The values that vectors have: a message as usual, each other thing that a row may be, and bytes that are refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from codegen.lowering.operations import (
    Bytes,
    Choose,
    Conditional,
    Constant,
    Group,
    Integer,
    Measure,
    Operation,
    Operations,
    Repeat,
    Take,
    Text,
    flat,
)
from codegen.lowering.rows import lower
from codegen.shared import mask
from codegen.spec.layouts import Message
from codegen.spec.versions import View
from codegen.vectors.codec import Fields, Writer, Written, plain, write

_TEXT, _OTHER_TEXTS = "public", {"empty": "", "of several bytes a character": "Größe 表 🐘"}
_BYTES, _OTHER_BYTES = "00ff41", {"empty": ""}
_ITEMS = 2


class Samples:
    """The values of one version's layouts in one session."""

    def __init__(self, view: View, facts: Mapping[str, bool]) -> None:
        self.view = view
        self.facts = facts

    def usual(self, operations: Operations) -> Fields:
        """Return values for all rows that are always there in this session."""
        return self._measured(operations, {one.name: self._value(one) for one in self._there(operations)})

    def others(self, operations: Operations, usual: Fields) -> Iterator[tuple[str, Fields]]:
        """Yield the same with one row changed, each with what is special about it."""
        for one in operations:
            if isinstance(one, Conditional) and one.ahead:
                tag, *depending = one.body
                for code in one.ahead:
                    values = usual | {tag.name: chr(code)} | {other.name: self._value(other) for other in depending}
                    ordered = {other.name: values[other.name] for other in flat(operations) if other.name in values}
                    yield f"{tag.name} is {chr(code)}", ordered
                continue
            for row in flat((one,)):
                if row.name in usual and not isinstance(row, Measure):
                    for what, value in self._variants(row):
                        yield f"{row.name}: {what}", self._measured(operations, usual | {row.name: value})

    def _there(self, operations: Operations) -> Iterator[Operation]:
        for one in operations:
            if not isinstance(one, Conditional):
                yield one
            elif self.facts.get(one.fact, False):
                yield from one.body

    def _value(self, one: Operation) -> Any:
        match one:
            case Repeat():
                return [self._value(one.body)] * _ITEMS
            case Group():
                return self.usual(lower(self.view, one.part.fields))
            case Choose():
                longest = max((other.fields for other in one.part.alternatives), key=len)
                return self.usual(lower(self.view, longest))
            case Text():
                return _TEXT
            case Bytes():
                return "00" * one.size or _BYTES
            case Constant():
                return plain(one, one.code)
            case Take(allowed=(_, *_)) if one.wrapper != "bool":
                return plain(one, one.allowed[0])
            case Take() if one.wrapper == "bool" or one.flags:
                return 1
        assert isinstance(one, Integer)
        return plain(one, ord("S") if one.is_character else int.from_bytes(bytes(range(1, one.width + 1)), "big"))

    def _variants(self, one: Operation) -> Iterator[tuple[str, Any]]:
        match one:
            case Repeat():
                usual = self._value(one.body)
                yield "none", []
                yield "one", [usual]
                yield from (
                    (what, [usual, value])
                    for what, value in self._variants(one.body)
                    if one.count or not self._ends(one.body, value)
                )
            case Group():
                operations = lower(self.view, one.part.fields)
                yield from self.others(operations, self.usual(operations))
            case Choose():
                for alternative in one.part.alternatives:
                    operations = lower(self.view, alternative.fields)
                    usual = self.usual(operations)
                    yield alternative.name, usual
                    for what, values in self.others(operations, usual):
                        yield f"{alternative.name}, {what}", values
            case Text():
                yield from _OTHER_TEXTS.items()
            case Bytes(size=0):
                yield from _OTHER_BYTES.items()
                yield from [("null", None)] if one.nullable else []
            case Take():
                yield from self._numbers(one)

    def _ends(self, one: Operation, value: Any) -> bool:
        """Return whether an item would be taken for the zero byte that ends a list."""
        writer = Writer(self.view)
        writer.operations((one,), {one.name: value})
        return writer.data.startswith(b"\0")

    def _numbers(self, one: Take) -> Iterator[tuple[str, Any]]:
        if one.wrapper == "bool":
            yield "false", 0
            return
        if one.allowed:
            yield from ((str(plain(one, code)), plain(one, code)) for code in one.allowed[1:])
            return
        numbers = {"greatest": 2 ** (8 * one.width - one.signed) - 1}
        if one.signed:
            numbers |= {"least": -(2 ** (8 * one.width - 1)), "minus one": -1}
        if one.is_character:
            numbers = {"another": ord("?")}
        if 0 not in one.refused:
            numbers["zero"] = 0
        numbers |= {f"mask {mask(bit)}, {name}": bit for bit, name in one.flags.items()}
        yield from ((what, plain(one, number)) for what, number in numbers.items())

    def _measured(self, operations: Operations, values: Fields) -> Fields:
        """Return the values with each measure as the row has it that it is of."""
        for one in flat(operations):
            if isinstance(one, Measure) and not one.of:
                writer = Writer(self.view)
                writer.operations(operations, values | {one.name: 0})
                values[one.name] = len(writer.data) - one.preceding
            elif isinstance(one, Measure) and values.get(one.of, "") is None:
                values[one.name] = -1
            elif isinstance(one, Measure) and one.name in values:
                is_list = isinstance(values[one.of], list)
                values[one.name] = len(values[one.of]) // (1 if is_list else 2)
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
    if isinstance(place.operation, Text):
        yield "not UTF-8", b"\xff\0"
    elif isinstance(place.operation, Integer) and place.operation.is_character:
        yield "another character", b"?"
    elif not isinstance(place.operation, Bytes):
        yield "all bits set", b"\xff" * width
        yield "zero", bytes(width)
        yield "two", (2).to_bytes(width, "big")
        yield "greatest", b"\x7f" + b"\xff" * (width - 1)
