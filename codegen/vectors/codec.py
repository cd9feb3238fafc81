"""A plain reader and writer of messages that follow the model row by row, for vectors.

They share nothing with the code that is emitted, so that a vector which both agree on was derived twice. Values have
the form that the vectors' JSON has: an Int64 is its decimal digits, as JavaScript's numbers hold 53 bits; bytes are
hexadecimal; a byte that stands for a character is that character; a field that is absent has no key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codegen.spec.model import REST, Field, Message, Part
from codegen.spec.notation import Byten, String
from codegen.spec.versions import View

Fields = dict[str, Any]


class RefusedError(ValueError):
    """Bytes that are no message; says at which field and at which byte."""

    def __init__(self, field: str, offset: int, reason: str, *, is_strict: bool = False) -> None:
        super().__init__(f"{field} at byte {offset}: {reason}")
        self.is_strict = is_strict
        """Whether PostgreSQL's page says nothing of it, so that a reader that follows the page takes the bytes."""
        self.field = field
        self.offset = offset
        self.reason = reason


@dataclass(frozen=True)
class Written:
    """The place of a row in a message's bytes."""

    path: str
    row: Field
    start: int
    end: int
    value: Any


def plain(row: Field, number: int) -> Any:
    """Return an integer or a character as vectors have it."""
    if row.is_character:
        return chr(number)
    return str(number) if row.width == 8 else number


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
        part = self.view.part_of(row)
        if part is not None:
            tag = next(iter(value.values()), None)
            rows = part.fields or next(other.fields for other in part.alternatives if other.tag == tag)
            self.fields(rows, value, f"{path}.")
            return
        start = len(self.data)
        if isinstance(row.type, String):
            self.data += value.encode() + b"\0"
        elif isinstance(row.type, Byten):
            self.data += bytes.fromhex(value)
        elif row.is_character:
            self.data += value.encode("latin-1")
        else:
            self.data += int(value).to_bytes(row.width, "big", signed=self.view.protocol.signed(row))
        self.written.append(Written(path, row, start, len(self.data), value))


class Reader:
    """Reads the bytes of one whole message; RefusedError where they are none."""

    def __init__(self, view: View, data: bytes, facts: Mapping[str, bool]) -> None:
        self.view = view
        self.data = data
        self.facts = facts
        self.offset = 0

    def message(self, sender: str = "server") -> tuple[Message, Fields]:
        """Return the message that the bytes are, and its fields."""
        begins = (self._next(), sender)
        message = next((one for one in self.view.messages if (one.tag, one.sender) == begins), None)
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
        return not row.optional or self._next() in row.constants

    def _next(self) -> str:
        """The next byte as a character; empty at the end."""
        return self.data[self.offset : self.offset + 1].decode("latin-1")

    def _row(self, row: Field, values: Fields, path: str) -> Any:
        part = self.view.part_of(row)
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
            if alternative.tag == self._next():
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
        number = int.from_bytes(self._take(row.width, path), "big", signed=self.view.protocol.signed(row))
        is_other = bool(row.constants) and number not in row.codes
        is_unnamed = bool(row.values) and number not in row.codes
        if is_other or is_unnamed or (row.nonzero and number == 0) or (row.boolean and number > 1):
            raise RefusedError(path, start, "the value is not legal here", is_strict=not is_other)
        return plain(row, number)


def write(view: View, message: Message, values: Mapping[str, Any]) -> tuple[bytes, list[Written]]:
    """Return a message's bytes, and where each row lies in them."""
    writer = Writer(view)
    writer.fields(message.fields, values)
    return writer.data, writer.written


def facts_of(message: Message, session: Mapping[str, bool]) -> dict[str, bool]:
    """Return those of the session facts that a message's layout depends on."""
    named = {row.when for row in message.fields}
    return {name: value for name, value in session.items() if name in named}
