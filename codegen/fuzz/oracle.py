"""A reader and a writer of messages straight from the rows of the YAML, independent of the generator's own stages."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Mapping
from typing import Any

Row = dict[str, Any]
Values = dict[str, Any]

_INTEGER = re.compile(r"Int(8|16|32|64)(?: \((\w*[A-Za-z]\w*)\)|\((-?\d+)\)|\[[A-Z]\])?")
_BYTES = re.compile(r"Byte(\d+)\('(.+)'\)")
_TEXTS = ["", "a", "Zürich", "x" * 200]
_TRIES = 30
_COUNTS = [0, 1, 1, 2, 3, 130]
"""The numbers of items of a repeated row; the last number in messages only, not in the items."""


class RefusedError(Exception):
    """Bytes that are not a message, or values without bytes."""


class NullError(Exception):
    """A null value that no size can show."""


def name_of(row: Row) -> str:
    """Return a row's name: its first key."""
    return next(iter(row))


def type_of(row: Row) -> str:
    return str(row[name_of(row)])


def constants_of(row: Row) -> tuple[int, ...]:
    """Return the constants in a row's type."""
    if type_of(row).startswith("Byte1('"):
        return tuple(map(ord, re.findall(r"'(.)'", type_of(row))))
    match = _INTEGER.fullmatch(type_of(row))
    return (int(match[3]),) if match and match[3] is not None else ()


def bytes_of(row: Row) -> bytes:
    """Return the bytes of a row that is constant bytes; empty for another row."""
    match = _BYTES.fullmatch(type_of(row))
    return ast.literal_eval(f"b'{match[2]}'") if match and match[1] != "1" else b""


class Oracle:
    """The messages of one version of a spec, read by the notation of spec/README.md alone."""

    def __init__(self, spec: Mapping[str, Any], version: int) -> None:
        self.layouts: dict[str, Any] = spec["layouts"]
        self.types: dict[str, Any] = spec["types"]
        self.order: Any = spec["protocol"].get("byte order", "big")
        self.version = version

    def messages(self, sender: str, facts: Mapping[str, Any]) -> list[str]:
        """Return the messages that a side may send while the facts hold."""
        return [
            title
            for title, layout in self.layouts.items()
            if "part of" not in layout
            and layout.get("since", 1) <= self.version
            and layout.get("from", "server") in (sender, "both")
            and self._is_awaited(layout, facts)
        ]

    def candidates(self, data: bytes, sender: str, facts: Mapping[str, Any]) -> list[str]:
        """Return the messages that bytes may be. A message without a tag comes first if its constants match."""
        titles = self.messages(sender, facts)
        untagged = [title for title in titles if name_of(self.rows(self.layouts[title])[0]) != "tag"]
        return [title for title in untagged if self._begins(title, data)] or [
            title for title in titles if title not in untagged
        ]

    def _begins(self, title: str, data: bytes) -> bool:
        offset = 0
        for row in self.rows(self.layouts[title]):
            kind = type_of(row)
            is_integer = kind.startswith(("Byte1", "Int")) and kind not in self.layouts
            if not is_integer or not row.keys().isdisjoint({"repeat", "when", "optional"}):
                return True
            width, signed = self._integer(row)
            own = data[offset : offset + width]
            is_telling = (len(constants_of(row)) == 1 or (offset == 0 and width == 1)) and "measures" not in row
            legal = self._legal(row) if is_telling else None
            number = int.from_bytes(own, self.order, signed=signed)
            if legal is not None and (len(own) < width or number not in legal):
                return False
            offset += width
        return True

    def _is_awaited(self, layout: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
        fact, _, value = layout.get("when", "").partition(" = ")
        return not fact or facts[fact] == value

    def rows(self, layout: Mapping[str, Any]) -> list[Row]:
        """Return the rows of the version."""
        since = layout.get("since", 1)
        return [
            row for row in layout["fields"] if row.get("since", since) <= self.version <= row.get("until", self.version)
        ]

    def measured(self, rows: list[Row], row: Row) -> Row | None:
        """Return the row whose size or number a row has."""
        return next((other for other in rows if name_of(row) in (other.get("size"), other.get("repeat"))), None)

    def is_attribute(self, rows: list[Row], row: Row) -> bool:
        is_constant = len(constants_of(row)) == 1 or bool(bytes_of(row))
        return not is_constant and "measures" not in row and self.measured(rows, row) is None

    def choice(self, row: Row) -> dict[str, Any] | None:
        """Return the alternatives of a row's part by name; None for another type."""
        part = self.layouts.get(type_of(row), {})
        alternatives = {
            name: other for name, other in part.get("one of", {}).items() if other.get("since", 1) <= self.version
        }
        return alternatives if "one of" in part else None

    def references(self, title: str, values: Values) -> dict[str, set[int]]:
        """Return the numbers of described objects in a message, by the describing message."""
        numbers: dict[str, set[int]] = {}
        for row in self.rows(self.layouts[title]):
            if "looks up" in row:
                value = values[name_of(row)]
                numbers.setdefault(row["looks up"], set()).update(value if isinstance(value, tuple) else {value})
        return numbers

    # Reading.

    def read(self, title: str, data: bytes, facts: Mapping[str, Any]) -> Values:
        """Return a message's attributes. Raises RefusedError for other bytes."""
        rows = self.rows(self.layouts[title])
        values, offset = self._read(rows, data, 0, facts, len(data) - (name_of(rows[0]) == "tag"))
        if offset != len(data):
            raise RefusedError("excess")
        return values

    def _read(
        self, rows: list[Row], data: bytes, offset: int, facts: Mapping[str, Any], length: int
    ) -> tuple[Values, int]:
        values: Values = {}
        measures: dict[str, int] = {}
        for row in rows:
            name = name_of(row)
            if not self._is_present(row, values, data[offset : offset + 1], facts):
                values |= {name: None} if self.is_attribute(rows, row) else {}
                continue
            if "repeat" in row:
                items, offset = self._items(row, measures, data, offset, self._end(rows, row))
                if self.choice(row) is not None:
                    values |= {
                        "kinds": bytes(kind for kind, _ in items),
                        "values": tuple(value for _, value in items),
                    }
                else:
                    values[name] = tuple(items)
                continue
            value, offset = self._once(row, measures, data, offset)
            if (measured := self.measured(rows, row)) is not None:
                if value < 0 and not (value == -1 and "may be null" in measured):
                    raise RefusedError("negative")
                measures[name] = value
            elif "measures" in row and value != length:
                raise RefusedError("length")
            elif self.is_attribute(rows, row):
                values[name] = value
        return values, offset

    def _is_present(self, row: Row, values: Values, following: bytes, facts: Mapping[str, Any]) -> bool:
        if "optional" in row:
            return bool(following) and following[0] in constants_of(row)
        return "when" not in row or self._holds(row["when"], values, facts)

    def _holds(self, condition: str, values: Values, facts: Mapping[str, Any]) -> bool:
        return bool(facts[condition]) if condition in facts else values[condition] is not None

    def _end(self, rows: list[Row], row: Row) -> bytes:
        """Return the bytes that end a list; empty for a counted list."""
        if row["repeat"] == "until zero":
            return b"\0"
        if not row["repeat"].startswith("until "):
            return b""
        after = next(other for other in rows if name_of(other) == row["repeat"].removeprefix("until "))
        return bytes_of(after) or self._number(after, constants_of(after)[0])

    def _items(self, row: Row, measures: dict[str, int], data: bytes, offset: int, end: bytes) -> tuple[list[Any], int]:
        items = []
        if not end:
            for _ in range(measures[row["repeat"]]):
                item, offset = self._once(row, measures, data, offset)
                items.append(item)
            return items, offset
        while self._take(data, offset, len(end)) != end:
            item, offset = self._once(row, measures, data, offset)
            items.append(item)
        return items, offset + (row["repeat"] == "until zero")

    def _take(self, data: bytes, offset: int, size: int) -> bytes:
        if not 0 <= size <= len(data) - offset:
            raise RefusedError("too short")
        return data[offset : offset + size]

    def _once(self, row: Row, measures: dict[str, int], data: bytes, offset: int) -> tuple[Any, int]:
        kind = type_of(row)
        if kind == "String":
            end = data.find(0, offset)
            if end < 0:
                raise RefusedError("no zero")
            try:
                return data[offset:end].decode(), end + 1
            except UnicodeDecodeError:
                raise RefusedError("encoding") from None
        if constant := bytes_of(row):
            if self._take(data, offset, len(constant)) != constant:
                raise RefusedError("constant")
            return constant, offset + len(constant)
        if (size := self._size(row, measures, len(data) - offset)) is not None:
            return (None, offset) if size == -1 else (self._take(data, offset, size), offset + size)
        if (alternatives := self.choice(row)) is not None:
            byte = self._take(data, offset, 1)[0]
            rows = next(
                (rows for other in alternatives.values() if constants_of((rows := self.rows(other))[0]) == (byte,)), []
            )
            if not rows:
                raise RefusedError("alternative")
            values, offset = self._read(rows, data, offset, {}, 0)
            return (byte, next(iter(values.values()), None)), offset
        if kind in self.layouts:
            return self._read(self.rows(self.layouts[kind]), data, offset, {}, 0)
        width, signed = self._integer(row)
        number = int.from_bytes(self._take(data, offset, width), self.order, signed=signed)
        return self._value(row, number), offset + width

    def _size(self, row: Row, measures: dict[str, int], remaining: int) -> int | None:
        """Return the number of a row's bytes, -1 for no value; None for another type."""
        if match := re.fullmatch(r"Byte(\d+)", type_of(row)):
            return int(match[1]) if type_of(row) != "Byte1" else None
        if type_of(row) != "Byten":
            return None
        return remaining if row["size"] == "rest" else measures[row["size"]]

    def _integer(self, row: Row) -> tuple[int, bool]:
        match = _INTEGER.fullmatch(type_of(row))
        if match is None:
            return 1, False
        named = match[2] or row.get("is")
        return int(match[1]) // 8, self.types[named]["signed"] if named else match[1] != "8"

    def _legal(self, row: Row) -> list[int] | None:
        """Return the legal numbers of a row; None for any number."""
        if constants_of(row):
            return list(constants_of(row))
        if "boolean" in row:
            return [0, 1]
        if "any character" in row:
            return list(range(1, 256))
        if "values" in row:
            return list(map(ord, row["values"]))
        match = _INTEGER.fullmatch(type_of(row))
        named = (match[2] if match else None) or row.get("is")
        return list(self.types[named]["values"]) if named and "values" in self.types[named] else None

    def _value(self, row: Row, number: int) -> Any:
        legal = self._legal(row)
        if (legal is not None and number not in legal) or ("nonzero" in row and number == 0):
            raise RefusedError("illegal")
        if "boolean" in row:
            return bool(number)
        return chr(number) if self._is_character(row) else number

    def _is_character(self, row: Row) -> bool:
        return "values" in row or "any character" in row or type_of(row).startswith("Byte1('")

    # Writing.

    def draw(self, title: str, facts: Mapping[str, Any], draw: random.Random) -> tuple[bytes, Values]:
        """Return a random message: its bytes and its attributes. Raises RefusedError if no values have bytes."""
        rows = self.rows(self.layouts[title])
        for _ in range(_TRIES):
            values = self._draw(rows, facts, draw, _COUNTS)
            try:
                return self.written(title, values, facts), values
            except RefusedError:
                continue
        raise RefusedError("no values")

    def written(self, title: str, values: Values, facts: Mapping[str, Any]) -> bytes:
        """Return a message's bytes. Raises RefusedError if the values have none."""
        rows = self.rows(self.layouts[title])
        data = self._write(rows, values, facts)
        preceding = int(name_of(rows[0]) == "tag")
        place = 0
        for row in rows:
            if "measures" in row:
                width, signed = self._integer(row)
                length = (len(data) - preceding).to_bytes(width, self.order, signed=signed)
                return data[:place] + length + data[place + width :]
            place += len(self._write([row], values, facts, rows))
        return data

    def _draw(
        self, rows: list[Row], facts: Mapping[str, Any], draw: random.Random, counts: list[int] = _COUNTS[:-1]
    ) -> Values:
        values: Values = {}
        for row in rows:
            name, condition = name_of(row), row.get("when")
            if not self.is_attribute(rows, row):
                continue
            is_present = draw.random() < 0.5 if "optional" in row else True
            if condition is not None:
                is_present = self._holds(condition, values, facts)
            if not is_present:
                values[name] = None
            elif "repeat" in row:
                items = [self._draw_once(row, draw) for _ in range(draw.choice(counts))]
                if self.choice(row) is not None:
                    values |= {"kinds": bytes(kind for kind, _ in items), "values": tuple(item for _, item in items)}
                else:
                    values[name] = tuple(items)
            else:
                values[name] = self._draw_once(row, draw)
        return values

    def _draw_once(self, row: Row, draw: random.Random) -> Any:
        kind = type_of(row)
        if kind == "String":
            return draw.choice(_TEXTS)
        if (size := self._size(row, {row.get("size", ""): draw.choice([0, 1, 5, 130])}, 3)) is not None:
            is_null = "may be null" in row and draw.random() < 0.4
            return None if is_null else draw.randbytes(size)
        if (alternatives := self.choice(row)) is not None:
            rows = self.rows(draw.choice(list(alternatives.values())))
            values = self._draw(rows, {}, draw)
            return constants_of(rows[0])[0], next(iter(values.values()), None)
        if kind in self.layouts:
            return self._draw(self.rows(self.layouts[kind]), {}, draw)
        width, signed = self._integer(row)
        low, high = (-(1 << (8 * width - 1)), (1 << (8 * width - 1)) - 1) if signed else (0, (1 << 8 * width) - 1)
        legal = self._legal(row) or [low, high, 0, 1, 2, draw.randint(low, high)]
        number = draw.choice([number for number in legal if number or "nonzero" not in row])
        return self._value(row, number)

    def _write(
        self, rows: list[Row], values: Values, facts: Mapping[str, Any], every: list[Row] | None = None
    ) -> bytes:
        data = b""
        for row in rows:
            name, condition = name_of(row), row.get("when")
            measured = self.measured(every or rows, row)
            if condition is not None and not self._holds(condition, values, facts):
                continue
            if constant := bytes_of(row):
                data += constant
            elif constants_of(row) and len(constants_of(row)) == 1:
                data += self._number(row, constants_of(row)[0])
            elif measured is not None:
                name = "kinds" if self.choice(measured) is not None else name_of(measured)
                if values[name] is None and not self._integer(row)[1]:
                    raise NullError(name)
                data += self._number(row, -1 if values[name] is None else len(values[name]))
            elif "measures" in row:
                data += self._number(row, 0)
            elif "repeat" in row:
                is_choice = self.choice(row) is not None
                items = list(zip(values["kinds"], values["values"], strict=True)) if is_choice else values[name]
                end = self._end(every or rows, row)
                for item in items:
                    written = self._write_once(row, item)
                    if end and (not written or written.startswith(end)):
                        raise RefusedError("end")
                    data += written
                data += b"\0" * (row["repeat"] == "until zero")
            elif values[name] is not None:
                data += self._write_once(row, values[name])
        return data

    def _write_once(self, row: Row, value: Any) -> bytes:
        kind = type_of(row)
        if kind == "String":
            return bytes(value.encode()) + b"\0"
        if isinstance(value, bytes):
            return value
        if (alternatives := self.choice(row)) is not None:
            code, item = value
            rows = next(
                rows for other in alternatives.values() if constants_of((rows := self.rows(other))[0]) == (code,)
            )
            names = [name_of(inner) for inner in rows if self.is_attribute(rows, inner)]
            return self._write(rows, dict.fromkeys(names, item), {})
        if kind in self.layouts:
            return self._write(self.rows(self.layouts[kind]), value, {})
        return self._number(row, ord(value) if isinstance(value, str) else int(value))

    def _number(self, row: Row, number: int) -> bytes:
        width, signed = self._integer(row)
        try:
            return number.to_bytes(width, self.order, signed=signed)
        except OverflowError:
            raise RefusedError("overflow") from None
