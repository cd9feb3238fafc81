"""In which versions each layout, row and block of a protocol exists, by what views.py makes of `since`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from codegen.diff.change import Case, Cases
from codegen.diff.owners import all_rows
from codegen.spec.model import Field, Message, Protocol, parts_used
from codegen.spec.notation import PartName
from codegen.spec.versions import View, view


class Presence:
    """The cases of a protocol, and for each thing in it those in which it exists.

    What exists in a version exists there whatever facts hold.
    """

    def __init__(self, protocol: Protocol, facts: Iterable[str]) -> None:
        """`facts` are those under which messages may be sent to older versions."""
        self.facts = tuple(facts)
        self._layouts: dict[str, set[Case]] = {}
        self._rows: dict[tuple[str, str], set[Case]] = {}
        self._blocks: dict[str, set[Case]] = {}
        views = [view(protocol, version.number) for version in protocol.versions]
        cases: set[Case] = set()
        first: dict[str, tuple[Message, View]] = {}
        for shown in views:
            here = {Case(shown.version, fact) for fact in ("", *self.facts)}
            cases |= here
            for message in shown.messages:
                first.setdefault(message.name, (message, shown))
                self._mark_message(message, shown, here)
        for message, shown in first.values():
            if message.also_when in self.facts:
                older = {Case(other.version, message.also_when or "") for other in views[: shown.version - 1]}
                self._mark_message(message, shown, older)
        self.cases: Cases = frozenset(cases)

    def of_layout(self, name: str) -> Cases:
        """Where a message, part or alternative exists."""
        return frozenset(self._layouts.get(name, ()))

    def of_row(self, layout: str, row: str) -> Cases:
        """Where a row of a layout exists."""
        return frozenset(self._rows.get((layout, row), ()))

    def of_block(self, name: str) -> Cases:
        """Where a message exists that opens the block."""
        return frozenset(self._blocks.get(name, ()))

    def rows(self, layout: str, fields: tuple[Field, ...], case: Case) -> list[Field]:
        """The rows of a layout that exist in a case."""
        return [row for row in fields if case in self._rows.get((layout, row.name), ())]

    def _mark_message(self, message: Message, shown: View, cases: set[Case]) -> None:
        if message.opens is not None:
            self._blocks.setdefault(message.opens, set()).update(cases)
        self._mark(message.name, message.fields, shown, cases)

    def _mark(self, layout: str, fields: tuple[Field, ...], shown: View, cases: set[Case]) -> None:
        self._layouts.setdefault(layout, set()).update(cases)
        for row in fields:
            self._rows.setdefault((layout, row.name), set()).update(cases)
            if isinstance(row.type, PartName):
                part = next(part for part in shown.parts if part.name == row.type.name)
                self._mark(part.name, part.fields, shown, cases)
                for alternative in part.alternatives:
                    self._mark(alternative.name, alternative.fields, shown, cases)


def until(protocol: Protocol, version: int) -> Protocol:
    """The protocol as it was when that version was the newest."""
    shown = view(protocol, version)
    used: set[str] = set()
    pending = [name for message in shown.messages for name in parts_used(message.fields)]
    parts = {part.name: part for part in shown.parts}
    while pending:
        name = pending.pop()
        if name not in used:
            used.add(name)
            pending += parts_used(all_rows(parts[name]))
    opened = {message.opens for message in shown.messages}
    return replace(
        protocol,
        versions=protocol.versions[:version],
        session=tuple(fact for fact in protocol.session if fact.since <= version),
        blocks={name: doc for name, doc in protocol.blocks.items() if name in opened},
        messages=shown.messages,
        parts=tuple(part for part in shown.parts if part.name in used),
    )
