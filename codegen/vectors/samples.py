"""Values of vectors: usual values, variants of each row, and damaged bytes."""

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
from codegen.model.layouts import Message
from codegen.model.versions import View
from codegen.shared import mask
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
        """Return values for all rows that are always present in this session."""
        return self._measured(
            operations, {operation.name: self._value(operation) for operation in self._there(operations)}
        )

    def others(self, operations: Operations, usual: Fields) -> Iterator[tuple[str, Fields]]:
        """Yield the values with one row changed, each with a description of the change."""
        for operation in operations:
            if isinstance(operation, Conditional) and operation.ahead:
                tag, *depending = operation.body
                for code in operation.ahead:
                    values = usual | {tag.name: chr(code)} | {other.name: self._value(other) for other in depending}
                    ordered = {other.name: values[other.name] for other in flat(operations) if other.name in values}
                    yield f"{tag.name} is {chr(code)}", ordered
                continue
            for row in flat((operation,)):
                if row.name in usual and not isinstance(row, Measure):
                    for what, value in self._variants(row):
                        yield f"{row.name}: {what}", self._measured(operations, usual | {row.name: value})

    def _there(self, operations: Operations) -> Iterator[Operation]:
        for operation in operations:
            if not isinstance(operation, Conditional):
                yield operation
            elif self.facts.get(operation.fact, False):
                yield from operation.body

    def _value(self, operation: Operation) -> Any:
        match operation:
            case Repeat():
                return [self._value(operation.body)] * _ITEMS
            case Group():
                return self.usual(lower(self.view, operation.part.fields))
            case Choose():
                longest = max((other.fields for other in operation.part.alternatives), key=len)
                return self.usual(lower(self.view, longest))
            case Text():
                return _TEXT
            case Bytes():
                return operation.constant.hex() or "00" * operation.size or _BYTES
            case Constant():
                return plain(operation, operation.code)
            case Take(allowed=(_, *_)) if operation.wrapper != "bool":
                return plain(operation, operation.allowed[0])
            case Take() if operation.wrapper == "bool" or operation.flags:
                return 1
        assert isinstance(operation, Integer)
        return plain(
            operation,
            ord("S") if operation.is_character else int.from_bytes(bytes(range(1, operation.width + 1)), "big"),
        )

    def _variants(self, operation: Operation) -> Iterator[tuple[str, Any]]:
        match operation:
            case Repeat():
                usual = self._value(operation.body)
                yield "none", []
                yield "one", [usual]
                yield from (
                    (what, [usual, value])
                    for what, value in self._variants(operation.body)
                    if operation.count or not self._ends(operation, value)
                )
            case Group():
                operations = lower(self.view, operation.part.fields)
                yield from self.others(operations, self.usual(operations))
            case Choose():
                for alternative in operation.part.alternatives:
                    operations = lower(self.view, alternative.fields)
                    usual = self.usual(operations)
                    yield alternative.name, usual
                    for what, values in self.others(operations, usual):
                        yield f"{alternative.name}, {what}", values
            case Text():
                yield from _OTHER_TEXTS.items()
            case Bytes(size=0):
                yield from _OTHER_BYTES.items()
                yield from [("null", None)] if operation.nullable else []
            case Take():
                yield from self._numbers(operation)

    def _ends(self, repeat: Repeat, value: Any) -> bool:
        """Return whether an item begins with the zero byte or the constant that ends a list."""
        writer = Writer(self.view)
        writer.operations((repeat.body,), {repeat.body.name: value})
        return writer.data.startswith(repeat.end or b"\0")

    def _numbers(self, operation: Take) -> Iterator[tuple[str, Any]]:
        if operation.wrapper == "bool":
            yield "false", 0
            return
        if operation.allowed:
            yield from ((str(plain(operation, code)), plain(operation, code)) for code in operation.allowed[1:])
            return
        numbers = {"greatest": 2 ** (8 * operation.width - operation.signed) - 1}
        if operation.signed:
            numbers |= {"least": -(2 ** (8 * operation.width - 1)), "minus one": -1}
        if operation.is_character:
            numbers = {"another": ord("?")}
        if 0 not in operation.refused:
            numbers["zero"] = 0
        numbers |= {f"mask {mask(bit)}, {name}": bit for bit, name in operation.flags.items()}
        yield from ((what, plain(operation, number)) for what, number in numbers.items())

    def _measured(self, operations: Operations, values: Fields) -> Fields:
        """Return the values with each measure computed."""
        for operation in flat(operations):
            if isinstance(operation, Measure) and not operation.of:
                writer = Writer(self.view)
                writer.operations(operations, values | {operation.name: 0})
                values[operation.name] = len(writer.data) - operation.preceding
            elif isinstance(operation, Measure) and values.get(operation.of, "") is None:
                values[operation.name] = -1
            elif isinstance(operation, Measure) and operation.name in values:
                is_list = isinstance(values[operation.of], list)
                values[operation.name] = len(values[operation.of]) // (1 if is_list else 2)
        return values


def damaged(view: View, message: Message, usual: Fields) -> dict[bytes, str]:
    """Return bytes that differ from a message by one change, each with the change. Some are messages too."""
    data, written = write(view, message, usual)
    damages: dict[bytes, str] = {}
    for place in written:
        for what, patch in _patches(place):
            damages.setdefault(data[: place.start] + patch + data[place.end :], f"{place.path}: {what}")
    for place in written:
        if place.end > place.start:
            damages.setdefault(data[: place.end - 1], f"ends within {place.path}")
    damages.setdefault(data + b"\0", "a byte too many")
    damages.pop(data, None)
    return damages


def _patches(place: Written) -> Iterator[tuple[str, bytes]]:
    width = place.end - place.start
    if isinstance(place.operation, Text):
        yield "not UTF-8", b"\xff\0"
    elif isinstance(place.operation, Integer) and place.operation.is_character:
        yield "another character", b"?"
    elif isinstance(place.operation, Bytes):
        if place.operation.constant:
            yield "another byte", place.operation.constant[:-1] + b"?"
    else:
        yield "all bits set", b"\xff" * width
        yield "zero", bytes(width)
        yield "two", (2).to_bytes(width, "big")
        yield "greatest", b"\x7f" + b"\xff" * (width - 1)
