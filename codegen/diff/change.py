"""One finding of a comparison: what changed, where it stands in the YAML, and which versions it concerns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from codegen.diff.rules import RULES, Rule, Severity
from codegen.diff.wording import listed, says
from codegen.spec.model import Place


class Case(NamedTuple):
    """A version, and the session fact that holds in it; "" where none need hold.

    Facts matter here only as `also when`: with two_phase, version 1 has messages that it has not otherwise.
    """

    version: int
    fact: str = ""


Cases = frozenset[Case]

SideName = Literal["old", "new"]


@dataclass(frozen=True)
class Spot:
    """What a finding is about."""

    place: Place
    subject: str
    """`Update.old_kind` for example."""
    layout: str = ""
    """The message or part that it belongs to; "" if none."""
    side: SideName = "new"
    """The side that all this is of: the new one, or the old one where the thing is gone."""


@dataclass(frozen=True)
class Change:
    """One finding."""

    rule: Rule
    protocol: str
    spot: Spot
    text: str
    """What happened, to be read after the subject."""
    cases: Cases
    before: str
    after: str

    @property
    def severity(self) -> Severity:
        """That of its rule."""
        return self.rule.severity

    @property
    def versions(self) -> str:
        """The versions concerned, `v3 v4, v1 v2 where two_phase` for example."""
        return ", ".join(
            " ".join(f"v{version}" for version in versions) + (f" where {fact}" if fact else "")
            for fact, versions in versions_by_fact(self.cases).items()
        )


class Changes(list[Change]):
    """The findings of one protocol so far."""

    def __init__(self, protocol: str = "") -> None:
        super().__init__()
        self.protocol = protocol

    def add(
        self, rule: str, spot: Spot, text: str, before: str = "", after: str = "", *, cases: Iterable[Case] = ()
    ) -> None:
        """Note one more."""
        self.append(Change(RULES[rule], self.protocol, spot, text, frozenset(cases), before, after))

    def add_text(
        self, rule: str, spot: Spot, what: str, before: str, after: str, *, cases: Iterable[Case] = ()
    ) -> None:
        """Note a text that differs, if it does."""
        if before != after:
            self.add(rule, spot, says(what, before, after), before, after, cases=cases)

    def add_rename(self, rule: str, spot: Spot, before: str, after: str, *, cases: Iterable[Case] = ()) -> None:
        """Note another name, if it is another."""
        if before != after:
            self.add(rule, spot, f"was called {before}", before, after, cases=cases)

    def add_order(self, spot: Spot, what: str, before: Sequence[str], after: Sequence[str]) -> None:
        """Note that what both sides have stands in another order, if it does."""
        was = [name for name in before if name in after]
        now = [name for name in after if name in before]
        if was != now:
            first = next(name for name, other in zip(now, was, strict=True) if name != other)
            self.add("doc-order", spot, f"has its {what} in another order from {first} on", listed(was), listed(now))


def versions_by_fact(cases: Iterable[Case]) -> dict[str, list[int]]:
    """The versions by the fact that they need; a version that needs none is not repeated under others."""
    cases = frozenset(cases)
    result: dict[str, list[int]] = {}
    for fact, version in sorted((case.fact, case.version) for case in cases):
        if not fact or Case(version) not in cases:
            result.setdefault(fact, []).append(version)
    return result
