"""One finding of a comparison: what changed, where it stands in the YAML, and which versions it concerns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from codegen.diff.rules import Rule, Severity
from codegen.spec.places import Place


class Case(NamedTuple):
    """A version, and the session fact that holds in it; "" where none need hold.

    Facts matter here only as `also when`: with two_phase, version 1 has messages that it has not otherwise.
    """

    version: int
    fact: str = ""


Cases = frozenset[Case]


@dataclass(frozen=True)
class Spot:
    """The subject of a finding."""

    place: Place
    """On the new side; for what is gone, the place of what it was part of."""
    subject: str
    """`Update.old_kind` for example."""
    layout: str = ""
    """The message or part that it belongs to; "" if none."""
    old_place: Place | None = None
    """The place on the old side of what is gone."""


@dataclass(frozen=True)
class Change:
    """One finding."""

    rule: Rule
    severity: Severity
    protocol: str
    spot: Spot
    text: str
    """The event, to be read after the subject."""
    cases: Cases
    names: tuple[tuple[int, str], ...] = ()
    """The names that people have for versions, where these are not their numbers."""

    @property
    def versions(self) -> str:
        """The versions concerned, `v3 v4, v1 v2 where two_phase` for example."""
        by_fact: dict[str, list[str]] = {}
        for fact, version in sorted((case.fact, case.version) for case in self.cases):
            if not fact or Case(version) not in self.cases:
                by_fact.setdefault(fact, []).append(f"v{dict(self.names).get(version, version)}")
        texts = (" ".join(versions) + (f" where {fact}" if fact else "") for fact, versions in by_fact.items())
        return ", ".join(texts)
