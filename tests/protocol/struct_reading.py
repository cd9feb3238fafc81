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
    IfThenElse,
    Pass,
    Rebuild,
    Renamed,
    Select,
    Struct,
    Terminated,
    this,
)

from logicalrep_protocol.layouts import LOGICALREP

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


def describe(owner: type, module: ModuleType) -> Description:
    """Each row of a class's Struct: its name, what it holds, and remarks as the documented tables have them.

    A message must end with Terminated, a part must not.
    """
    struct = owner.struct
    assert type(struct) is Struct
    rows = list(struct.subcons)
    if hasattr(owner, "tag"):
        assert rows.pop() is Terminated
    description = []
    for row in rows:
        assert type(row) is Renamed
        remarks: set[str] = set()
        holds = _holds(row.subcon, module, remarks)
        description.append((row.name, holds, frozenset(remarks)))
    return description


def _holds(construct: Construct, module: ModuleType, remarks: set[str]) -> str:
    kind = type(construct)
    if kind is IfThenElse:
        assert construct.elsesubcon is Pass
        remarks.add(f"if {_condition(construct.condfunc)}")
        return _holds(construct.thensubcon, module, remarks)
    if kind is Select:
        subject, nothing = construct.subcons
        assert nothing is Pass
        remarks.add("optional")
        return _holds(subject, module, remarks)
    if kind is Array:
        assert not construct.discard
        remarks.add(f"times {_path(construct.count)}")
        return _holds(construct.subcon, module, remarks)
    if kind is Rebuild:
        remarks.add(f"length of {_measured(construct.func)}")
        return _holds(construct.subcon, module, remarks)
    if kind is ExprValidator:
        remarks.add(_validator(construct))
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
    if kind is Struct:
        return _named(construct, module)
    if kind.__name__ == "_String":
        return "text"
    if kind.__name__ == "Char":
        return " | ".join(f"'{character}'" for character in construct.characters)
    assert kind.__name__ == "Alternatives", kind
    for tag, struct in construct.structs.items():
        first = struct.subcons[0]
        assert first.name == construct.tag
        assert first.subcon.value == tag
    return " | ".join(_named(struct, module) for struct in construct.structs.values())


def _named(struct: Construct, module: ModuleType) -> str:
    """The class that a Struct belongs to."""
    (name,) = (name for name in module.__all__ if getattr(getattr(module, name), "struct", None) is struct)
    return str(name)


def _condition(condition: Any) -> str:
    """The earlier field that a condition looks at, or the session fact."""
    if type(condition) is type(this):
        return _path(condition)
    facts = [fact for fact in LOGICALREP.session if condition(_Context({fact: True}))]
    assert len(facts) == 1
    assert not condition(_Context({}))
    return facts[0]


class _Context:
    """All that a condition sees of a message: what `parse` was given."""

    def __init__(self, params: dict[str, bool]) -> None:
        self._params = params


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


def _validator(construct: Construct) -> str:
    """What integers a validator takes."""
    taken = [value for value in range(256) if construct._validate(value, None, "")]
    return {(0, 1): "0 or 1", tuple(range(1, 256)): "not zero"}[tuple(taken)]
