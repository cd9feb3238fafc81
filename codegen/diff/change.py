"""A finding of a comparison: the change, its place in the YAML, and the affected versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from codegen.diff.rules import Rule, Severity
from codegen.model.places import Place


class Case(NamedTuple):
    """A version, and a session fact that holds; "" for none.

    Facts matter only for `also when`: with two_phase, version 1 has additional messages.
    """

    version: int
    fact: str = ""


Cases = frozenset[Case]


@dataclass(frozen=True)
class Spot:
    """The subject of a finding."""

    place: Place
    """The place on the new side; for something removed, the place of its container."""
    subject: str
    """The subject's name, such as `Update.old_kind`."""
    layout: str = ""
    """The subject's message or part; "" if none."""
    old_place: Place | None = None
    """The place on the old side of something removed."""


@dataclass(frozen=True)
class Change:
    """A finding."""

    rule: Rule
    severity: Severity
    protocol: str
    spot: Spot
    text: str
    """The change, as a predicate of the subject."""
    cases: Cases
    names: tuple[tuple[int, str], ...] = ()
    """The names of versions, if not their numbers."""

    @property
    def versions(self) -> str:
        """The affected versions, such as `v3 v4, v1 v2 where two_phase`."""
        by_fact: dict[str, list[str]] = {}
        for fact, version in sorted((case.fact, case.version) for case in self.cases):
            if not fact or Case(version) not in self.cases:
                by_fact.setdefault(fact, []).append(f"v{dict(self.names).get(version, version)}")
        texts = (" ".join(versions) + (f" where {fact}" if fact else "") for fact, versions in by_fact.items())
        return ", ".join(texts)
