"""What a reader is going to do, and what was found that keeps it from starting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from logicalrep.postgres.slots import SlotError
from logicalrep.transactions.table_names import TableName


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that keeps a reader from starting."""

    code: str
    text: str
    """One sentence: what is missing, and what to do."""

    def __str__(self) -> str:
        return f"[{self.code}] {self.text}"


class PreflightError(SlotError):
    """What keeps a reader from starting, all of it: a line for each finding, which begins with its own code."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__(findings, code=findings[0].code)
        self.findings = tuple(findings)

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings))


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a reader is going to do."""

    slot: str
    publications: tuple[str, ...]
    mode: Literal["peek", "walsender"] = "peek"
    create_slot: bool = False
    """Whether the slot may be absent, as it is made then."""
    failover: bool = False
    protocol_version: int | None = None
    messages: bool = False
    origin: str | None = None
    two_phase: bool = False
    streaming: str | None = None
    """What is asked for; None for what the protocol has."""
    binary: bool = False
    moves_slot: bool = True
    """Whether the slot follows what was read."""
    tables: tuple[TableName, ...] = ()
    """The tables that are read; none for all."""
    snapshot: bool = False
    """Whether the slot is made with a snapshot, from which the tables themselves are read."""


@dataclass(slots=True)
class Findings:
    """What was found: what keeps the reader from starting, and what may surprise later."""

    errors: list[Finding] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def error(self, code: str, text: str) -> None:
        """Add what keeps the reader from starting."""
        self.errors.append(Finding(code, text))
