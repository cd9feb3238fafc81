"""A plain reader and writer of messages that follow the model row by row, for vectors.

They share nothing with the code that is emitted, so that a vector which both agree on was derived twice. Values have
the form that the vectors' JSON has: an Int64 is its decimal digits, as JavaScript's numbers hold 53 bits; bytes are
hexadecimal; a byte that stands for a character is that character; a field that is absent has no key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from codegen.spec.model import REST, Field, Message, Part
from codegen.spec.notation import Byte1, Byten, PartName, String
from codegen.spec.versions import View

Fields = dict[str, Any]


class RefusedError(ValueError):
    """Bytes that are no message; says at which field and at which byte."""

    def __init__(self, field: str, offset: int, reason: str) -> None:
        super().__init__(f"{field} at byte {offset}: {reason}")
        self.field = field
        self.offset = offset
        self.reason = reason


@dataclass(frozen=True)
class Written:
    """Where a row lies in a message's bytes."""

    path: str
    row: Field
    start: int
    end: int


def part_of(view: View, row: Field) -> Part | None:
    """Return the part that a row is made of; None for integers, text and bytes."""
    if not isinstance(row.type, PartName):
        return None
    return view.part(row.type.name)


def tag_of(fields: tuple[Field, ...]) -> str:
    """Return the character that an alternative begins with."""
    return str(fields[0].constants[0])


def is_character(row: Field) -> bool:
    """Whether a row's byte stands for a character: a tag, or one of several named values."""
    return bool(row.values) or (isinstance(row.type, Byte1) and bool(row.constants))


def counted_by(fields: tuple[Field, ...], row: Field) -> Field | None:
    """Return the row whose length or number a row says; None if it says none."""
    return next((other for other in fields if row.name in (other.size, other.repeat)), None)


class Writer:
    """Writes fields as bytes, and notes where each row lies."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.data = b""
        self.written: list[Written] = []

    def fields(self, fields: tuple[Field, ...], values: Mapping[str, Any], prefix: str = "") -> None:
        """Write the rows that have a value."""
        for row in fields:
            if row.name in values:
                items = values[row.name] if row.repeat else [values[row.name]]
                for index, item in enumerate(items):
                    self._row(row, item, f"{prefix}{row.name}[{index}]" if row.repeat else prefix + row.name)

    def _row(self, row: Field, value: Any, path: str) -> None:
        part = part_of(self.view, row)
        if part is not None:
            rows = part.fields or next(
                other.fields for other in part.alternatives if tag_of(other.fields) == next(iter(value.values()))
            )
            self.fields(rows, value, f"{path}.")
            return
        start = len(self.data)
        if isinstance(row.type, String):
            self.data += value.encode() + b"\0"
        elif isinstance(row.type, Byten):
            self.data += bytes.fromhex(value)
        elif is_character(row):
            self.data += value.encode("latin-1")
        else:
            self.data += int(value).to_bytes(row.width, "big", signed=self.view.protocol.signed(row))
        self.written.append(Written(path, row, start, len(self.data)))


class Reader:
    """Reads the bytes of one whole message; RefusedError where they are none."""

    def __init__(self, view: View, data: bytes, facts: Mapping[str, bool]) -> None:
        self.view = view
        self.data = data
        self.facts = facts
        self.offset = 0

    def message(self, sender: str = "server") -> tuple[Message, Fields]:
        """Return the message that the bytes are, and its fields."""
        tag = self.data[:1].decode("latin-1")
        message = next((one for one in self.view.messages if one.tag == tag and one.sender == sender), None)
        if message is None:
            raise RefusedError("tag", 0, "no message begins so")
        fields = self.fields(message.fields)
        if self.offset < len(self.data):
            raise RefusedError("end", self.offset, "bytes are left")
        return message, fields

    def fields(self, fields: tuple[Field, ...], prefix: str = "") -> Fields:
        """Read rows one after the other."""
        values: Fields = {}
        starts: dict[str, int] = {}
        for row in fields:
            path = prefix + row.name
            if not self._is_there(row, values):
                continue
            starts[row.name] = self.offset
            count = row.repeat or row.size
            if count in values and values[count] < 0:
                raise RefusedError(prefix + count, starts[count], "the number is negative")
            if row.repeat is None:
                values[row.name] = self._row(row, values, path)
            else:
                values[row.name] = [self._row(row, values, f"{path}[{index}]") for index in range(values[row.repeat])]
        return values

    def _is_there(self, row: Field, values: Fields) -> bool:
        if row.when is not None:
            return self.facts.get(row.when, row.when in values)
        return not row.optional or chr(self._peek()) in row.constants

    def _peek(self) -> int:
        return self.data[self.offset] if self.offset < len(self.data) else 0

    def _row(self, row: Field, values: Fields, path: str) -> Any:
        part = part_of(self.view, row)
        if part is not None:
            return self._part(part, path)
        if isinstance(row.type, String):
            return self._text(path)
        if isinstance(row.type, Byten):
            size = len(self.data) - self.offset if row.size == REST else values[str(row.size)]
            return self._take(size, path).hex()
        return self._integer(row, path)

    def _part(self, part: Part, path: str) -> Fields:
        if part.fields:
            return self.fields(part.fields, f"{path}.")
        for alternative in part.alternatives:
            if chr(self._peek()) == tag_of(alternative.fields) and self.offset < len(self.data):
                return self.fields(alternative.fields, f"{path}.")
        raise RefusedError(f"{path}.{part.alternatives[0].fields[0].name}", self.offset, "no alternative begins so")

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

    def _integer(self, row: Field, path: str) -> Any:
        start = self.offset
        width = row.width
        number = int.from_bytes(self._take(width, path), "big", signed=self.view.protocol.signed(row))
        value: Any = chr(number) if is_character(row) else number
        allowed = tuple(row.values) or row.constants
        if (allowed and value not in allowed) or (row.nonzero and number == 0) or (row.boolean and number > 1):
            raise RefusedError(path, start, "the value is not legal here")
        return str(value) if width == 8 else value


def write(view: View, message: Message, values: Mapping[str, Any]) -> tuple[bytes, list[Written]]:
    """Return a message's bytes, and where each row lies in them."""
    writer = Writer(view)
    writer.fields(message.fields, values)
    return writer.data, writer.written


def facts_of(view: View, message: Message) -> Iterator[dict[str, bool]]:
    """Yield each combination of the session facts that a message's layout depends on, all of them true last."""
    known = {fact.name for fact in view.protocol.session}
    names = sorted({row.when for row in message.fields if row.when in known and row.when is not None})
    for bits in range(2 ** len(names)):
        yield {name: bool(bits >> place & 1) for place, name in enumerate(names)}
