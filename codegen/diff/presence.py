"""The versions that contain each thing of a protocol, by the views of versions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from codegen.diff.change import Case, Cases
from codegen.diff.owners import Owner, all_rows, own_and_inner
from codegen.model.layouts import Message, parts_used
from codegen.model.model import Protocol
from codegen.model.versions import View, view

_LAYOUTS = ("message", "part", "alternative")


class Presence:
    """The cases of a protocol, and the cases that contain each thing.

    A thing that exists in a version exists there with any session fact.
    """

    def __init__(self, protocol: Protocol, facts: Iterable[str]) -> None:
        """`facts` are the session facts under which servers may send messages to older versions."""
        facts = ("", *facts)
        self._cases: defaultdict[tuple[str, str, str], set[Case]] = defaultdict(set)
        views = [view(protocol, version.number) for version in protocol.versions]
        first: dict[str, tuple[Message, View]] = {}
        for shown in views:
            here = {Case(shown.version, fact) for fact in facts}
            self._cases["version", str(shown.version), ""] |= here
            for fact in protocol.session:
                self._cases["session-fact", fact.name, ""] |= here if fact.since <= shown.version else set()
            for message in shown.messages:
                first.setdefault(message.name, (message, shown))
                self._mark_message(message, shown, here)
        for message, shown in first.values():
            conditions = facts if message.also_when is None else {message.also_when} & set(facts)
            older = range(message.also_since or message.since, message.since)
            self._mark_message(message, shown, {Case(version, fact) for version in older for fact in conditions})
        self.cases: Cases = frozenset(Case(shown.version, fact) for shown in views for fact in facts)

    def of(self, kind: str, name: str, owner: str = "") -> Cases:
        """Return the cases of a thing. `owner` is a field's layout. A block exists if a message opens it."""
        return frozenset(self._cases.get(("layout" if kind in _LAYOUTS else kind, name, owner), ()))

    def _mark_message(self, message: Message, shown: View, cases: set[Case]) -> None:
        if message.opens is not None:
            self._cases["block", message.opens, ""] |= cases
        self._mark(message, shown, cases)

    def _mark(self, layout: Owner, shown: View, cases: set[Case]) -> None:
        for owner in own_and_inner(layout):
            self._cases["layout", owner.name, ""] |= cases
            for row in owner.fields:
                self._cases["field", row.key, owner.name] |= cases
        for part in shown.parts:
            if part.name in parts_used(all_rows(layout)):
                self._mark(part, shown, cases)
