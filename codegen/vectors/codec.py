"""A plain reader and writer of messages for vectors, which interpret operations one by one.

They share no code with the generated codecs, so that a vector on which both agree was derived twice. Values have the
form of the vectors' JSON: an Int64 is decimal digits, as JavaScript's numbers have 53 bits; bytes are hexadecimal; a
byte that is a character is that character; an absent field has no key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
)
from codegen.lowering.rows import lower
from codegen.model.layouts import Message
from codegen.model.model import fact_of, value_of
from codegen.model.versions import View

Fields = dict[str, Any]


class RefusedError(ValueError):
    """Bytes that are not a message, with the field and offset of the fault."""

    def __init__(self, field: str, offset: int, reason: str, *, is_strict: bool = False) -> None:
        super().__init__(f"{field} at byte {offset}: {reason}")
        self.is_strict = is_strict
        """True if PostgreSQL's page does not document the rule, so that a reader by the page accepts the bytes."""
        self.field = field
        self.offset = offset
        self.reason = reason


@dataclass(frozen=True)
class Written:
    """The position of a row in a message's bytes."""

    path: str
    operation: Operation
    start: int
    end: int
    value: Any


def plain(integer: Integer, number: int) -> Any:
    """Return an integer or a character in the form of vectors."""
    if integer.is_character:
        return chr(number)
    return str(number) if integer.width == 8 else number


class Writer:
    """Writes fields as bytes, and records the position of each row."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.data = b""
        self.written: list[Written] = []

    def operations(self, operations: Operations, values: Mapping[str, Any], prefix: str = "") -> None:
        """Write the rows with a value."""
        for operation in operations:
            if isinstance(operation, Conditional):
                self.operations(operation.body, values, prefix)
            elif operation.name in values and isinstance(operation, Repeat):
                for index, item in enumerate(values[operation.name]):
                    self._row(operation.body, item, f"{prefix}{operation.name}[{index}]")
                if not operation.count and not operation.end:
                    self.data += b"\0"
                    self.written.append(
                        Written(prefix + operation.name, operation, len(self.data) - 1, len(self.data), 0)
                    )
            elif operation.name in values:
                self._row(operation, values[operation.name], prefix + operation.name)

    def _row(self, operation: Operation, value: Any, path: str) -> None:
        start = len(self.data)
        match operation:
            case Group():
                self.operations(lower(self.view, operation.part.fields), value, f"{path}.")
                return
            case Choose():
                self.operations(chosen(self.view, operation, next(iter(value.values()))), value, f"{path}.")
                return
            case Text():
                self.data += value.encode() + b"\0"
            case Bytes():
                self.data += b"" if value is None else bytes.fromhex(value)
            case Integer(is_character=True):
                self.data += value.encode("latin-1")
            case Integer():
                self.data += int(value).to_bytes(operation.width, operation.order, signed=operation.signed)
        self.written.append(Written(path, operation, start, len(self.data), value))


def chosen(view: View, choose: Choose, tag: str) -> Operations:
    """Return the operations of the alternative with a tag."""
    return next(lower(view, other.fields) for other in choose.part.alternatives if other.tag == tag)


class Reader:
    """Reads one whole message. Raises RefusedError if the bytes are not a message."""

    def __init__(self, view: View, data: bytes, facts: Mapping[str, Any]) -> None:
        self.view = view
        self.data = data
        self.facts = facts
        self.offset = 0

    def message(self, sender: str = "server") -> tuple[Message, Fields]:
        """Return the message and its fields."""
        message = self.candidate(sender)
        if message is None:
            raise RefusedError("tag", 0, "no message begins so")
        fields = self.operations(lower(self.view, message.fields))
        if self.offset < len(self.data):
            raise RefusedError("end", self.offset, "bytes are left")
        return message, fields

    def candidate(self, sender: str) -> Message | None:
        """Return the message that begins with the bytes; None if there is none."""
        awaited = [
            message
            for message in self.view.messages
            if sender in message.senders
            and message.tag in ("", self._next())
            and (message.when is None or self.facts.get(str(fact_of(message.when))) == value_of(message.when))
        ]
        ordered = sorted(awaited, key=lambda message: message.is_tagged)
        tagged = next((message for message in awaited if message.is_tagged), None)
        return next((message for message in ordered if self._begins(message)), tagged)

    def _begins(self, message: Message) -> bool:
        """Return whether the bytes fit the message's leading integers, ignoring a length."""
        offset = 0
        for operation in lower(self.view, message.fields):
            if not isinstance(operation, Integer):
                break
            number = int.from_bytes(
                self.data[offset : offset + operation.width], operation.order, signed=operation.signed
            )
            if isinstance(operation, Constant) and number != operation.code and not operation.is_length:
                return False
            if isinstance(operation, Take) and not offset and operation.allowed and number not in operation.allowed:
                return False
            offset += operation.width
        return True

    def operations(self, operations: Operations, prefix: str = "") -> Fields:
        values: Fields = {}
        self._go(operations, prefix, values)
        return values

    def _go(self, operations: Operations, prefix: str, values: Fields) -> None:
        for operation in operations:
            path, start = prefix + operation.name, self.offset
            match operation:
                case Conditional():
                    holds = (
                        ord(self._next() or "\0") in operation.ahead
                        if operation.ahead
                        else self.facts.get(operation.fact, False)
                    )
                    if holds:
                        self._go(operation.body, prefix, values)
                case Repeat(count=""):
                    values[operation.name] = self._until(operation, values, path)
                case Repeat():
                    items = (
                        self._row(operation.body, values, f"{path}[{index}]")
                        for index in range(int(values[operation.count]))
                    )
                    values[operation.name] = list(items)
                case Measure():
                    values[operation.name] = self._integer(operation, path)
                    # A number of 64 bits is a text.
                    number = int(values[operation.name])
                    if not operation.of and number != len(self.data) - operation.preceding:
                        raise RefusedError(path, start, "the message has another length")
                    if number < (-1 if operation.nullable else 0):
                        raise RefusedError(path, start, "the number is negative")
                case _:
                    values[operation.name] = self._row(operation, values, path)

    def _until(self, operation: Repeat, values: Fields, path: str) -> list[Any]:
        items: list[Any] = []
        end = operation.end or b"\0"
        while not self.data.startswith(end, self.offset):
            items.append(self._row(operation.body, values, f"{path}[{len(items)}]"))
        if not operation.end:
            self._take(1, path)
        return items

    def _next(self) -> str:
        """Return the next byte as a character; empty at the end."""
        return self.data[self.offset : self.offset + 1].decode("latin-1")

    def _row(self, operation: Operation, values: Fields, path: str) -> Any:
        match operation:
            case Group():
                return self.operations(lower(self.view, operation.part.fields), f"{path}.")
            case Choose():
                return self._choose(operation, path)
            case Text():
                return self._text(path)
            case Bytes():
                size = operation.size or len(self.data) - self.offset
                if operation.count:
                    size = int(values[operation.count])
                if size == -1:
                    return None
                data = self._take(size, path)
                if operation.constant and data != operation.constant:
                    raise RefusedError(path, self.offset - size, "the value is not legal here")
                return data.hex()
        assert isinstance(operation, Integer)
        return self._integer(operation, path)

    def _choose(self, choose: Choose, path: str) -> Fields:
        if ord(self._next() or "\0") in choose.cases:
            return self.operations(chosen(self.view, choose, self._next()), f"{path}.")
        raise RefusedError(f"{path}.{choose.tag.name}", self.offset, "no alternative begins so")

    def _take(self, size: int, path: str) -> bytes:
        if size > len(self.data) - self.offset:
            raise RefusedError(path, self.offset, f"the message ends before {size} bytes")
        self.offset += size
        return self.data[self.offset - size : self.offset]

    def _text(self, path: str) -> str:
        end = self.data.find(0, self.offset)
        if end < 0:
            raise RefusedError(path, self.offset, "no zero byte ends the text")
        start, self.offset = self.offset, end + 1
        try:
            return self.data[start:end].decode()
        except UnicodeDecodeError as error:
            raise RefusedError(path, start + error.start, "the text is not UTF-8") from None

    def _integer(self, integer: Integer, path: str) -> Any:
        start = self.offset
        number = int.from_bytes(self._take(integer.width, path), integer.order, signed=integer.signed)
        is_other = isinstance(integer, Constant) and number != integer.code
        if isinstance(integer, Take):
            is_other = (bool(integer.allowed) and number not in integer.allowed) or number in integer.refused
        if is_other:
            is_strict = isinstance(integer, Take) and not integer.is_printed
            raise RefusedError(path, start, "the value is not legal here", is_strict=is_strict)
        return plain(integer, number)


def write(view: View, message: Message, values: Mapping[str, Any]) -> tuple[bytes, list[Written]]:
    """Return a message's bytes, and the position of each row."""
    writer = Writer(view)
    writer.operations(lower(view, message.fields), values)
    return writer.data, writer.written


def facts_of(view: View, message: Message, session: Mapping[str, bool]) -> dict[str, bool]:
    """Return the session facts that a message's layout depends on."""
    named = {operation.fact for operation in lower(view, message.fields) if isinstance(operation, Conditional)}
    return {name: value for name, value in session.items() if name in named}


def awaited(view: View, message: Message | None) -> dict[str, Any]:
    """Return the values of session facts that allow a message: its own, or a value that no message needs."""
    needed = {message_of_view.when for message_of_view in view.messages}
    values = {
        name: next(value for value in fact_values if f"{name} = {value}" not in needed)
        for name, fact_values in view.protocol.fact_values.items()
    }
    if message is not None and message.when is not None:
        values[str(fact_of(message.when))] = value_of(message.when)
    return values
