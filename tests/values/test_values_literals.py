"""Every type's literals: both formats give the value, the value gives the text, and arrays of every type work."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest
from psycopg.postgres import types as psycopg_types

from logicalrep.values import BoundedArray, ColumnType, column_type
from logicalrep.values.table import EXTENSIONS, TABLE
from tests.values.value_literals import LITERALS, Literal

IDS = [f"{literal.name} {literal.text[:20]}" for literal in LITERALS]


def same(value: Any, other: Any) -> bool:
    """Return whether values are equal and of the same types; NaN equals NaN, and -0.0 does not equal 0.0."""
    return type(value) is type(other) and (value == other or _is_nan(value)) and repr(value) == repr(other)


def _is_nan(value: Any) -> bool:
    return value != value or (isinstance(value, list) and any(math.isnan(member) for member in value))


def type_of(literal: Literal) -> ColumnType:
    return column_type(literal.oid, literal.modifier, lc_monetary="C")


@pytest.mark.parametrize("literal", LITERALS, ids=IDS)
def test_text_and_binary_give_the_value(literal: Literal) -> None:
    column = type_of(literal)
    assert same(column.load("t", literal.text.encode()), literal.value)
    assert column.load("b", bytes.fromhex(literal.binary)) == literal.value or _is_nan(literal.value)
    assert repr(column.load("b", bytes.fromhex(literal.binary))) == repr(literal.value)


@pytest.mark.parametrize("literal", LITERALS, ids=IDS)
def test_the_value_gives_the_text(literal: Literal) -> None:
    assert type_of(literal).to_text(literal.value) == literal.text


@pytest.mark.parametrize("literal", LITERALS, ids=IDS)
def test_the_name_is_postgresqls(literal: Literal) -> None:
    assert type_of(literal).name == literal.name


# --- arrays of every type --------------------------------------------------------------------------------------

SCALARS = [literal for literal in LITERALS if not literal.name.endswith("[]")]
ROWS = {row.oid: row for row in TABLE}


def array_binary(element_oid: int, members: list[bytes | None], bounds: list[tuple[int, int]]) -> bytes:
    """Return the binary format of an array; `bounds` has each dimension's length and lower bound."""
    header = struct.pack("!iiI", len(bounds), int(None in members), element_oid)
    dimensions = b"".join(struct.pack("!ii", length, lower) for length, lower in bounds)
    return (
        header
        + dimensions
        + b"".join(
            struct.pack("!i", -1) if member is None else struct.pack("!i", len(member)) + member for member in members
        )
    )


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@pytest.mark.parametrize("literal", SCALARS, ids=[f"{literal.name} {literal.text[:20]}" for literal in SCALARS])
def test_arrays_of_every_type(literal: Literal) -> None:
    row = ROWS[literal.oid]
    column = column_type(row.array_oid, literal.modifier, lc_monetary="C")
    assert column.name == f"{literal.name}[]"
    text, binary, delimiter = quoted(literal.text), bytes.fromhex(literal.binary), row.delimiter
    cases: list[tuple[str, list[bytes | None], list[tuple[int, int]], Any]] = [
        ("{}", [], [], []),
        (f"{{{text}{delimiter}NULL}}", [binary, None], [(2, 1)], [literal.value, None]),
        (
            f"{{{{NULL{delimiter}{text}}}{delimiter}{{{text}{delimiter}NULL}}}}",
            [None, binary, binary, None],
            [(2, 1), (2, 1)],
            [[None, literal.value], [literal.value, None]],
        ),
        (f"[-1:0]={{{text}{delimiter}{text}}}", [binary] * 2, [(2, -1)], BoundedArray([literal.value] * 2, (-1,))),
    ]
    for array_text, members, bounds, value in cases:
        from_text = column.load("t", array_text.encode())
        from_binary = column.load("b", array_binary(literal.oid, members, bounds))
        assert repr(from_text) == repr(from_binary) == repr(value)
        assert column.load("t", column.to_text(value).encode()) == from_text or _is_nan(literal.value)


# --- against psycopg's list of types ---------------------------------------------------------------------------


def test_oids_are_those_of_psycopgs_list() -> None:
    ours = {row.typname: row for row in TABLE}
    psycopg_by_name = {info.name.strip('"'): info for info in psycopg_types if info.oid < 10000}
    for name in ours.keys() & psycopg_by_name.keys():
        assert ours[name].oid == psycopg_by_name[name].oid, name
        assert ours[name].array_oid == psycopg_by_name[name].array_oid, name
        assert ours[name].delimiter == psycopg_by_name[name].delimiter, name
    # No column has these types.
    assert psycopg_by_name.keys() - ours.keys() <= {"record", "gtsvector"}


def test_oids_and_names_are_unique() -> None:
    oids = [oid for row in TABLE for oid in (row.oid, row.array_oid) if oid]
    assert len(oids) == len(set(oids))
    names = [row.typname for row in (*TABLE, *EXTENSIONS)]
    assert len(names) == len(set(names))
