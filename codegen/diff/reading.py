"""What a decoder makes of one row: everything about it that decides which bytes are legal and what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from codegen.emit.python_source import Source
from codegen.spec.model import Field, Protocol
from codegen.spec.notation import Byte1, Byten, Int, PartName, String


@dataclass(frozen=True)
class Reading:
    """A row as bytes. Two notations of the same bytes have equal readings: Int8 and Byte1, `is` and parentheses."""

    kind: str
    """integer, text, bytes, or the name of a part."""
    width: int
    signed: bool
    accepted: frozenset[int] | None
    """The numbers that are legal; None for all."""
    nonzero: bool
    when: str | None
    optional: bool
    size: str | None
    repeat: str | None


def reading(protocol: Protocol, row: Field) -> Reading:
    """A row of a protocol as bytes."""
    kind, width = _kind(row)
    return Reading(
        kind=kind,
        width=width,
        signed=protocol.signed(row),
        accepted=_accepted(row),
        nonzero=row.nonzero,
        when=row.when,
        optional=row.optional,
        size=row.size,
        repeat=row.repeat,
    )


def same_bytes(old: Protocol, was: Field, new: Protocol, now: Field) -> bool:
    """Whether the same bytes are legal in two rows and mean the same."""
    if moved_names(was.bits, now.bits) or moved_names(was.values, now.values):
        return False
    return reading(old, was) == reading(new, now)


def moved_names(was: Mapping[int, str] | Mapping[str, str], now: Mapping[int, str] | Mapping[str, str]) -> list[str]:
    """The names that stand for another bit or value than they did."""
    keys_before = {name: str(key) for key, name in was.items()}
    keys = {name: str(key) for key, name in now.items()}
    return [name for name, key in keys.items() if keys_before.get(name, key) != key]


def python_type(source: Source, fields: tuple[Field, ...], row: Field) -> str:
    """The annotation of a row's attribute; "" where a class has none for it: constants, sizes and counts."""
    if len(row.constants) == 1 or row.name in {name for other in fields for name in (other.size, other.repeat)}:
        return ""
    return source.annotation_of(row) + (" | None" if row.optional or row.when is not None else "")


def _kind(row: Field) -> tuple[str, int]:
    if isinstance(row.type, Int):
        return "integer", row.type.width
    if isinstance(row.type, Byte1):
        return "integer", 1
    if isinstance(row.type, PartName):
        return row.type.name, 0
    return {String: ("text", 0), Byten: ("bytes", 0)}[type(row.type)]


def _accepted(row: Field) -> frozenset[int] | None:
    if row.boolean:
        return frozenset((0, 1))
    constants = row.constants or tuple(row.values)
    if not constants:
        return None
    return frozenset(ord(constant) if isinstance(constant, str) else constant for constant in constants)
