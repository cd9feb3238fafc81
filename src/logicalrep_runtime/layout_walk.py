"""Reads a message field by field, by its layout: slow, exact about where a fault lies, and all that `inspect` needs.

The straight-line codecs only detect that something is wrong; `decode_error` and `encode_error` say what.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from logicalrep_runtime.errors import DecodeError, EncodeError, codec_name, shown
from logicalrep_runtime.layout import MessageLayout, PartLayout, ProtocolLayout
from logicalrep_runtime.operations import (
    Bytes,
    Choose,
    Constant,
    GoOn,
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

_Since = TypeVar("_Since", Operation, PartLayout)


@dataclass(frozen=True, slots=True)
class Step:
    """One row that was read."""

    path: str
    """Its path in the message, such as `new.cells[2].length`."""
    offset: int
    """The offset of its first byte in the message."""
    data: bytes
    """Its bytes."""
    operation: Operation
    """The operation that read it."""
    value: object
    """The value of the bytes."""


def walk(
    protocol: ProtocolLayout,
    version: int,
    data: bytes,
    *,
    facts: Mapping[str, Any],
    encoding: str = "utf-8",
    sender: str = "server",
    strict: bool = False,
) -> Iterator[Step]:
    """Yield each field of a whole message; raise DecodeError at the first fault, after the fields before it.

    `facts` are the session facts that hold, by name; one that is not named is false. `strict` refuses, as `parse` does,
    messages of later versions that servers send all the same.
    """
    message = _message(protocol, version, data, sender, facts)
    if message.since > version and (strict or not message.comes_in(version, facts)):
        raise _of_later_version(protocol, version, message)
    walker = _Walker(protocol, max(version, message.since), data, facts, encoding, message.name)
    yield from walker.layout(message.operations, "")
    if walker.offset < len(data):
        left = data[walker.offset :]
        raise DecodeError(
            message.name, "end", walker.offset, "the end of the message", f"{_bytes(len(left))} more: {_hex(left)}"
        )


def decode_error(
    protocol: ProtocolLayout,
    version: int,
    data: bytes,
    *,
    facts: Mapping[str, Any],
    encoding: str = "utf-8",
    sender: str = "server",
) -> DecodeError:
    """The error for bytes that a straight-line decoder refused."""
    try:
        for _ in walk(protocol, version, data, facts=facts, encoding=encoding, sender=sender, strict=True):
            pass
    except DecodeError as error:
        return error
    return DecodeError("message", "tag", 0, "both decoders to agree", f"bytes that one of them takes: {_hex(data)}")


def _message(
    protocol: ProtocolLayout, version: int, data: bytes, sender: str, facts: Mapping[str, Any]
) -> MessageLayout:
    if not data:
        raise DecodeError("message", "tag", 0, "a message", "no bytes")
    message = protocol.find(data, version, sender, facts)
    if message is None:
        known = "".join(layout.tag for layout in protocol.messages if layout.sender in (sender, "both"))
        found = _byte(data[0])
        for other in protocol.messages:
            if other.tag == chr(data[0]):
                found += f', {other.name} with sender="{other.sender}"'
        raise DecodeError("message", "tag", 0, f"one of the tags {known}", found)
    return message


def _of_later_version(protocol: ProtocolLayout, version: int, message: MessageLayout) -> DecodeError:
    found = f"'{message.tag}', {message.name} of version {protocol.called(message.since)}"
    if message.also_since:
        older = "older versions" if message.also_since == 1 else f"versions from {message.also_since} on"
        found += f", which is sent to {older} too"
    if message.also_when:
        found += f" where {message.also_when}: {_lowered(protocol.session[message.also_when])}"
    return DecodeError(message.name, "tag", 0, f"a message of protocol version {protocol.called(version)}", found)


def _known(items: tuple[_Since, ...], version: int) -> tuple[_Since, ...]:
    """The operations or alternatives that a version has."""
    return tuple(
        item
        for item in items
        if item.since <= version and (isinstance(item, PartLayout) or not 0 < item.until < version)
    )


class _Walker:
    """The position in a message, and what was read so far."""

    def __init__(
        self,
        protocol: ProtocolLayout,
        version: int,
        data: bytes,
        facts: Mapping[str, Any],
        encoding: str,
        message: str,
    ) -> None:
        self.protocol = protocol
        self.version = version
        self.data = data
        self.facts = facts
        codec_name(encoding)
        self.encoding = encoding
        self.message = message
        self.offset = 0

    def error(self, path: str, offset: int, expected: str, found: str) -> DecodeError:
        return DecodeError(self.message, path, offset, expected, found)

    def layout(self, operations: Operations, prefix: str) -> Iterator[Step]:
        """The rows of one layout."""
        yield from self.go(operations, prefix, {})

    def go(self, operations: Operations, prefix: str, measured: dict[str, int]) -> Iterator[Step]:
        """Go through operations; `measured` has the measures of their layout so far."""
        for one in _known(operations, self.version):
            path = prefix + one.name
            match one:
                case GoOn():
                    if self.next_is(one.ahead) if one.ahead else self.facts.get(one.fact, False):
                        yield from self.go(one.body, prefix, measured)
                case Repeat():
                    yield from self.repeat(one, path, measured)
                case Measure():
                    step = self.integer(one, path)
                    measured[one.name] = count = int.from_bytes(step.data, one.order, signed=one.signed)
                    self.check_measure(one, count, step)
                    yield step
                case _:
                    yield from self.once(one, path, measured)

    def repeat(self, one: Repeat, path: str, measured: Mapping[str, int]) -> Iterator[Step]:
        """The items of a list; a zero byte that ends them is a step too."""
        if one.count:
            for index in range(measured[one.count]):
                yield from self.once(one.body, f"{path}[{index}]", measured)
            return
        index = 0
        while not self.next_is((0,)):
            yield from self.once(one.body, f"{path}[{index}]", measured)
            index += 1
        offset = self.offset
        yield Step(path, offset, self.take(1, path), one, 0)

    def check_measure(self, one: Measure, count: int, step: Step) -> None:
        """Raise DecodeError where a measure cannot be right."""
        length = len(self.data) - one.before
        if not one.of and count != length:
            raise self.error(step.path, step.offset, str(length), str(count))
        if count < 0 and not (one.nullable and count == -1):
            expected = "-1 or more" if one.nullable else "0 or more"
            raise self.error(step.path, step.offset, expected, str(count))

    def next_is(self, values: tuple[int, ...]) -> bool:
        return self.offset < len(self.data) and self.data[self.offset] in values

    def once(self, one: Operation, path: str, measured: Mapping[str, int]) -> Iterator[Step]:
        """One row, or all those of the part that it is."""
        match one:
            case Integer():
                yield self.integer(one, path)
            case Text():
                yield self.text(one, path)
            case Bytes():
                size = one.size or (measured[one.count] if one.count else len(self.data) - self.offset)
                offset = self.offset
                if size == -1:
                    yield Step(path, offset, b"", one, None)
                    return
                data = self.take(size, path)
                yield Step(path, offset, data, one, data)
            case Group():
                yield from self.layout(self.protocol.parts[one.part].operations, f"{path}.")
            case Choose():
                yield from self.layout(self.read_choice(self.protocol.parts[one.part], path), f"{path}.")

    def read_choice(self, part: PartLayout, path: str) -> Operations:
        """The operations of the alternative that the next byte tells."""
        alternatives = {_tag(other).code: other for other in _known(part.alternatives, self.version)}
        tag = f"{path}.{_tag(part.alternatives[0]).name}"
        byte = self.take(1, tag)[0]
        self.offset -= 1
        if byte not in alternatives:
            raise self.error(tag, self.offset, _choice(tuple(alternatives)), _byte(byte))
        return alternatives[byte].operations

    def take(self, size: int, path: str) -> bytes:
        left = len(self.data) - self.offset
        if size > left:
            raise self.error(path, self.offset, _bytes(size), f"{_bytes(left)} to the end of the message")
        self.offset += size
        return self.data[self.offset - size : self.offset]

    def integer(self, one: Integer, path: str) -> Step:
        offset = self.offset
        data = self.take(one.width, path)
        number = int.from_bytes(data, one.order, signed=one.signed)
        allowed = _allowed(one)
        if allowed and number not in allowed:
            found = _byte(number) if one.is_character else str(number)
            raise self.error(path, offset, _legal(one), found)
        if isinstance(one, Take) and number in one.refused:
            raise self.error(path, offset, f"anything but {_or(one.refused)}".replace(" 0", " zero"), str(number))
        value: object = number
        if one.is_character:
            value = chr(number)
        elif isinstance(one, Take) and one.wrapper is not None:
            value = one.wrapper(number)
        return Step(path, offset, data, one, value)

    def text(self, one: Text, path: str) -> Step:
        offset = self.offset
        end = self.data.find(0, offset)
        if end < 0:
            left = len(self.data) - offset
            raise self.error(path, offset, "a text that a zero byte ends", f"{_bytes(left)} without one")
        self.offset = end + 1
        raw = self.data[offset:end]
        try:
            value = raw.decode(self.encoding)
        except UnicodeDecodeError as error:
            raise self.error(path, offset + error.start, f"text in {self.encoding}", _hex(raw[error.start :])) from None
        return Step(path, offset, self.data[offset : end + 1], one, value)


def encode_error(
    protocol: ProtocolLayout,
    version: int,
    message: object,
    cause: Exception,
    *,
    encoding: str = "utf-8",
    sender: str = "server",
) -> EncodeError:
    """The error for a message or part that a straight-line encoder refused; `version` is that of its class."""
    codec_name(encoding)
    tag = getattr(message, "tag", None)
    layout = _layout_of(protocol, message, tag, sender)
    name = layout.name if layout is not None else type(message).__name__
    operations = (layout if layout is not None else protocol.parts[type(message).__name__]).operations
    fault = _Faults(protocol, version, encoding).of_layout(operations, message, "")
    if fault is None:
        return EncodeError(name, "message", "attributes that fit their fields", f"{type(cause).__name__}: {cause}")
    return EncodeError(name, *fault)


def _layout_of(protocol: ProtocolLayout, message: object, tag: object, sender: str) -> MessageLayout | None:
    """The layout of a message's class; None for a part."""
    names = {name.replace(" ", "").lower(): layout for layout in protocol.messages for name in (layout.name,)}
    known = names.get(type(message).__name__.lower())
    return protocol.message(ord(tag), sender) if known is None and isinstance(tag, str) else known


_Fault = tuple[str, str, str] | None


class _Faults:
    """Finds the first attribute that does not fit: its path, what fits, what it holds."""

    def __init__(self, protocol: ProtocolLayout, version: int, encoding: str) -> None:
        self.protocol = protocol
        self.version = version
        self.encoding = encoding

    def of_layout(self, operations: Operations, owner: object, prefix: str) -> _Fault:
        operations = _known(operations, self.version)
        for one in operations:
            branches = [
                other
                for other in operations
                if isinstance(one, GoOn)
                and isinstance(other, GoOn)
                and (other is one or (one.fact and other.fact == one.fact))
            ]
            together = [inner for branch in branches for inner in self.attributes(branch.body)]
            for inner in self.attributes((one,)):
                fault = self.of_attribute(operations, inner, together, owner, prefix + inner.name)
                if fault is not None:
                    return fault
        return None

    def attributes(self, operations: Operations) -> list[Operation]:
        return [one for one in _known(tuple(flat(operations)), self.version) if one.is_attribute]

    def of_attribute(
        self, operations: Operations, one: Operation, together: list[Operation], owner: object, path: str
    ) -> _Fault:
        """Find the fault of one attribute; `together` are those that are there with it or not at all."""
        if isinstance(one, Repeat) and isinstance(one.body, Choose):
            return self.of_cells(operations, one, one.body, owner, path)
        value = getattr(owner, one.name)
        for other in together:
            if (getattr(owner, other.name) is None) != (value is None):
                return path, f"a value if and only if {other.name} has one", shown(value)
        if together and value is None:
            return None
        if not isinstance(one, Repeat):
            return self.of_value(operations, one, value, path)
        if not isinstance(value, tuple | list):
            return path, "a tuple", shown(value)
        if one.count and len(value) >= _limit(operations, one.count):
            return path, f"fewer than {_limit(operations, one.count)} items", str(len(value))
        faults = (self.of_value(operations, one.body, item, f"{path}[{index}]") for index, item in enumerate(value))
        return next((fault for fault in faults if fault is not None), None)

    def of_value(self, operations: Operations, one: Operation, value: object, path: str) -> _Fault:
        match one:
            case Group():
                if type(value).__name__ != one.part:
                    return path, one.part, shown(value)
                return self.of_layout(self.protocol.parts[one.part].operations, value, f"{path}.")
            case Text():
                return self.of_text(value, path)
            case Bytes():
                return _bytes_fault(operations, one, value, path, "bytes")
            case Take(is_character=True):
                legal = one.allowed or range(1, 256)
                if isinstance(value, str) and len(value) == 1 and ord(value) in legal:
                    return None
                return path, _legal(one) if one.allowed else "a character that is no zero byte", shown(value)
            case Take():
                low, high = _bounds(one)
                if not isinstance(value, int) or not low <= value <= high or value in one.refused:
                    first = next(number for number in range(low, high) if number not in one.refused)
                    return path, f"a whole number from {first} to {high}", shown(value)
        return None

    def of_text(self, value: object, path: str) -> _Fault:
        if not isinstance(value, str):
            return path, "a str", shown(value)
        if "\0" in value:
            return path, "a text without a zero byte", shown(value)
        try:
            value.encode(self.encoding)
        except UnicodeEncodeError:
            return path, f"a text that {self.encoding} can write", shown(value)
        return None

    def of_cells(self, operations: Operations, one: Repeat, choose: Choose, owner: object, path: str) -> _Fault:
        """Find the first kind and value of repeated alternatives that do not go together."""
        kinds, values = getattr(owner, "kinds", None), getattr(owner, "values", None)
        if not isinstance(kinds, bytes) or not isinstance(values, tuple | list) or len(kinds) != len(values):
            return path, "kinds as bytes and as many values in a tuple", f"{shown(kinds)} and {shown(values)}"
        if len(kinds) >= _limit(operations, one.count):
            return path, f"fewer than {_limit(operations, one.count)} items", str(len(kinds))
        alternatives = _known(self.protocol.parts[choose.part].alternatives, self.version)
        rows = {_tag(other).code: _known(other.operations, self.version)[1:] for other in alternatives}
        value_name = next((those[-1].name for those in rows.values() if those), "value")
        for index, (kind, value) in enumerate(zip(kinds, values, strict=True)):
            where = f"{path}[{index}].{value_name}"
            if kind not in rows:
                return f"{path}[{index}].{_tag(alternatives[0]).name}", _choice(tuple(rows)), _byte(kind)
            last = rows[kind][-1] if rows[kind] else None
            expected = f"bytes for the kind {_byte(kind)}"
            if isinstance(last, Bytes) and (fault := _bytes_fault(rows[kind], last, value, where, expected)):
                return fault
            if last is None and value is not None:
                return where, f"None for the kind {_byte(kind)}", shown(value)
        return None


def _bytes_fault(operations: Operations, one: Bytes, value: object, path: str, expected: str) -> _Fault:
    if value is None and one.nullable:
        return None
    if not isinstance(value, bytes):
        return path, expected, shown(value)
    if one.size:
        return None if len(value) == one.size else (path, _bytes(one.size), _bytes(len(value)))
    limit = _limit(operations, one.count) if one.count else len(value) + 1
    return None if len(value) < limit else (path, f"fewer than {limit} bytes", str(len(value)))


def _limit(operations: Operations, name: str) -> int:
    """The first number that the measure of that name cannot hold."""
    measure = next(one for one in operations if isinstance(one, Measure) and one.name == name)
    return 1 << (8 * measure.width - measure.signed)


def _bounds(one: Take) -> tuple[int, int]:
    """The least and the greatest number that an integer may be."""
    if one.allowed:
        return min(one.allowed), max(one.allowed)
    return -(1 << (8 * one.width - 1)) if one.signed else 0, (1 << (8 * one.width - one.signed)) - 1


def _tag(alternative: PartLayout) -> Constant:
    """The constant that an alternative begins with."""
    tag = alternative.operations[0]
    assert isinstance(tag, Constant)
    return tag


def _allowed(one: Integer) -> tuple[int, ...]:
    """The only values that an integer may have; () where it may have any."""
    if isinstance(one, Constant):
        return (one.code,)
    return one.allowed if isinstance(one, Take) else ()


def _legal(one: Integer) -> str:
    """The only values that an integer may have, in words."""
    return _choice(_allowed(one)) if one.is_character else _or(_allowed(one))


def _or(numbers: tuple[int, ...]) -> str:
    return " or ".join(map(str, numbers))


def _bytes(count: int) -> str:
    return "1 byte" if count == 1 else f"{count} bytes"


def _byte(value: int) -> str:
    return f"'{chr(value)}'" if 0x20 < value < 0x7F else f"0x{value:02X}"


def _choice(constants: tuple[int, ...]) -> str:
    texts = [_byte(constant) for constant in constants]
    return texts[0] if len(texts) == 1 else f"one of {', '.join(texts)}"


def _hex(data: bytes) -> str:
    return f"0x{data[:16].hex()}{'...' if len(data) > 16 else ''}"


def _lowered(text: str) -> str:
    return text[0].lower() + text[1:].rstrip(".")
