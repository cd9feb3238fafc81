"""A protocol on both sides, and whether a version has the same bytes on both."""

from __future__ import annotations

from codegen.diff.change import Case
from codegen.diff.names import Names, as_new
from codegen.diff.presence import Presence
from codegen.diff.reading import same_bytes
from codegen.spec.model import OUTSIDE, Alternative, Field, Message, Protocol
from codegen.spec.notation import PartName


class Pair:
    """A protocol on both sides, the old one in the names of the new."""

    def __init__(self, original: Protocol, new: Protocol, names: Names) -> None:
        """`original` is the old side in its own names."""
        self.original = original
        self.names = names
        self.old = as_new(original, names)
        self.new = new
        newest = min(len(original.versions), len(new.versions))
        # A fact that comes with a new version cannot have held in a session of an older one.
        known = {fact.name for side in (self.old, new) for fact in side.session if fact.since <= newest}
        used = {message.also_when for side in (self.old, new) for message in side.messages}
        self.facts = tuple(sorted(known & used))
        self.was = Presence(self.old, self.facts)
        self.now = Presence(new, self.facts)
        self.common = self.was.cases & self.now.cases
        """The cases that both sides have."""

    def status(self, version: int) -> str:
        """What became of a version: unchanged, changed, changed where a fact holds, new or gone."""
        case = Case(version)
        if case not in self.was.cases:
            return "new"
        if case not in self.now.cases:
            return "gone"
        if not self._same(case):
            return "changed"
        facts = [fact for fact in self.facts if not self._same(Case(version, fact))]
        return f"changed where {' or '.join(facts)}" if facts else "unchanged"

    def _same(self, case: Case) -> bool:
        messages = self.messages(case, case)
        return all(was and now and self._same_message(was, now, case, case) for was, now in messages.values())

    def messages(self, before: Case, after: Case) -> dict[str, tuple[Message | None, Message | None]]:
        """The messages of two cases by name, in the order of the new side, those that are gone at the end."""
        was = {item.name: item for item in self.old.messages if before in self.was.of_layout(item.name)}
        now = {item.name: item for item in self.new.messages if after in self.now.of_layout(item.name)}
        return {name: (was.get(name), now.get(name)) for name in [*now, *was]}

    def same_layout(self, was: Message, now: Message, before: Case, after: Case) -> bool:
        """Whether a message has the same bytes."""
        return was.sender == now.sender and self._same_rows(now.name, was.fields, now.fields, before, after)

    def _same_message(self, was: Message, now: Message, before: Case, after: Case) -> bool:
        """Whether a message has the same bytes, is legal in the same places and changes the same state."""
        return (
            self.same_layout(was, now, before, after)
            and (was.opens, was.closes, was.sets, was.clears) == (now.opens, now.closes, now.sets, now.clears)
            and places(was, self.was, before) == places(now, self.now, after)
        )

    def _same_rows(
        self, layout: str, was: tuple[Field, ...], now: tuple[Field, ...], before: Case, after: Case
    ) -> bool:
        rows_before = self.was.rows(layout, was, before)
        rows = self.now.rows(layout, now, after)
        if [row.name for row in rows_before] != [row.name for row in rows]:
            return False
        return all(
            same_bytes(self.old, one, self.new, other) and self._same_part(other, before, after)
            for one, other in zip(rows_before, rows, strict=True)
        )

    def _same_part(self, row: Field, before: Case, after: Case) -> bool:
        """Whether the part that a row is, on both sides, has the same bytes."""
        if not isinstance(row.type, PartName):
            return True
        was, now = self.old.part(row.type.name), self.new.part(row.type.name)
        if not self._same_rows(now.name, was.fields, now.fields, before, after):
            return False
        alternatives: list[dict[str, Alternative]] = [
            {alternative.name: alternative for alternative in part.alternatives} for part in (was, now)
        ]
        return alternatives[0].keys() == alternatives[1].keys() and all(
            self._same_rows(name, alternatives[0][name].fields, other.fields, before, after)
            for name, other in alternatives[1].items()
        )


def places(message: Message, presence: Presence, case: Case) -> set[str]:
    """Where a message may stand: outside, and in the blocks that something opens in that case."""
    return {place for place in message.places if place == OUTSIDE or case in presence.of_block(place)}
