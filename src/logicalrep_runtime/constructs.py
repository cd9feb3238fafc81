"""The Constructs of generated Structs beyond construct's own: dataclasses, and values as the spec defines them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from enum import StrEnum
from functools import cached_property
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, TypeVar

from construct import (
    AdaptationError,
    Adapter,
    Array,
    Bytes,
    CheckError,
    Const,
    Construct,
    ConstructError,
    Container,
    GreedyBytes,
    Int8ub,
    NullTerminated,
    OneOf,
    Renamed,
    StringError,
    Struct,
    Subconstruct,
    ValidationError,
    stream_read,
    stream_seek,
    stream_tell,
    stream_write,
)

from logicalrep_runtime.errors import shown
from logicalrep_runtime.scalars import Buffer

_Value = TypeVar("_Value")


class TypedEntries(Generic[_Value]):
    if TYPE_CHECKING:

        def parse(self, data: Buffer, **facts: object) -> _Value:
            """Parse a value. Ignores bytes after it."""
            raise NotImplementedError

        def build(self, obj: _Value, **facts: object) -> bytes:
            raise NotImplementedError


class DataclassStruct(TypedEntries[_Value], Struct):  # type: ignore[misc]
    """construct's Struct as an attribute of a dataclass: parses to an instance, and builds from an instance.

    Constants, counts and lengths are rows of the Struct but no attributes of the class. The same holds for the row
    `cells`: the class's method `of` converts it to two columns, and the property of the row's name converts it back.
    """

    def __init__(self, *rows: Construct, cells: str = "") -> None:
        super().__init__(*rows)
        for row in rows:
            # Both `/` and `*` rename the row, so its name would occur twice in the paths of errors.
            if type(row.subcon) is Renamed and row.subcon.name == row.name:
                row.subcon = row.subcon.subcon
        self._cells = cells
        self._length = next((row.subcon for row in self.subcons if isinstance(row.subcon, MessageLength)), None)
        self._lists = [row.name for row in self.subcons if isinstance(row.subcon, Array) and row.name != cells]

    def __set_name__(self, owner: type, name: str) -> None:
        # A dataclass with slots is made twice, the second time from the attributes of the first.
        is_first = not hasattr(self, "_class")
        self._class: type[Any] = owner
        types = {name: str(annotation) for name, annotation in owner.__annotations__.items()}
        texts = [
            f"    {name}: {text}" if text else f"    {name}"
            for name, text in self._texts().items()
            if name in types and "ClassVar" not in types[name]
        ]
        if is_first and texts:
            owner.__doc__ = "\n".join([cleandoc(owner.__doc__ or ""), "", "Attributes:", *texts])

    def _texts(self) -> dict[str, str]:
        """Return the docs of the class's attributes: at run time, Python has none of their docstrings."""
        texts = {row.name: row.docs for row in self.subcons}
        if self._cells:
            structs = self._subcons[self._cells].subcon.subcon.structs
            legend = ", ".join(f"{tag.decode()} {struct._class.__name__}" for tag, struct in structs.items())
            texts |= {"kinds": f"One byte for each value: {legend}.", "values": texts.pop(self._cells)}
        return texts

    @cached_property
    def _attributes(self) -> list[str]:
        return [field.name for field in dataclasses.fields(self._class) if field.name in self._subcons]

    def _parse(self, stream: BinaryIO, context: Container, path: str) -> object:
        values = super()._parse(stream, context, path)
        attributes = {name: values[name] for name in self._attributes}
        for name in self._lists:
            attributes[name] = tuple(attributes[name])
        if self._cells:
            return self._class.of(*values[self._cells], **attributes)
        return self._class(**attributes)

    def _build(self, obj: _Value, stream: BinaryIO, context: Container, path: str) -> _Value:
        if type(obj) is not self._class:
            raise ValidationError(f"expected {self._class.__name__}, found {type(obj).__name__}", path=path)
        try:
            names = [*self._attributes, self._cells] if self._cells else self._attributes
            built = super()._build({name: getattr(obj, name) for name in names}, stream, context, path)
            if self._length is not None:
                self._length.write_length(stream, built["_length_at"], path)
        except ConstructError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            text = f"an attribute of {self._class.__name__} does not fit: {type(error).__name__}: {error}"
            raise AdaptationError(text, path=path) from error
        return obj

    # Without these, construct's compiler would replace the object by a plain Struct.
    _emitparse = Construct._emitparse
    _emitbuild = Construct._emitbuild


class IfPresent(Subconstruct):  # type: ignore[misc]
    """construct's If, which also refuses to drop a value: the value is not None if and only if the condition holds."""

    def __init__(self, condition: Callable[[Container], object], subcon: Construct, name: str = "") -> None:
        super().__init__(subcon)
        self.condition = condition
        self._shown = name or repr(condition)

    def _parse(self, stream: BinaryIO, context: Container, path: str) -> object:
        return super()._parse(stream, context, path) if self.condition(context) else None

    def _build(self, obj: object, stream: BinaryIO, context: Container, path: str) -> object:
        is_due = self._is_due(obj, context)
        if is_due is not (obj is not None) and not isinstance(self.subcon, Const):
            raise CheckError(f"expected a value if and only if {self._shown} holds, found {shown(obj)}", path=path)
        return super()._build(obj, stream, context, path) if is_due else None

    def _is_due(self, obj: object, context: Container) -> bool:
        return bool(self.condition(context))

    def _sizeof(self, context: Container, path: str) -> int:
        return super()._sizeof(context, path) if self.condition(context) else 0


class IfSession(IfPresent):
    """construct's If on a session fact, as in `Insert.struct.parse(data, streaming=True)`; false by default.

    When building, the fact holds if the value is not None; for a constant, if `deciding_value` is not None. A fact that
    is passed to `build` must agree.
    """

    def __init__(
        self, fact: str, subcon: Construct, deciding_value: Callable[[Container], object] | None = None
    ) -> None:
        super().__init__(lambda context: context._params.get(fact, False), subcon, fact)
        self.fact = fact
        self.other = deciding_value

    def _is_due(self, obj: object, context: Container) -> bool:
        # All fields of a fact are present or absent together: the first decides.
        value = obj if self.other is None else self.other(context)
        return bool(context.setdefault(f"_if_{self.fact}", context._params.get(self.fact, value is not None)))


class Typed(Adapter):  # type: ignore[misc]
    def __init__(self, subcon: Construct, class_: Callable[[Any], object]) -> None:
        super().__init__(subcon)
        self.type = class_

    def _decode(self, obj: object, context: Container, path: str) -> object:
        return self.type(obj)

    def _encode(self, obj: object, context: Container, path: str) -> object:
        return obj


Boolean = Typed(OneOf(Int8ub, (0, 1)), bool)
"""construct's Flag, but refuses bytes other than 0 and 1."""


class Flags(Subconstruct):  # type: ignore[misc]
    """construct's FlagsEnum, but parses to the integer of all bits, so that bits without a name survive.

    Masks with a name are attributes, as in `Truncate.struct.options.cascade`.
    """

    def __init__(self, subcon: Construct, **flags: int) -> None:
        super().__init__(subcon)
        self.flags = flags

    def __getattr__(self, name: str) -> int:
        if name in self.flags:
            return self.flags[name]
        raise AttributeError(name)


class Char(Construct):  # type: ignore[misc]
    def __init__(self, characters: str | type[StrEnum]) -> None:
        super().__init__()
        self.characters = "".join(characters)
        self.type = str if isinstance(characters, str) else characters

    def _parse(self, stream: BinaryIO, context: Container, path: str) -> str | None:
        character = chr(stream_read(stream, 1, path)[0])
        if character not in self.characters:
            raise ValidationError(f"{character!r} is none of {self.characters!r}", path=path)
        return self.type(character)

    def _build(self, obj: str | None, stream: BinaryIO, context: Container, path: str) -> str | None:
        if not isinstance(obj, str) or len(obj) != 1 or obj not in self.characters:
            raise ValidationError(f"{shown(obj)} is none of {self.characters!r}", path=path)
        stream_write(stream, obj.encode("ascii"), 1, path)
        return obj

    def _sizeof(self, context: Container, path: str) -> int:
        return 1


class OptionalChar(Char):
    """A character that is None if the next byte is not in the set."""

    def _parse(self, stream: BinaryIO, context: Container, path: str) -> str | None:
        offset = stream_tell(stream, path)
        following = stream.read(1)
        stream_seek(stream, offset, 0, path)
        is_present = following and chr(following[0]) in self.characters
        return super()._parse(stream, context, path) if is_present else None

    def _build(self, obj: str | None, stream: BinaryIO, context: Container, path: str) -> str | None:
        return None if obj is None else super()._build(obj, stream, context, path)

    _sizeof = Construct._sizeof


class _String(Adapter):  # type: ignore[misc]
    """Text up to a zero byte, in the `encoding` passed to `parse` and `build`; UTF-8 by default."""

    def _decode(self, obj: bytes, context: Container, path: str) -> str:
        try:
            return obj.decode(context._params.get("encoding", "utf-8"))
        except UnicodeError as error:
            raise StringError(str(error), path=path) from error

    def _encode(self, obj: str, context: Container, path: str) -> bytes:
        if not isinstance(obj, str):
            raise StringError(f"expected a str, found {shown(obj)}", path=path)
        try:
            data = obj.encode(context._params.get("encoding", "utf-8"))
        except UnicodeError as error:
            raise StringError(str(error), path=path) from error
        if 0 in data:
            raise StringError("a zero byte would end the text", path=path)
        return data


class _AnyChar(Construct):  # type: ignore[misc]
    def _parse(self, stream: BinaryIO, context: Container, path: str) -> str:
        byte = stream_read(stream, 1, path)
        if byte == b"\0":
            raise ValidationError("a zero byte is no character", path=path)
        return chr(byte[0])

    def _build(self, obj: str, stream: BinaryIO, context: Container, path: str) -> str:
        if not isinstance(obj, str) or len(obj) != 1 or not 0 < ord(obj) < 256:
            raise ValidationError(f"{shown(obj)} is no character of one byte", path=path)
        stream_write(stream, bytes((ord(obj),)), 1, path)
        return obj

    def _sizeof(self, context: Container, path: str) -> int:
        return 1


AnyChar = _AnyChar()


class FixedBytes(Bytes):  # type: ignore[misc]
    """construct's Bytes of a fixed number, without its bytes of an int."""

    def _build(self, obj: object, stream: BinaryIO, context: Container, path: str) -> object:
        if type(obj) is not bytes:
            raise ValidationError(f"expected bytes, found {shown(obj)}", path=path)
        return super()._build(obj, stream, context, path)


class NullableBytes(Construct):  # type: ignore[misc]
    """construct's Bytes, but the length -1 means None."""

    def __init__(self, length: Callable[[Container], int]) -> None:
        super().__init__()
        self.length = length

    def _parse(self, stream: BinaryIO, context: Container, path: str) -> bytes | None:
        length = self.length(context)
        if length < -1:
            raise ValidationError(f"{length} is no length", path=path)
        return None if length == -1 else bytes(stream_read(stream, length, path))

    def _build(self, obj: bytes | None, stream: BinaryIO, context: Container, path: str) -> bytes | None:
        if obj is not None:
            if type(obj) is not bytes:
                raise ValidationError(f"expected bytes or None, found {shown(obj)}", path=path)
            stream_write(stream, obj, len(obj), path)
        return obj


def length_or_null(value: Callable[[Container], bytes | None]) -> Callable[[Container], int]:
    def length(context: Container) -> int:
        data = value(context)
        return -1 if data is None else len(data)

    return length


class UntilZero(Subconstruct):  # type: ignore[misc]
    def _parse(self, stream: BinaryIO, context: Container, path: str) -> tuple[object, ...]:
        items = []
        while stream_read(stream, 1, path) != b"\0":
            stream_seek(stream, -1, 1, path)
            items.append(self.subcon._parsereport(stream, context, path))
        return tuple(items)

    def _build(self, obj: object, stream: BinaryIO, context: Container, path: str) -> object:
        if not isinstance(obj, tuple | list):
            raise ValidationError(f"expected a tuple, found {shown(obj)}", path=path)
        for item in obj:
            data = self.subcon.build(item, **context._params)
            if data[:1] == b"\0":
                raise ValidationError("an item cannot begin with a zero byte", path=path)
            stream_write(stream, data, len(data), path)
        stream_write(stream, b"\0", 1, path)
        return obj


class Until(Subconstruct):  # type: ignore[misc]
    """Items until a constant comes next, which is the next row of the Struct."""

    def __init__(self, end: bytes, subcon: Construct) -> None:
        super().__init__(subcon)
        self.end = end

    def _parse(self, stream: BinaryIO, context: Container, path: str) -> tuple[object, ...]:
        items = []
        while not self._is_next(stream, path):
            items.append(self.subcon._parsereport(stream, context, path))
        return tuple(items)

    def _is_next(self, stream: BinaryIO, path: str) -> bool:
        offset = stream_tell(stream, path)
        is_next: bool = stream.read(len(self.end)) == self.end
        stream_seek(stream, offset, 0, path)
        return is_next

    def _build(self, obj: object, stream: BinaryIO, context: Container, path: str) -> object:
        if not isinstance(obj, tuple | list):
            raise ValidationError(f"expected a tuple, found {shown(obj)}", path=path)
        for item in obj:
            data = self.subcon.build(item, **context._params)
            if data.startswith(self.end):
                raise ValidationError(f"an item cannot begin with {self.end!r}, which ends the list", path=path)
            stream_write(stream, data, len(data), path)
        return obj


class MessageLength(Subconstruct):  # type: ignore[misc]
    def __init__(self, subcon: Construct, preceding: int) -> None:
        super().__init__(subcon)
        self.preceding = preceding
        self.flagbuildnone = True

    def _parse(self, stream: BinaryIO, context: Container, path: str) -> int:
        start = stream_tell(stream, path) - self.preceding
        length: int = super()._parse(stream, context, path)
        offset = stream_tell(stream, path)
        end = stream_seek(stream, 0, 2, path)
        stream_seek(stream, offset, 0, path)
        if length != end - start - self.preceding:
            raise CheckError(f"the length is {length}, but {end - start - self.preceding} bytes are there", path=path)
        return length

    def _build(self, obj: object, stream: BinaryIO, context: Container, path: str) -> object:
        context["_length_at"] = stream_tell(stream, path)
        return super()._build(0, stream, context, path)

    def write_length(self, stream: BinaryIO, offset: int, path: str) -> None:
        end = stream_tell(stream, path)
        stream_seek(stream, offset, 0, path)
        self.subcon._build(end - offset, stream, Container(), path)
        stream_seek(stream, end, 0, path)


String = _String(NullTerminated(GreedyBytes))
