"""Structs that choose a message's Struct by its first byte, by a constant, or by the session's state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, BinaryIO, TypeVar

from construct import (
    Construct,
    Container,
    Subconstruct,
    SwitchError,
    Terminated,
    stream_read,
    stream_seek,
    stream_tell,
)

from logicalrep_runtime.constructs import DataclassStruct, TypedEntries

_Value = TypeVar("_Value")


class Tagged(TypedEntries[_Value], Construct):  # type: ignore[misc]
    """construct's Switch for DataclassStructs: chooses by the first byte to parse, and by the class to build."""

    def __init__(self, structs: Mapping[bytes, DataclassStruct[Any]]) -> None:
        super().__init__()
        self.structs = structs
        self._by_class = {struct._class: struct for struct in structs.values()}

    def choices(self) -> Iterator[StructChoice]:
        """Yield the messages, each identified by its tag."""
        return (StructChoice(struct, first=tag) for tag, struct in self.structs.items())

    def _parse(self, stream: BinaryIO, context: Container, path: str) -> object:
        offset = stream_tell(stream, path)
        tag = stream_read(stream, 1, path)
        if tag not in self.structs:
            raise SwitchError(f"the tag {tag!r} is none of {b''.join(self.structs)!r}", path=path)
        stream_seek(stream, offset, 0, path)
        return self.structs[tag]._parsereport(stream, context, path)

    def _build(self, obj: _Value, stream: BinaryIO, context: Container, path: str) -> object:
        if type(obj) not in self._by_class:
            names = ", ".join(class_.__name__ for class_ in self._by_class)
            raise SwitchError(f"{type(obj).__name__} is none of {names}", path=path)
        return self._by_class[type(obj)]._build(obj, stream, context, path)


@dataclass(frozen=True)
class StructChoice:
    """The Struct of a message without a tag of its own, and the conditions that identify the message."""

    struct: DataclassStruct[Any]
    first: bytes = b""
    fact: tuple[str, str] = ("", "")
    constants: tuple[tuple[int, bytes], ...] = ()
    """The offsets and bytes of constants."""


class Discriminated(TypedEntries[_Value], Construct):  # type: ignore[misc]
    """construct's Select for messages that share a tag or have none; falls back to `tagged`.

    Pass the session's facts as in `parse(data, expected="password")`; `initial_facts` has their initial values.
    """

    def __init__(self, choices: tuple[StructChoice, ...], tagged: Tagged[_Value], **initial_facts: str) -> None:
        super().__init__()
        self.untagged = choices
        self.tagged = tagged
        self.initial_facts = initial_facts
        self._by_class = {choice.struct._class: choice.struct for choice in choices}

    def choices(self) -> Iterator[StructChoice]:
        """Yield the messages; the first whose conditions hold is the message that comes next."""
        return chain(self.untagged, self.tagged.choices())

    def _parse(self, stream: BinaryIO, context: Container, path: str) -> object:
        start = stream_tell(stream, path)
        facts = {**self.initial_facts, **context._params}
        structs = (choice.struct for choice in self.untagged if self._matches(choice, stream, start, facts, path))
        return next(structs, self.tagged)._parsereport(stream, context, path)

    def _matches(
        self, choice: StructChoice, stream: BinaryIO, start: int, facts: Mapping[str, object], path: str
    ) -> bool:
        """Return whether the message comes next; leaves the stream at `start`."""
        name, value = choice.fact
        if name and facts[name] != value:
            return False
        size = max((offset + len(code) for offset, code in choice.constants), default=1)
        head = stream.read(size)
        stream_seek(stream, start, 0, path)
        is_first = not choice.first or (head and head[0] in choice.first)
        return bool(is_first) and all(head[offset:].startswith(code) for offset, code in choice.constants)

    def _build(self, obj: _Value, stream: BinaryIO, context: Container, path: str) -> object:
        return self._by_class.get(type(obj), self.tagged)._build(obj, stream, context, path)


class Whole(TypedEntries[_Value], Subconstruct):  # type: ignore[misc]
    def __init__(self, subcon: Tagged[_Value] | Discriminated[_Value]) -> None:
        super().__init__(subcon)

    def choices(self) -> Iterator[StructChoice]:
        """Yield the messages; the first whose conditions hold is the message that comes next."""
        choices: Iterator[StructChoice] = self.subcon.choices()
        return choices

    def _parse(self, stream: BinaryIO, context: Container, path: str) -> _Value:
        value: _Value = super()._parse(stream, context, path)
        Terminated._parse(stream, context, path)
        return value
