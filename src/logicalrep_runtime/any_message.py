"""The Structs of any message: which one it is, the first byte tells, a constant, or what the session waits for.

All raise construct's errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeVar

from construct import (
    Construct,
    Container,
    StreamError,
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
    """construct's Switch for DataclassStructs: the first byte tells which one to parse, the class which to build."""

    def __init__(self, structs: Mapping[bytes, DataclassStruct[Any]]) -> None:
        super().__init__()
        self.structs = structs
        self._by_class = {struct._class: struct for struct in structs.values()}

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
    """The Struct of a message that no tag of its own tells, and what tells it."""

    struct: DataclassStruct[Any]
    first: bytes = b""
    """The first bytes that it may have; empty for any."""
    fact: tuple[str, str] = ("", "")
    """A session fact and its value."""
    constant: tuple[int, Construct, int] | None = None
    """The bytes before a constant, what reads it, and its value."""


class Discriminated(TypedEntries[_Value], Construct):  # type: ignore[misc]
    """Messages that share a tag or have none, before those that have their own.

    What the session waits for is given as in `parse(data, expected="password")`; `begun` are its facts at the start.
    """

    def __init__(self, choices: tuple[StructChoice, ...], tagged: Tagged[_Value], **begun: str) -> None:
        super().__init__()
        self.choices = choices
        self.tagged = tagged
        self.begun = begun
        self._by_class = {choice.struct._class: choice.struct for choice in choices}

    def _parse(self, stream: BinaryIO, context: Container, path: str) -> object:
        start = stream_tell(stream, path)
        facts = {**self.begun, **context._params}
        structs = (choice.struct for choice in self.choices if self._is(choice, stream, start, facts, path))
        return next(structs, self.tagged)._parsereport(stream, context, path)

    def _is(self, told: StructChoice, stream: BinaryIO, start: int, facts: Mapping[str, object], path: str) -> bool:
        """Return whether that message is next; the stream stays where it is."""
        name, value = told.fact
        if name and facts[name] != value:
            return False
        try:
            is_first = not told.first or stream_read(stream, 1, path) in told.first
            if not is_first or told.constant is None:
                return is_first
            distance, integer, code = told.constant
            stream_seek(stream, start + distance, 0, path)
            return bool(integer._parsereport(stream, Container(), path) == code)
        except StreamError:
            return False
        finally:
            stream_seek(stream, start, 0, path)

    def _build(self, obj: _Value, stream: BinaryIO, context: Container, path: str) -> object:
        return self._by_class.get(type(obj), self.tagged)._build(obj, stream, context, path)


class Whole(TypedEntries[_Value], Subconstruct):  # type: ignore[misc]
    """Takes all bytes that there are, as with construct's Terminated after it."""

    def __init__(self, subcon: TypedEntries[_Value]) -> None:
        super().__init__(subcon)

    def _parse(self, stream: BinaryIO, context: Container, path: str) -> _Value:
        value: _Value = super()._parse(stream, context, path)
        Terminated._parse(stream, context, path)
        return value
