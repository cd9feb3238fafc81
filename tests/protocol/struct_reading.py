"""What a construct Struct really contains, row by row, read from its objects."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum
from itertools import zip_longest
from types import ModuleType
from typing import Any, get_args, get_type_hints

from construct import (
    Array,
    Bytes,
    Const,
    Construct,
    ExprValidator,
    FormatField,
    GreedyBytes,
    Rebuild,
    Renamed,
)

from logicalrep_runtime import any_message, constructs
from logicalrep_runtime.scalars import Lsn, Oid, TimestampTz, TransactionId

_FORMATS = {
    ">B": "uint8",
    ">b": "int8",
    ">H": "uint16",
    ">h": "int16",
    ">L": "uint32",
    ">l": "int32",
    ">Q": "uint64",
    ">q": "int64",
}

Description = list[tuple[str, str, frozenset[str]]]


def describe(owner: Any, module: ModuleType) -> Description:
    """Each row of a class's Struct: its name, what it holds, and remarks as the documented tables have them."""
    assert type(owner.struct) is constructs.DataclassStruct
    description = []
    for row, following in zip_longest(owner.struct.subcons, owner.struct.subcons[1:]):
        assert type(row) is Renamed
        remarks: set[str] = set()
        holds = _holds(row.subcon, module, remarks)
        if "length of message after a tag" in remarks and owner.struct.subcons[0].name == "tag":
            remarks ^= {"length of message after a tag", "length of message"}
        if type(row.subcon) is constructs.Until:
            assert following.subcon.build(None) == row.subcon.end
            remarks.add(f"until {following.name}")
        if holds == "any character":
            remarks |= {"or any other", *_values(getattr(module, row.name.capitalize(), ()))}
        remarks |= _annotated(owner, row.name)
        description.append((row.name, holds, frozenset(remarks)))
    return description


def _annotated(owner: Any, name: str) -> set[str]:
    """Return remarks on the class of an attribute: its name, or the values of an enumeration with their names."""
    hint = get_type_hints(owner).get(name)
    classes = {hint, *get_args(hint)}
    enumerations = [item for item in classes if isinstance(item, type) and issubclass(item, Enum)]
    return {value for enumeration in enumerations for value in _values(enumeration)} | {
        f"is {item.__name__}" for item in classes & {Lsn, Oid, TimestampTz, TransactionId}
    }


def _values(enumeration: Iterable[Enum]) -> set[str]:
    return {f"{member.value} {member.name.lower()}" for member in enumeration}


def _holds(construct: Construct, module: ModuleType, remarks: set[str]) -> str:
    kind = type(construct)
    if kind in (constructs.IfPresent, constructs.IfSession):
        remarks.add(f"if {construct.fact if kind is constructs.IfSession else _path(construct.condition)}")
        return _holds(construct.subcon, module, remarks)
    if construct is constructs.Boolean:
        remarks.add("0 or 1")
        return "uint8"
    if kind is constructs.Typed:
        if issubclass(construct.type, IntEnum):
            assert type(construct.subcon) is ExprValidator
            assert _legal(construct.subcon) == set(construct.type)
            return _holds(construct.subcon.subcon, module, remarks)
        assert construct.type in (Lsn, TimestampTz)
        return _holds(construct.subcon, module, remarks)
    if kind is constructs.Flags:
        assert construct.flags
        return _holds(construct.subcon, module, remarks)
    if kind is Array:
        assert not construct.discard
        remarks.add(f"times {_path(construct.count)}")
        return _holds(construct.subcon, module, remarks)
    if kind is constructs.Until:
        return _holds(construct.subcon, module, remarks)
    if kind is constructs.UntilZero:
        remarks.add("until zero")
        return _holds(construct.subcon, module, remarks)
    if kind is constructs.MessageLength:
        assert construct.preceding in (0, 1)
        remarks.add("length of message after a tag" if construct.preceding else "length of message")
        return _holds(construct.subcon, module, remarks)
    if kind is Rebuild:
        remarks.add(f"length of {_measured(construct.func)}")
        return _holds(construct.subcon, module, remarks)
    if kind is ExprValidator:
        assert _legal(construct) == set(range(1, 256))
        remarks.add("not zero")
        return _holds(construct.subcon, module, remarks)
    if kind is Const:
        if isinstance(construct.value, bytes):
            assert type(construct.subcon) is Bytes
            assert construct.subcon.length == len(construct.value)
            is_character = len(construct.value) == 1
            return f"'{construct.value.decode('ascii')}'" if is_character else repr(construct.value)
        return f"{construct.value} as {_holds(construct.subcon, module, remarks)}"
    if kind is FormatField:
        return _FORMATS[construct.fmtstr]
    if kind in (Bytes, constructs.FixedBytes):
        is_fixed = isinstance(construct.length, int)
        remarks.add(f"size {construct.length if is_fixed else _path(construct.length)}")
        return "bytes"
    if kind is constructs.NullableBytes:
        remarks |= {f"size {_path(construct.length)}", "or null"}
        return "bytes"
    if construct is GreedyBytes:
        remarks.add("size rest")
        return "bytes"
    if kind is constructs.DataclassStruct:
        return _named(construct, module)
    if construct is constructs.String:
        return "text"
    if kind in (constructs.Char, constructs.OptionalChar):
        remarks |= {"optional"} if kind is constructs.OptionalChar else set()
        return " | ".join(f"'{character}'" for character in sorted(construct.characters))
    if construct is constructs.AnyChar:
        return "any character"
    assert kind is any_message.Tagged, kind
    for tag, struct in construct.structs.items():
        assert struct.subcons[0].subcon.value == tag
    return " | ".join(_named(struct, module) for struct in construct.structs.values())


def _named(struct: Construct, module: ModuleType) -> str:
    """The class that a Struct belongs to."""
    (name,) = (name for name in module.__all__ if getattr(getattr(module, name), "struct", None) is struct)
    return str(name)


def _path(expression: Any) -> str:
    """`this.name` -> name."""
    text = repr(expression)
    assert text.startswith("this['")
    assert text.endswith("']")
    return text.removeprefix("this['").removesuffix("']")


def _legal(construct: Construct) -> set[int]:
    """The values below 256 that a validator accepts."""
    return {value for value in range(256) if construct._validate(value, None, "")}


def _measured(expression: Any) -> str:
    """`len_(this.name)` and `length_or_null(this.name)` -> name."""
    if getattr(expression, "__qualname__", "").startswith("length_or_null."):
        return _path(expression.__closure__[0].cell_contents)
    text = repr(expression)
    assert text.startswith("len_(this['")
    assert text.endswith("'])")
    return text.removeprefix("len_(this['").removesuffix("'])")
