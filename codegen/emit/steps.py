"""Operations as steps of generated code: adjacent integers are read and written at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from codegen.lowering.operations import (
    Conditional,
    Constant,
    Integer,
    Measure,
    Operation,
    Operations,
    Take,
    attributes,
)


@dataclass(frozen=True)
class Run:
    """Adjacent integers that are always present."""

    integers: tuple[Integer, ...]
    kind: str = "run"

    @property
    def format(self) -> str:
        """The integers' letters in Python's `struct` module."""
        return "".join(integer.letter for integer in self.integers)

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(integer.width for integer in self.integers)

    @property
    def placed(self) -> list[tuple[int, Integer]]:
        """The integers with their offsets in bytes."""
        return list(
            zip(accumulate((integer.width for integer in self.integers), initial=0), self.integers, strict=False)
        )


@dataclass(frozen=True)
class Branch:
    """Steps that depend on a session fact or on the next byte."""

    fact: str
    tag: Take | None
    """The integer for the next byte; None for a fact."""
    operations: Operations
    """The dependent rows, without the tag."""
    attributes: Operations
    """All dependent attributes of the layout, without the tag."""
    steps: tuple[Step, ...]
    kind: str = "branch"

    @property
    def legal(self) -> tuple[str, ...]:
        return tuple(self.tag.characters) if self.tag is not None else ()


Step = Run | Branch | Operation
"""Text, bytes, groups and repetitions are steps without conversion."""


def steps(operations: Operations) -> tuple[Step, ...]:
    """Return the steps of a layout's operations."""
    dependent_by_fact: dict[str, Operations] = {}
    for operation in operations:
        if isinstance(operation, Conditional):
            dependent_by_fact[operation.fact] = (
                *dependent_by_fact.get(operation.fact, ()),
                *attributes(operation.body),
            )
    return _steps(operations, dependent_by_fact)


def _steps(operations: Operations, dependent_by_fact: dict[str, Operations]) -> tuple[Step, ...]:
    result: list[Step] = []
    for operation in operations:
        if isinstance(operation, Integer):
            run = result.pop() if result and isinstance(result[-1], Run) else Run(())
            assert isinstance(run, Run)
            result.append(Run((*run.integers, operation)))
        elif isinstance(operation, Conditional):
            tag = operation.body[0] if operation.ahead else None
            assert isinstance(tag, Take | None)
            body = operation.body[1:] if operation.ahead else operation.body
            dependent = attributes(body) if operation.ahead else dependent_by_fact[operation.fact]
            result.append(Branch(operation.fact, tag, body, dependent, _steps(body, dependent_by_fact)))
        else:
            result.append(operation)
    return tuple(result)


def checks_of(run: Run, *, members: bool = False) -> list[str]:
    """Return the conditions under which a parser refuses a run of integers.

    Includes integers with named members only with `members`; otherwise their enumeration refuses illegal values.
    """
    checks = []
    for integer in run.integers:
        if isinstance(integer, Constant):
            checks.append(f"{integer.name} != {literal(integer, integer.code)}")
        elif isinstance(integer, Take):
            if integer.allowed and (members or not integer.members):
                checks.append(_none_of(integer))
            checks += [f"not {integer.name}" if code == 0 else f"{integer.name} == {code}" for code in integer.refused]
        elif isinstance(integer, Measure) and not integer.of:
            checks.append(
                f"{integer.name} != len(data) - {integer.preceding}"
                if integer.preceding
                else f"{integer.name} != len(data)"
            )
    return checks


def python_checks_of(run: Run) -> list[str]:
    """Return the checks of a Python parser. It has computed the message's end, `stop`, from a length."""
    checks = checks_of(Run(tuple(integer for integer in run.integers if not isinstance(integer, Measure))))
    is_measured = any(isinstance(integer, Measure) and not integer.of for integer in run.integers)
    return [*(["not offset <= stop <= len(data)"] if is_measured else []), *checks]


def _none_of(integer: Take) -> str:
    if not integer.signed and not integer.is_character and integer.allowed == tuple(range(len(integer.allowed))):
        return f"{integer.name} > {integer.allowed[-1]}"
    return " and ".join(f"{integer.name} != {literal(integer, code)}" for code in integer.allowed)


def guards_of(run: Run) -> list[str]:
    """Return the conditions under which an encoder refuses attributes that fit their width."""
    guards = []
    for integer in run.integers:
        if isinstance(integer, Take):
            legal = tuple(integer.characters) if integer.is_character else integer.allowed
            guards += [f"self.{integer.name} not in {legal}"] if legal else []
            if integer.is_character and integer.refused:
                guards += [f"not isinstance(self.{integer.name}, str)", f'self.{integer.name} == "\\0"']
            guards += [
                f"not self.{integer.name}" if code == 0 else f"self.{integer.name} == {code}"
                for code in integer.refused
                if not integer.is_character
            ]
    return guards


def literal(integer: Integer, code: int) -> str:
    """Return an integer's value as a literal."""
    return f"0x{code:02X}" if integer.is_character else str(code)
