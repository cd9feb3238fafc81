"""The rows of a layout and their modifiers -> operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from codegen.lowering.operations import (
    Bytes,
    Choose,
    Conditional,
    Constant,
    Group,
    Measure,
    Operation,
    Operations,
    Repeat,
    Take,
    Text,
)
from codegen.model.layouts import REST, UNTIL_ZERO, Field, NamedType, counted
from codegen.model.model import Protocol, SessionFact
from codegen.model.names import class_name
from codegen.model.notation import Byte1, Byten, PartName, String
from codegen.model.versions import View
from codegen.shared import lowered


def lower(view: View, fields: tuple[Field, ...]) -> Operations:
    """Return the operations of a layout's rows, in order.

    Adjacent rows with the same condition are one operation, as are an optional tag and the rows that depend on it.
    """
    if id(fields) not in view.memory:
        # Keeps the rows alive, so that no other rows get their id.
        view.memory[id(fields)] = fields, _lowered(view, fields)
    operations: Operations = view.memory[id(fields)][1]
    return operations


def _lowered(view: View, fields: tuple[Field, ...]) -> Operations:
    facts = {fact.name for fact in view.protocol.session}
    result: list[Operation] = []
    rest = list(fields)
    while rest:
        row = rest.pop(0)
        if not row.optional and row.when not in facts:
            result.append(_operation(view, row, fields))
            continue
        tells = row.name if row.optional else row.when
        rows = [row]
        while rest and rest[0].when == tells:
            rows.append(rest.pop(0))
        ahead = row.codes if row.optional else ()
        body = tuple(_operation(view, other, fields) for other in rows)
        name = str(tells)
        result.append(
            Conditional(name=name, printed="", place=row.place, fact="" if ahead else name, ahead=ahead, body=body)
        )
    return tuple(result)


def _operation(view: View, row: Field, fields: tuple[Field, ...]) -> Operation:
    operation = _once(view, row, fields)
    if row.repeat is None:
        return operation
    if row.ended_by:
        after = next(other for other in fields if other.name == row.ended_by)
        return Repeat(**_common(view, row), count="", end=_constant(_operation(view, after, fields)), body=operation)
    return Repeat(**_common(view, row), count="" if row.repeat == UNTIL_ZERO else row.repeat, body=operation)


def _constant(operation: Operation) -> bytes:
    """Return the bytes of a constant."""
    if isinstance(operation, Bytes):
        return operation.constant
    assert isinstance(operation, Constant)
    return operation.data


def _common(view: View, row: Field) -> dict[str, Any]:
    """Return the attributes common to all operations."""
    remark = _meaning(view.protocol, row) + row.note
    return {
        "name": row.name,
        "printed": str(row.type),
        "doc": row.doc,
        "remark": remark,
        "column": row.column,
        "since": row.since,
        "until": row.until or 0,
        "place": row.place,
    }


def _once(view: View, row: Field, fields: tuple[Field, ...]) -> Operation:
    common = _common(view, row)
    if isinstance(row.type, String):
        return Text(**common)
    if isinstance(row.type, Byten):
        count = "" if row.size in (REST, None) else str(row.size)
        size = row.type.count or 0
        return Bytes(
            **common,
            count=count,
            size=size,
            nullable=row.may_be_null,
            is_text=row.holds_text,
            constant=row.type.constant,
        )
    if isinstance(row.type, PartName):
        part = view.part(row.type.name)
        if not part.alternatives:
            return Group(**common, part=part)
        cases = {other.fields[0].codes[0]: lower(view, other.fields[1:]) for other in part.alternatives}
        tag = part.alternatives[0].fields[0]
        return Choose(**common, part=part, tag=replace(_take(view, tag), allowed=tuple(cases)), cases=cases)
    integer: dict[str, Any] = {
        "width": row.width,
        "order": view.protocol.byte_order,
        "signed": view.protocol.signed(row),
        "is_character": row.is_character,
    }
    if row.is_constant and not row.optional:
        return Constant(**common, **integer, code=row.codes[0], is_length=row.measures is not None)
    if (other := counted(fields, row)) is not None:
        return Measure(**common, **integer, of=other.name, nullable=other.may_be_null)
    if row.measures is not None:
        return Measure(**common, **integer, of="", preceding=1 if fields[0].name == "tag" else 0)
    return _take(view, row)


def _take(view: View, row: Field) -> Take:
    types = view.protocol.types
    named = types[row.named_type] if row.named_type is not None else None
    python = annotation_of(types, row, repeated=False)
    return Take(
        **_common(view, row),
        width=row.width,
        order=view.protocol.byte_order,
        signed=view.protocol.signed(row),
        is_character=row.is_character,
        allowed=(0, 1) if row.boolean else row.codes or (tuple(named.values) if named else ()),
        refused=(0,) if row.nonzero or row.any_character else (),
        members={ord(value): name for value, name in row.values.items()},
        flags=row.bits,
        python=python,
        wrapper="bool"
        if row.boolean
        else python
        if row.values and not row.any_character
        else named.python
        if named and (named.maker or named.values)
        else "",
        maker="bool" if row.boolean else "chr" if row.any_character else named.constructor if named else "",
        named=row.named_type or "",
        scalar="bool" if row.boolean else named.python if named is not None and named.python != "int" else "",
    )


def _meaning(protocol: Protocol, row: Field) -> str:
    """Return the meaning of a row's modifiers for the attribute, in words."""
    text = "Never zero. " if row.nonzero else ""
    fact = next((fact for fact in protocol.session if fact.name == row.when), None)
    if fact is not None:
        return f"{text}Present if {lowered(fact.doc).rstrip('.')}. "
    return text if row.when is None else f"{text}Present with `{row.when}`. "


def whether(fact: SessionFact) -> str:
    """Return the meaning of a session fact as a clause of a sentence."""
    return f"whether {lowered(fact.doc).rstrip('.')}"


def looked_up(fields: tuple[Field, ...]) -> dict[str, str]:
    """Return the names of describing messages by the rows that refer to them."""
    return {row.name: row.looks_up for row in fields if row.looks_up is not None}


def annotation_of(types: Mapping[str, NamedType], row: Field, *, repeated: bool = True) -> str:
    """Return the type of a row's attribute, without None."""
    if row.values and not row.any_character:
        return enumeration_name(row.name)
    if row.boolean:
        return "bool"
    if isinstance(row.type, String):
        return "str"
    if isinstance(row.type, Byten):
        return "bytes"
    if row.any_character:
        return "str"
    if isinstance(row.type, Byte1) and row.type.constants:
        return f"Literal[{', '.join(repr(character) for character in row.type.constants)}]"
    name = row.type.name if isinstance(row.type, PartName) else "int"
    if row.named_type is not None:
        name = types[row.named_type].python
    return f"tuple[{name}, ...]" if repeated and row.repeat is not None else name


def enumeration_name(name: str) -> str:
    """Return the class of a row with named values."""
    return class_name(name.replace("_", " "))
