"""What the generated Structs need beyond construct's own classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from construct import (
    Adapter,
    Construct,
    Container,
    ExprValidator,
    GreedyBytes,
    NullTerminated,
    StringError,
    ValidationError,
    stream_read,
    stream_tell,
)


def session(fact: str) -> Callable[[Container], bool]:
    """Whether a session fact holds: `Insert.struct.parse(data, streaming=True)`; one that is not given does not."""

    def holds(context: Container) -> bool:
        return bool(context._params.get(fact, False))

    return holds


class _String(Adapter):  # type: ignore[misc]
    """Text up to a zero byte, in the `encoding` that `parse` and `build` are given, UTF-8 without one."""

    def _decode(self, obj: bytes, context: Container, path: str) -> str:
        encoding = context._params.get("encoding", "utf-8")
        try:
            return obj.decode(encoding)
        except UnicodeDecodeError as error:
            raise StringError(str(error), path=path) from error

    def _encode(self, obj: str, context: Container, path: str) -> bytes:
        encoding = context._params.get("encoding", "utf-8")
        try:
            data = obj.encode(encoding)
        except UnicodeEncodeError as error:
            raise StringError(str(error), path=path) from error
        if 0 in data:
            raise StringError("a zero byte would end the text", path=path)
        return data


String = _String(NullTerminated(GreedyBytes))
"""Text up to a zero byte."""


class Char(Construct):  # type: ignore[misc]
    """One byte that is one of a few characters."""

    def __init__(self, characters: str) -> None:
        super().__init__()
        self.characters = characters

    def _parse(self, stream: Any, context: Container, path: str) -> str:
        character = chr(stream_read(stream, 1, path)[0])
        if character not in self.characters:
            raise ValidationError(f"{character!r} is none of {self.characters!r}", path=path)
        return character

    def _build(self, obj: str, stream: Any, context: Container, path: str) -> str:
        if len(obj) != 1 or obj not in self.characters:
            raise ValidationError(f"{obj!r} is none of {self.characters!r}", path=path)
        stream.write(obj.encode("ascii"))
        return obj

    def _sizeof(self, context: Container, path: str) -> int:
        return 1


def nonzero(integer: Construct) -> Construct:
    """An integer that must not be zero."""
    return ExprValidator(integer, lambda value, _: value != 0)


class Alternatives(Construct):  # type: ignore[misc]
    """One of several Structs, told apart by the byte that each begins with."""

    def __init__(self, tag: str, structs: dict[bytes, Construct]) -> None:
        super().__init__()
        self.tag = tag
        self.structs = structs

    def _parse(self, stream: Any, context: Container, path: str) -> Container:
        offset = stream_tell(stream, path)
        byte = stream_read(stream, 1, path)
        stream.seek(offset)
        if byte not in self.structs:
            raise ValidationError(f"{byte!r} is none of {', '.join(map(repr, self.structs))}", path=path)
        return self.structs[byte]._parsereport(stream, context, path)

    def _build(self, obj: dict[str, Any], stream: Any, context: Container, path: str) -> Any:
        if obj[self.tag] not in self.structs:
            raise ValidationError(f"{obj[self.tag]!r} is none of {', '.join(map(repr, self.structs))}", path=path)
        return self.structs[obj[self.tag]]._build(obj, stream, context, path)
