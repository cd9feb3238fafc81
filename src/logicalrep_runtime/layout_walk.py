"""Reads a message field by field by its layout: slow, with exact errors, for `inspect` and to locate a fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from logicalrep_runtime.errors import DecodeError, codec_name
from logicalrep_runtime.layout import MessageLayout, PartLayout, ProtocolLayout
from logicalrep_runtime.layout_words import (
    allowed_by,
    byte_text,
    bytes_of,
    choice_of,
    either,
    legal_of,
    of_version,
    tag_of,
)
from logicalrep_runtime.operations import (
    Bytes,
    Choose,
    Conditional,
    Group,
    Integer,
    Measure,
    Operation,
    Operations,
    Repeat,
    Take,
    Text,
)


@dataclass(frozen=True, slots=True)
class Step:
    path: str
    offset: int
    data: bytes
    operation: Operation
    value: object


def walk(
    protocol: ProtocolLayout,
    version: int,
    data: bytes,
    *,
    facts: Mapping[str, Any],
    encoding: str = "utf-8",
    sender: str = "server",
    strict: bool = False,
    is_whole: bool = True,
) -> Iterator[Step]:
    """Yield each row of a message. Raises DecodeError at the first fault, after the rows before the fault.

    `facts` are false by default. `strict` refuses messages of later versions that servers send nevertheless. Without
    `is_whole`, bytes may follow the message.
    """
    message = _message(protocol, version, data, sender, facts)
    if message.since > version and (strict or not message.is_sent_in(version, facts)):
        raise _later_version_error(protocol, version, message)
    walker = _Walker(protocol, max(version, message.since), data, facts, encoding, message.name, is_whole)
    yield from walker.layout(message.operations, "")
    if walker.offset < len(walker.data) and walker.is_whole:
        excess = walker.data[walker.offset :]
        raise DecodeError(
            message.name,
            "end",
            walker.offset,
            "the end of the message",
            f"{bytes_of(len(excess))} more: {hex_of(excess)}",
        )


def decode_error(
    protocol: ProtocolLayout,
    version: int,
    data: bytes,
    *,
    facts: Mapping[str, Any],
    encoding: str = "utf-8",
    sender: str = "server",
    is_whole: bool = True,
) -> DecodeError:
    steps = walk(protocol, version, data, facts=facts, encoding=encoding, sender=sender, strict=True, is_whole=is_whole)
    try:
        for _ in steps:
            pass
    except DecodeError as error:
        return error
    raise AssertionError(f"parse refuses bytes that the layout of protocol version {version} allows: {hex_of(data)}")


def _message(
    protocol: ProtocolLayout, version: int, data: bytes, sender: str, facts: Mapping[str, Any]
) -> MessageLayout:
    if not data and all(message.tag or message.when for message in protocol.messages):
        raise DecodeError("message", "tag", 0, "a message", "no bytes")
    message = protocol.find(data, version, sender, facts)
    if message is None:
        tags = [layout.tag for layout in protocol.messages if layout.sender in (sender, "both")]
        known_tags = "".join(dict.fromkeys(tags))
        actual = byte_text(data[0])
        for layout_of_other_side in protocol.messages:
            if layout_of_other_side.tag == chr(data[0]):
                actual += f', {layout_of_other_side.name} with sender="{layout_of_other_side.sender}"'
        raise DecodeError("message", "tag", 0, f"one of the tags {known_tags}", actual)
    return message


def _later_version_error(protocol: ProtocolLayout, version: int, message: MessageLayout) -> DecodeError:
    actual = f"'{message.tag}', {message.name} of version {protocol.version_name(message.since)}"
    if message.also_since:
        older = "older versions" if message.also_since == 1 else f"versions from {message.also_since} on"
        actual += f", which is sent to {older} too"
    if message.also_when:
        actual += f" where {message.also_when}: {_lowered(protocol.session[message.also_when])}"
    return DecodeError(
        message.name, "tag", 0, f"a message of protocol version {protocol.version_name(version)}", actual
    )


class _Walker:
    def __init__(
        self,
        protocol: ProtocolLayout,
        version: int,
        data: bytes,
        facts: Mapping[str, Any],
        encoding: str,
        message: str,
        is_whole: bool,
    ) -> None:
        self.protocol = protocol
        self.version = version
        self.data = data
        self.facts = facts
        codec_name(encoding)
        self.encoding = encoding
        self.message = message
        self.is_whole = is_whole
        """Whether the message takes all bytes. A length shows the end of a message that does not."""
        self.offset = 0

    def error(self, path: str, offset: int, expected: str, actual: str) -> DecodeError:
        return DecodeError(self.message, path, offset, expected, actual)

    def layout(self, operations: Operations, prefix: str) -> Iterator[Step]:
        yield from self.rows(operations, prefix, {})

    def rows(self, operations: Operations, prefix: str, measured: dict[str, int]) -> Iterator[Step]:
        for operation in of_version(operations, self.version):
            path = prefix + operation.name
            match operation:
                case Conditional():
                    if self.next_is(operation.ahead) if operation.ahead else self.facts.get(operation.fact, False):
                        yield from self.rows(operation.body, prefix, measured)
                case Repeat():
                    yield from self.repeat(operation, path, measured)
                case Measure():
                    step = self.integer(operation, path)
                    measured[operation.name] = count = int.from_bytes(
                        step.data, operation.order, signed=operation.signed
                    )
                    self.check_measure(operation, count, step)
                    yield step
                case _:
                    yield from self.once(operation, path, measured)

    def repeat(self, operation: Repeat, path: str, measured: Mapping[str, int]) -> Iterator[Step]:
        if operation.count:
            for index in range(measured[operation.count]):
                yield from self.once(operation.body, f"{path}[{index}]", measured)
            return
        index = 0
        end = operation.end or b"\0"
        while self.data[self.offset : self.offset + len(end)] != end:
            yield from self.once(operation.body, f"{path}[{index}]", measured)
            index += 1
        if operation.end:
            return
        offset = self.offset
        yield Step(path, offset, self.take(1, path), operation, 0)

    def check_measure(self, measure: Measure, count: int, step: Step) -> None:
        length = len(self.data) - measure.preceding
        if not measure.of and not self.is_whole and measure.width <= count <= length:
            self.data = self.data[: measure.preceding + count]
            self.is_whole = True
        elif not measure.of and count != length:
            raise self.error(step.path, step.offset, str(length), str(count))
        if count < 0 and not (measure.nullable and count == -1):
            expected = "-1 or more" if measure.nullable else "0 or more"
            raise self.error(step.path, step.offset, expected, str(count))

    def next_is(self, values: tuple[int, ...]) -> bool:
        return self.offset < len(self.data) and self.data[self.offset] in values

    def once(self, operation: Operation, path: str, measured: Mapping[str, int]) -> Iterator[Step]:
        match operation:
            case Integer():
                yield self.integer(operation, path)
            case Text():
                yield self.text(operation, path)
            case Bytes():
                size = operation.size or (
                    measured[operation.count] if operation.count else len(self.data) - self.offset
                )
                offset = self.offset
                if size == -1:
                    yield Step(path, offset, b"", operation, None)
                    return
                data = self.take(size, path)
                if operation.constant and data != operation.constant:
                    raise self.error(path, offset, hex_of(operation.constant), hex_of(data))
                yield Step(path, offset, data, operation, data)
            case Group():
                yield from self.layout(self.protocol.parts[operation.part].operations, f"{path}.")
            case Choose():
                yield from self.layout(self.read_choice(self.protocol.parts[operation.part], path), f"{path}.")

    def read_choice(self, part: PartLayout, path: str) -> Operations:
        alternatives = {
            tag_of(alternative).code: alternative for alternative in of_version(part.alternatives, self.version)
        }
        tag = f"{path}.{tag_of(part.alternatives[0]).name}"
        byte = self.take(1, tag)[0]
        self.offset -= 1
        if byte not in alternatives:
            raise self.error(tag, self.offset, choice_of(tuple(alternatives)), byte_text(byte))
        return alternatives[byte].operations

    def take(self, size: int, path: str) -> bytes:
        remaining = len(self.data) - self.offset
        if size > remaining:
            raise self.error(path, self.offset, bytes_of(size), f"{bytes_of(remaining)} to the end of the message")
        self.offset += size
        return self.data[self.offset - size : self.offset]

    def integer(self, operation: Integer, path: str) -> Step:
        offset = self.offset
        data = self.take(operation.width, path)
        number = int.from_bytes(data, operation.order, signed=operation.signed)
        allowed = allowed_by(operation)
        if allowed and number not in allowed:
            actual = byte_text(number) if operation.is_character else str(number)
            raise self.error(path, offset, legal_of(operation), actual)
        if isinstance(operation, Take) and number in operation.refused:
            raise self.error(
                path, offset, f"anything but {either(operation.refused)}".replace(" 0", " zero"), str(number)
            )
        value: object = number
        if operation.is_character:
            value = chr(number)
        elif isinstance(operation, Take) and operation.wrapper is not None:
            value = operation.wrapper(number)
        return Step(path, offset, data, operation, value)

    def text(self, operation: Text, path: str) -> Step:
        offset = self.offset
        end = self.data.find(0, offset)
        if end < 0:
            remaining = len(self.data) - offset
            raise self.error(path, offset, "a text that a zero byte ends", f"{bytes_of(remaining)} without one")
        self.offset = end + 1
        raw = self.data[offset:end]
        try:
            value = raw.decode(self.encoding)
        except UnicodeDecodeError as error:
            raise self.error(
                path, offset + error.start, f"text in {self.encoding}", hex_of(raw[error.start :])
            ) from None
        return Step(path, offset, self.data[offset : end + 1], operation, value)


def hex_of(data: bytes) -> str:
    return f"0x{data[:16].hex()}{'...' if len(data) > 16 else ''}"


def _lowered(text: str) -> str:
    return text[0].lower() + text[1:].rstrip(".")
