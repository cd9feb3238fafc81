"""A layout as the steps of a straight-line codec: integers that stand together are read and written at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate
from struct import calcsize

from codegen.spec.model import REST, Field, Part, attributes
from codegen.spec.notation import Byten, PartName, String
from codegen.spec.versions import View


@dataclass(frozen=True)
class Run:
    """Integers that are always there and stand together."""

    rows: tuple[Field, ...]
    format: str
    """Their letters in Python's `struct` module."""
    kind: str = "run"

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(row.width for row in self.rows)

    @property
    def placed(self) -> list[tuple[int, Field]]:
        """The integers, each after the number of bytes before it."""
        return list(zip(accumulate((row.width for row in self.rows), initial=0), self.rows, strict=False))


@dataclass(frozen=True)
class Conditional:
    """Fields that stand together and are there when a session fact holds."""

    fact: str
    rows: tuple[Field, ...]
    attributes: tuple[Field, ...]
    """All fields of the layout that are there then and are attributes."""
    steps: tuple[Step, ...]
    kind: str = "conditional"


@dataclass(frozen=True)
class Tagged:
    """An optional tag, and the fields that are there when it is."""

    row: Field
    rows: tuple[Field, ...]
    attributes: tuple[Field, ...]
    """The fields that are attributes."""
    steps: tuple[Step, ...]
    kind: str = "tagged"


@dataclass(frozen=True)
class Single:
    """One field that is no integer: text, bytes, a part, or something repeated; `kind` says which."""

    row: Field
    kind: str
    part: Part | None = None
    format: str = ""
    """The letter of a repeated integer."""


@dataclass(frozen=True)
class Cells:
    """A row's values: alternatives of a part, repeated, each a tag and, for some, a length and as many bytes."""

    row: Field
    part: Part
    tag: str
    """The name of the tags."""
    value: str
    """The name of the values; empty if there are none."""
    valued: str
    """The tags of those that hold a value."""
    bare: str
    """The tags of those that are nothing but a tag."""
    format: str
    """The letter of the value's length."""
    kind: str = "cells"

    @property
    def header(self) -> int:
        """The bytes before a value: the tag and the length."""
        return calcsize(f">B{self.format}")


Step = Run | Conditional | Tagged | Single | Cells


def renamed(fields: tuple[Field, ...], rename: Callable[[str], str]) -> tuple[Field, ...]:
    """The same rows by other names, wherever one names another."""
    names = {row.name: rename(row.name) for row in fields}
    return tuple(
        replace(
            row,
            name=names[row.name],
            size=names.get(row.size or "", row.size),
            repeat=names.get(row.repeat or "", row.repeat),
            when=names.get(row.when or "", row.when),
        )
        for row in fields
    )


def steps(view: View, fields: tuple[Field, ...]) -> tuple[Step, ...]:
    """The steps for a layout, its tag included."""
    result: list[Step] = []
    facts = {fact.name for fact in view.protocol.session}
    rest = list(fields)
    while rest:
        row = rest.pop(0)
        if row.optional or row.when in facts:
            tells = row.name if row.optional else row.when
            rows = [] if row.optional else [row]
            while rest and rest[0].when == tells:
                rows.append(rest.pop(0))
            inner = steps(view, tuple(replace(other, when=None) for other in rows))
            told = tuple(other for other in attributes(fields) if other.when == tells)
            tagged = Tagged(row, tuple(rows), told, inner)
            result.append(tagged if row.optional else Conditional(str(tells), tuple(rows), told, inner))
        elif row.width and row.repeat is None:
            run = result.pop() if result and isinstance(result[-1], Run) else Run((), "")
            assert isinstance(run, Run)
            result.append(Run((*run.rows, row), run.format + letter(view, row)))
        else:
            result.append(single(view, row))
    return tuple(result)


def letter(view: View, row: Field) -> str:
    """The letter of an integer in Python's `struct` module."""
    signed = "bhiq"[row.width.bit_length() - 1]
    return signed if view.protocol.signed(row) else signed.upper()


def single(view: View, row: Field) -> Single | Cells:
    """The step of a field that is no integer, or is repeated."""
    if isinstance(row.type, String):
        return Single(row, "string")
    if isinstance(row.type, Byten):
        return Single(row, "rest" if row.size == REST else "bytes")
    if not isinstance(row.type, PartName):
        return Single(row, "integers", format=letter(view, row))
    part = view.part(row.type.name)
    if part.alternatives:
        return _cells(view, row, part)
    return Single(row, "part" if row.repeat is None else "parts", part)


def _cells(view: View, row: Field, part: Part) -> Cells:
    valued = [other for other in part.alternatives if len(other.fields) > 1]
    return Cells(
        row=row,
        part=part,
        tag=part.alternatives[0].fields[0].name,
        value=valued[0].fields[-1].name if valued else "",
        valued="".join(other.tag for other in valued),
        bare="".join(other.tag for other in part.alternatives if other not in valued),
        format=letter(view, valued[0].fields[1]) if valued else "i",
    )
