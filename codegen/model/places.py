"""Places in files, and mistakes at places."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, order=True)
class Place:
    """A place in a file. Lines and columns count from 1; column 0 is unknown."""

    path: Path
    line: int
    column: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}" if self.column else f"{self.path}:{self.line}"


@dataclass(frozen=True, order=True)
class Finding:
    """A mistake in the YAML."""

    place: Place
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


class SpecError(Exception):
    """A faulty spec; `findings` has all mistakes in the order of their places."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = sorted(set(findings))
        super().__init__("\n".join(map(str, self.findings)))
