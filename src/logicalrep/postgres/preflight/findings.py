"""A reader's requirements, and the findings that prevent its start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from logicalrep.postgres.slots.errors import SlotError
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.visible import visible


@dataclass(frozen=True, slots=True)
class Finding:
    code: str
    text: str
    statements: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    """Statements that change the server's configuration, which cannot run in a transaction."""

    def __str__(self) -> str:
        return f"[{self.code}] {visible(self.text)}"


class PreflightError(SlotError):
    """All reasons why a reader cannot start: a line for each finding, which starts with the finding's code."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__(findings, code=findings[0].code)
        self.findings = tuple(findings)

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings))


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    slot: str
    publications: tuple[str, ...]
    mode: Literal["auto", "peek", "walsender"] = "peek"
    create_slot: bool = False
    failover: bool = False
    protocol_version: int | None = None
    messages: bool = False
    origin: str | None = None
    two_phase: bool = False
    streaming: str | None = None
    """The option; None for the protocol version's default."""
    binary: bool = False
    moves_slot: bool = True
    tables: tuple[TableName, ...] = ()
    """The tables to read; empty for all published tables."""
    fills_defaults: bool = False
    """Whether the reader sets a new column's default in earlier rows, which the server does not send."""
    snapshot: bool = False
    makes_publications: bool = False
    """Whether the reader creates the publications, so that they may be missing."""


@dataclass(slots=True)
class Findings:
    errors: list[Finding] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add_error(self, code: str, text: str, *statements: str, settings: tuple[str, ...] = ()) -> None:
        self.errors.append(Finding(code, text, statements, settings))
