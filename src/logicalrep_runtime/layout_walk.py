"""Reads a message field by field, by its layout: slow, exact about where a fault lies, and all that `inspect` needs.

The straight-line codecs only detect that something is wrong; `decode_error` and `encode_error` say what.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from logicalrep_runtime.errors import DecodeError, EncodeError, codec_name, shown
from logicalrep_runtime.layout import Field, MessageLayout, PartLayout, ProtocolLayout
from logicalrep_runtime.scalars import Lsn, Oid, TimestampTz, TransactionId

_Since = TypeVar("_Since", Field, PartLayout)
_SCALARS = {"Lsn": Lsn, "TimestampTz": TimestampTz, "Oid": Oid, "TransactionId": TransactionId}


@dataclass(frozen=True, slots=True)
class Step:
    """One field that was read."""

    path: str
    """Its path in the message, such as `new.cells[2].length`."""
    offset: int
    """The offset of its first byte in the message."""
    data: bytes
    """Its bytes."""
    field: Field
    """Its row in the layout."""
    value: object
    """The value of the bytes."""


def walk(
    protocol: ProtocolLayout,
    version: int,
    data: bytes,
    *,
    facts: Mapping[str, bool],
    encoding: str = "utf-8",
    sender: str = "server",
    strict: bool = False,
) -> Iterator[Step]:
    """Yield each field of a whole message; raise DecodeError at the first fault, after the fields before it.

    `facts` are the session facts that hold, by name; one that is not named is false. `strict` refuses, as `parse` does,
    messages of later versions that servers send all the same.
    """
    message = _message(protocol, version, data, sender)
    if message.since > version and (strict or not message.comes_in(version, facts)):
        raise _of_later_version(protocol, version, message)
    walker = _Walker(protocol, max(version, message.since), data, facts, encoding, message.name)
    yield from walker.fields(message.fields, "")
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
    facts: Mapping[str, bool],
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


def _message(protocol: ProtocolLayout, version: int, data: bytes, sender: str) -> MessageLayout:
    if not data:
        raise DecodeError("message", "tag", 0, "a message", "no bytes")
    message = protocol.message(data[0], sender)
    if message is None:
        known = "".join(layout.tag for layout in protocol.messages if layout.sender == sender)
        found = _byte(data[0])
        for other in protocol.messages:
            if other.tag == chr(data[0]):
                found += f', {other.name} with sender="{other.sender}"'
        raise DecodeError("message", "tag", 0, f"one of the tags {known}", found)
    return message


def _of_later_version(protocol: ProtocolLayout, version: int, message: MessageLayout) -> DecodeError:
    found = f"'{message.tag}', {message.name} of version {message.since}"
    if message.also_since:
        older = "older versions" if message.also_since == 1 else f"versions from {message.also_since} on"
        found += f", which is sent to {older} too"
    if message.also_when:
        found += f" where {message.also_when}: {_lowered(protocol.session[message.also_when])}"
    return DecodeError(message.name, "tag", 0, f"a message of protocol version {version}", found)


def _known(items: tuple[_Since, ...], version: int) -> tuple[_Since, ...]:
    """The fields or alternatives that a version has."""
    return tuple(item for item in items if item.since <= version)


class _Walker:
    """The position in a message, and what was read so far."""

    def __init__(
        self,
        protocol: ProtocolLayout,
        version: int,
        data: bytes,
        facts: Mapping[str, bool],
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

    def fields(self, fields: tuple[Field, ...], prefix: str) -> Iterator[Step]:
        """The fields of one layout."""
        read: dict[str, int] = {}
        present: set[str] = set()
        fields = _known(fields, self.version)
        counts = {field.size for field in fields} | {field.repeat for field in fields}
        for field in fields:
            if field.when and not (field.when in present or self.facts.get(field.when, False)):
                continue
            path = prefix + field.name
            if field.optional and not self.next_is(field.constants):
                continue
            present.add(field.name)
            if field.repeat:
                for index in range(read[field.repeat]):
                    yield from self.field(field, f"{path}[{index}]", read)
                continue
            for step in self.field(field, path, read):
                if step.path == path and field.kind == "int":
                    read[field.name] = int.from_bytes(step.data, "big", signed=field.signed)
                    if field.name in counts and read[field.name] < 0:
                        raise self.error(path, step.offset, "0 or more", str(read[field.name]))
                yield step

    def next_is(self, constants: tuple[int, ...]) -> bool:
        return self.offset < len(self.data) and self.data[self.offset] in constants

    def field(self, field: Field, path: str, read: Mapping[str, int]) -> Iterator[Step]:
        """One field, or all those of the part that it is."""
        if field.kind == "int":
            yield self.integer(field, path)
        elif field.kind == "string":
            yield self.string(field, path)
        elif field.kind == "bytes":
            size = len(self.data) - self.offset if field.size == "rest" else read[field.size]
            offset = self.offset
            data = self.take(size, path)
            yield Step(path, offset, data, field, data)
        else:
            part = self.protocol.parts[field.part]
            yield from self.fields(self.layout_of(part, path), f"{path}.")

    def layout_of(self, part: PartLayout, path: str) -> tuple[Field, ...]:
        if not part.alternatives:
            return part.fields
        alternatives = _known(part.alternatives, self.version)
        tag = f"{path}.{alternatives[0].fields[0].name}"
        byte = self.take(1, tag)[0]
        self.offset -= 1
        for alternative in alternatives:
            if byte in alternative.fields[0].constants:
                return alternative.fields
        allowed = tuple(alternative.fields[0].constants[0] for alternative in alternatives)
        raise self.error(tag, self.offset, _choice(allowed), _byte(byte))

    def take(self, size: int, path: str) -> bytes:
        left = len(self.data) - self.offset
        if size > left:
            raise self.error(path, self.offset, _bytes(size), f"{_bytes(left)} to the end of the message")
        self.offset += size
        return self.data[self.offset - size : self.offset]

    def integer(self, field: Field, path: str) -> Step:
        offset = self.offset
        data = self.take(field.width, path)
        number = int.from_bytes(data, "big", signed=field.signed)
        if field.constants and number not in field.constants:
            character = field.characters
            found = _byte(number) if character else str(number)
            raise self.error(path, offset, _choice(field.constants) if character else str(field.constants[0]), found)
        if field.nonzero and number == 0:
            raise self.error(path, offset, "anything but zero", "0")
        if field.boolean and number > 1:
            raise self.error(path, offset, "0 or 1", str(number))
        value: object = number
        if field.characters:
            value = chr(number)
        elif field.boolean:
            value = bool(number)
        elif field.scalar in _SCALARS:
            value = _SCALARS[field.scalar](number)
        return Step(path, offset, data, field, value)

    def string(self, field: Field, path: str) -> Step:
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
        return Step(path, offset, self.data[offset : end + 1], field, value)


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
    layout = protocol.message(ord(tag), sender) if isinstance(tag, str) else None
    name = layout.name if layout is not None else type(message).__name__
    fields = layout.fields if layout is not None else protocol.parts[type(message).__name__].fields
    fault = _Faults(protocol, version, encoding).of_layout(fields, message, "")
    if fault is None:
        return EncodeError(name, "message", "attributes that fit their fields", f"{type(cause).__name__}: {cause}")
    return EncodeError(name, *fault)


_Fault = tuple[str, str, str] | None


class _Faults:
    """Finds the first attribute that does not fit: its path, what fits, what it holds."""

    def __init__(self, protocol: ProtocolLayout, version: int, encoding: str) -> None:
        self.protocol = protocol
        self.version = version
        self.encoding = encoding

    def of_layout(self, fields: tuple[Field, ...], owner: object, prefix: str) -> _Fault:
        fields = _known(fields, self.version)
        lengths = {field.size for field in fields} | {field.repeat for field in fields}
        for field in fields:
            if field.name in lengths or len(field.constants) == 1:
                continue
            path = prefix + field.name
            if field.part and self.protocol.parts[field.part].alternatives:
                alternatives = _known(self.protocol.parts[field.part].alternatives, self.version)
                fault = self.of_cells(fields, field, alternatives, owner, path)
            else:
                fault = self.of_attribute(fields, field, owner, path)
            if fault is not None:
                return fault
        return None

    def of_attribute(self, fields: tuple[Field, ...], field: Field, owner: object, path: str) -> _Fault:
        value = getattr(owner, field.name)
        if field.when or field.optional:
            companions = [field.when] if field.when in {other.name for other in fields} else []
            companions += [
                other.name
                for other in fields
                if other is not field and (other.when == field.name or (field.when and other.when == field.when))
            ]
            for companion in companions:
                if (getattr(owner, companion) is None) != (value is None):
                    return path, f"a value if and only if {companion} has one", shown(value)
            if value is None:
                return None
        if not field.repeat:
            return self.of_value(fields, field, value, path)
        if not isinstance(value, tuple | list):
            return path, "a tuple", shown(value)
        if len(value) >= _limit(fields, field.repeat):
            return path, f"fewer than {_limit(fields, field.repeat)} items", str(len(value))
        faults = (self.of_value(fields, field, item, f"{path}[{index}]") for index, item in enumerate(value))
        return next((fault for fault in faults if fault is not None), None)

    def of_value(self, fields: tuple[Field, ...], field: Field, value: object, path: str) -> _Fault:
        if field.kind == "part":
            if type(value).__name__ != field.part:
                return path, field.part, shown(value)
            return self.of_layout(self.protocol.parts[field.part].fields, value, f"{path}.")
        if field.kind == "string":
            return self.of_text(value, path)
        if field.kind == "bytes":
            return _bytes_fault(fields, field, value, path, "bytes")
        if field.characters:
            if isinstance(value, str) and len(value) == 1 and ord(value) in field.constants:
                return None
            return path, _choice(field.constants), shown(value)
        low = -(1 << (8 * field.width - 1)) if field.signed else 0
        high = (1 << (8 * field.width - field.signed)) - 1
        if field.boolean:
            low, high = 0, 1
        if not isinstance(value, int) or not low <= value <= high or (field.nonzero and value == 0):
            return path, f"a whole number from {1 if field.nonzero and not low else low} to {high}", shown(value)
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

    def of_cells(
        self, fields: tuple[Field, ...], field: Field, alternatives: tuple[PartLayout, ...], owner: object, path: str
    ) -> _Fault:
        """Find the first kind and value of repeated alternatives that do not go together."""
        kinds, values = getattr(owner, "kinds", None), getattr(owner, "values", None)
        if not isinstance(kinds, bytes) or not isinstance(values, tuple | list) or len(kinds) != len(values):
            return path, "kinds as bytes and as many values in a tuple", f"{shown(kinds)} and {shown(values)}"
        if len(kinds) >= _limit(fields, field.repeat):
            return path, f"fewer than {_limit(fields, field.repeat)} items", str(len(kinds))
        layouts = {layout.fields[0].constants[0]: _known(layout.fields, self.version) for layout in alternatives}
        value_name = next((rows[-1].name for rows in layouts.values() if len(rows) > 1), "value")
        for index, (kind, value) in enumerate(zip(kinds, values, strict=True)):
            where = f"{path}[{index}].{value_name}"
            if kind not in layouts:
                return f"{path}[{index}].{alternatives[0].fields[0].name}", _choice(tuple(layouts)), _byte(kind)
            rows = layouts[kind]
            if len(rows) > 1 and (
                fault := _bytes_fault(rows, rows[-1], value, where, f"bytes for the kind {_byte(kind)}")
            ):
                return fault
            if len(rows) == 1 and value is not None:
                return where, f"None for the kind {_byte(kind)}", shown(value)
        return None


def _bytes_fault(fields: tuple[Field, ...], field: Field, value: object, path: str, expected: str) -> _Fault:
    if not isinstance(value, bytes):
        return path, expected, shown(value)
    limit = len(value) + 1 if field.size == "rest" else _limit(fields, field.size)
    return None if len(value) < limit else (path, f"fewer than {limit} bytes", str(len(value)))


def _limit(fields: tuple[Field, ...], name: str) -> int:
    """The first number that the integer of that name cannot hold."""
    field = next(field for field in fields if field.name == name)
    return 1 << (8 * field.width - field.signed)


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
