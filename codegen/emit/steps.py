"""Operations as the steps of straight-line code: integers that stand together are read and written at once."""

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
    """Integers that are always there and stand together."""

    integers: tuple[Integer, ...]
    kind: str = "run"

    @property
    def format(self) -> str:
        """Their letters in Python's `struct` module."""
        return "".join(one.letter for one in self.integers)

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(one.width for one in self.integers)

    @property
    def placed(self) -> list[tuple[int, Integer]]:
        """The integers, each after the number of bytes before it."""
        return list(zip(accumulate((one.width for one in self.integers), initial=0), self.integers, strict=False))


@dataclass(frozen=True)
class Branch:
    """Steps that are there when a session fact holds, or when the next byte is one of some values."""

    fact: str
    tag: Take | None
    """The integer with these values; None for a fact."""
    operations: Operations
    """The rows that are there then, without the tag."""
    attributes: Operations
    """All attributes of the layout that are there then, but for the tag."""
    steps: tuple[Step, ...]
    kind: str = "branch"

    @property
    def legal(self) -> tuple[str, ...]:
        """The characters of the tag."""
        return tuple(self.tag.characters) if self.tag is not None else ()


Step = Run | Branch | Operation
"""Text, bytes, a group and what is repeated are steps as they are."""


def steps(operations: Operations) -> tuple[Step, ...]:
    """The steps for the operations of a layout."""
    told: dict[str, Operations] = {}
    for one in operations:
        if isinstance(one, Conditional):
            told[one.fact] = (*told.get(one.fact, ()), *attributes(one.body))
    return _steps(operations, told)


def _steps(operations: Operations, told: dict[str, Operations]) -> tuple[Step, ...]:
    result: list[Step] = []
    for one in operations:
        if isinstance(one, Integer):
            run = result.pop() if result and isinstance(result[-1], Run) else Run(())
            assert isinstance(run, Run)
            result.append(Run((*run.integers, one)))
        elif isinstance(one, Conditional):
            tag = one.body[0] if one.ahead else None
            assert isinstance(tag, Take | None)
            body = one.body[1:] if one.ahead else one.body
            there = attributes(body) if one.ahead else told[one.fact]
            result.append(Branch(one.fact, tag, body, there, _steps(body, told)))
        else:
            result.append(one)
    return tuple(result)


def checks_of(run: Run, *, members: bool = False) -> list[str]:
    """The conditions under which integers that were read are refused.

    Those with named members are checked where `members` asks for it: elsewhere their enumeration refuses what is none.
    """
    checks = []
    for one in run.integers:
        if isinstance(one, Constant):
            checks.append(f"{one.name} != {literal(one, one.code)}")
        elif isinstance(one, Take):
            if one.allowed and (members or not one.members):
                checks.append(_none_of(one))
            checks += [f"not {one.name}" if code == 0 else f"{one.name} == {code}" for code in one.refused]
        elif isinstance(one, Measure) and not one.of:
            checks.append(f"{one.name} != len(data) - {one.preceding}" if one.preceding else f"{one.name} != len(data)")
    return checks


def _none_of(one: Take) -> str:
    if not one.signed and not one.is_character and one.allowed == tuple(range(len(one.allowed))):
        return f"{one.name} > {one.allowed[-1]}"
    return " and ".join(f"{one.name} != {literal(one, code)}" for code in one.allowed)


def guards_of(run: Run) -> list[str]:
    """The conditions under which attributes are refused though they fit their width."""
    guards = []
    for one in run.integers:
        if isinstance(one, Take):
            legal = tuple(one.characters) if one.is_character else one.allowed
            guards += [f"self.{one.name} not in {legal}"] if legal else []
            guards += [f'self.{one.name} == "\\0"'] if one.is_character and one.refused else []
            guards += [
                f"not self.{one.name}" if code == 0 else f"self.{one.name} == {code}"
                for code in one.refused
                if not one.is_character
            ]
    return guards


def literal(one: Integer, code: int) -> str:
    """A value of an integer as the code shows it."""
    return f"0x{code:02X}" if one.is_character else str(code)
