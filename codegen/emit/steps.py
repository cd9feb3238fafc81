"""A layout as the steps of a straight-line codec: integers that stand together are read and written at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from struct import calcsize

from codegen.spec.model import REST, Field, Part
from codegen.spec.notation import Byte1, Byten, Int, PartName, String
from codegen.spec.versions import View

_FORMATS = {1: "b", 2: "h", 4: "i", 8: "q"}


@dataclass(frozen=True)
class Fixed:
    """One integer of a run."""

    row: Field
    format: str
    """Its letter in Python's `struct` module."""
    constant: int | None
    """The only value that it may have."""
    choices: tuple[int, ...]
    """The characters that it may be; () for a number."""

    @property
    def size(self) -> int:
        """Bytes."""
        return calcsize(f">{self.format}")


@dataclass(frozen=True)
class Run:
    """Integers that are always there and stand together."""

    fields: tuple[Fixed, ...]
    kind: str = "run"

    @property
    def format(self) -> str:
        """Their letters in Python's `struct` module."""
        return "".join(item.format for item in self.fields)

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(item.size for item in self.fields)


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
    choices: tuple[int, ...]
    rows: tuple[Field, ...]
    attributes: tuple[Field, ...]
    """Those of the fields that are attributes."""
    steps: tuple[Step, ...]
    kind: str = "tagged"


@dataclass(frozen=True)
class Single:
    """One field that is no integer: text, bytes, a part, or something repeated; `kind` says which."""

    row: Field
    kind: str
    part: Part | None = None
    fixed: Fixed | None = None
    size: int = 0
    """The width of a repeated integer, in bytes."""


Step = Run | Conditional | Tagged | Single


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
    run: list[Fixed] = []
    facts = {fact.name for fact in view.protocol.session}
    rest = list(fields)

    def take_depending_on(name: str | None) -> tuple[Field, ...]:
        taken: list[Field] = []
        while rest and rest[0].when == name:
            taken.append(rest.pop(0))
        return tuple(taken)

    def end_run() -> None:
        if run:
            result.append(Run(tuple(run)))
            run.clear()

    while rest:
        row = rest.pop(0)
        if row.when in facts:
            end_run()
            rows = (row, *take_depending_on(row.when))
            attributes = tuple(other for other in fields if other.when == row.when and len(other.constants) != 1)
            inner = steps(view, tuple(replace(row, when=None) for row in rows))
            result.append(Conditional(row.when or "", rows, attributes, inner))
        elif row.optional:
            end_run()
            rows = take_depending_on(row.name)
            inner = steps(view, tuple(replace(row, when=None) for row in rows))
            attributes = tuple(other for other in rows if len(other.constants) != 1)
            result.append(Tagged(row, fixed(view, row).choices, rows, attributes, inner))
        elif isinstance(row.type, Int | Byte1) and row.repeat is None:
            run.append(fixed(view, row))
        else:
            end_run()
            result.append(_single(view, row))
    end_run()
    return tuple(result)


def fixed(view: View, row: Field) -> Fixed:
    """How one integer is read and written."""
    if isinstance(row.type, Byte1):
        choices = tuple(ord(character) for character in row.type.constants)
        return Fixed(row, "B", choices[0] if len(choices) == 1 else None, choices if len(choices) > 1 else ())
    assert isinstance(row.type, Int)
    letter = _FORMATS[row.type.width]
    letter = letter if view.protocol.signed(row) else letter.upper()
    return Fixed(row, letter, row.type.constant, ())


def _single(view: View, row: Field) -> Single:
    if isinstance(row.type, String):
        return Single(row, "string")
    if isinstance(row.type, Byten):
        return Single(row, "rest" if row.size == REST else "bytes")
    if isinstance(row.type, PartName):
        part = view.part(row.type.name)
        if row.repeat is None:
            return Single(row, "part", part)
        return Single(row, "cells" if part.alternatives else "parts", part)
    assert isinstance(row.type, Int)
    return Single(row, "integers", fixed=fixed(view, row), size=row.type.width)
