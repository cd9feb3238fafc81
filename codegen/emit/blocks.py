"""What the templates of a version's module are given: its classes and their parts, in Python's terms."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.emit.steps import Step
from codegen.spec.model import Field, Part
from codegen.spec.names import snake_case


@dataclass(frozen=True)
class Attribute:
    """An attribute of a generated class."""

    name: str
    annotation: str
    value: str
    """The expression that makes it from the local variable of a parser."""
    docstring: str
    optional: bool = False
    bits: tuple[tuple[int, str], ...] = ()

    @property
    def parameter(self) -> str:
        """The constructor's parameter, and those of its bits."""
        if not self.bits:
            return f"{self.name}: {self.annotation}{' = None' if self.optional else ''}"
        bits = "".join(f", {name}: bool | None = None" for _, name in self.bits)
        return f"{self.name}: int | None = None{bits}"

    @property
    def given(self) -> str:
        """The expression that makes it from the constructor's parameters."""
        if not self.bits:
            return self.name
        bits = ", ".join(f'"{name}": ({bit}, {name})' for bit, name in self.bits)
        made = f'flags_of("{self.name}", {self.name}, {{{bits}}})'
        absent = " and ".join(f"{name} is None" for name in (self.name, *dict(self.bits).values()))
        return f"None if {absent} else {made}" if self.optional else made


@dataclass(frozen=True)
class Enumeration:
    """The characters that a field may be, by name."""

    name: str
    docstring: str
    members: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Cells:
    """What the loop over a row's values needs to know of their alternatives."""

    part: Part
    tag: str
    """The name of the tags."""
    value: str
    """The name of the values; empty if there are none."""
    valued: tuple[int, ...]
    """The tags of those that hold a value."""
    bare: tuple[int, ...]
    """The tags of those that are nothing but a tag."""
    format: str
    """The letter of the value's length, read as unsigned."""
    header: int
    """The bytes before the value: the tag and the length."""

    @property
    def signed_format(self) -> str:
        """The letter of the value's length, written as what it is."""
        return self.format.lower()


@dataclass(frozen=True)
class AlternativeBlock:
    """The class of an alternative."""

    name: str
    docstring: str
    is_own: bool
    """Whether it is as it is since this version, and its class stands here."""
    tag_name: str
    tag: str
    code: str
    attributes: tuple[Attribute, ...]
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Block:
    """The class of a message or part, with its Struct and its straight-line codecs."""

    name: str
    docstring: str
    tag: str
    sender: str
    attributes: tuple[Attribute, ...]
    enumerations: tuple[Enumeration, ...]
    fields: tuple[Field, ...]
    rows: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]
    """To parse, without the tag, which is known then."""
    build_steps: tuple[Step, ...]
    cells: Cells | None
    cells_name: str
    """The name of the row that they are."""
    cell_classes: tuple[AlternativeBlock, ...]
    alternatives: tuple[AlternativeBlock, ...]
    constant: str
    """The module's name for the construct of its alternatives."""

    @property
    def variable(self) -> str:
        """The class's name as part of a variable's."""
        return snake_case(self.name)
