"""What a construct Struct really contains, row by row, read from its objects."""

from __future__ import annotations

from types import ModuleType
from typing import Any

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
from logicalrep_runtime.scalars import Lsn, TimestampTz

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
    for row in owner.struct.subcons:
        assert type(row) is Renamed
        remarks: set[str] = set()
        holds = _holds(row.subcon, module, remarks)
        description.append((row.name, holds, frozenset(remarks)))
    return description


def _holds(construct: Construct, module: ModuleType, remarks: set[str]) -> str:
    kind = type(construct)
    if kind in (constructs.IfPresent, constructs.IfSession):
        remarks.add(f"if {construct.fact if kind is constructs.IfSession else _path(construct.condition)}")
        return _holds(construct.subcon, module, remarks)
    if construct is constructs.Boolean:
        remarks.add("0 or 1")
        return "uint8"
    if kind is constructs.Typed:
        assert construct.type in (Lsn, TimestampTz)
        return _holds(construct.subcon, module, remarks)
    if kind is constructs.Flags:
        assert construct.flags
        return _holds(construct.subcon, module, remarks)
    if kind is Array:
        assert not construct.discard
        remarks.add(f"times {_path(construct.count)}")
        return _holds(construct.subcon, module, remarks)
    if kind is Rebuild:
        remarks.add(f"length of {_measured(construct.func)}")
        return _holds(construct.subcon, module, remarks)
    if kind is ExprValidator:
        assert [value for value in range(256) if not construct._validate(value, None, "")] == [0]
        remarks.add("not zero")
        return _holds(construct.subcon, module, remarks)
    if kind is Const:
        if isinstance(construct.value, bytes):
            assert type(construct.subcon) is Bytes
            assert construct.subcon.length == len(construct.value) == 1
            return f"'{construct.value.decode('ascii')}'"
        return f"{construct.value} as {_holds(construct.subcon, module, remarks)}"
    if kind is FormatField:
        return _FORMATS[construct.fmtstr]
    if kind is Bytes:
        remarks.add(f"size {_path(construct.length)}")
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
        return " | ".join(f"'{character}'" for character in construct.characters)
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


def _measured(expression: Any) -> str:
    """`len_(this.name)` -> name."""
    text = repr(expression)
    assert text.startswith("len_(this['")
    assert text.endswith("'])")
    return text.removeprefix("len_(this['").removesuffix("'])")
