"""Comparison of a page with the spec at one version; each difference quotes both sides."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from codegen.model.model import Protocol
from codegen.model.notation import Byten
from codegen.model.places import Place
from codegen.model.versions import view
from codegen.pagecheck import quoting
from codegen.pagecheck.expected import Layout, layouts
from codegen.pagecheck.page import Group, Message, Page
from codegen.pagecheck.prose import is_quoted
from codegen.pagecheck.quoting import NOTHING, Difference, quoted
from codegen.pagecheck.scope import messages_of, misplaced, missing, pair_messages, same_name
from codegen.pagecheck.tables import Reading, compare_tables, distance
from codegen.pagecheck.wording import words


def protocols_on(page: Page, protocols: tuple[Protocol, ...]) -> tuple[Protocol, ...]:
    """Return the protocols whose messages are on the page; () if none.

    A fragment of one message names no message: it belongs to the protocol whose rows fit best.
    """
    protocols = tuple(protocol for protocol in protocols if not is_quoted(protocol))
    named = tuple(protocol for protocol in protocols if messages_of(page, protocol))
    if named or len(page.messages) != 1 or not page.messages[0].head_missing:
        return named
    (message,) = page.messages
    newest = max(len(protocol.versions) for protocol in protocols)
    reading = Reading(Path(page.source), newest, _is_old(page.messages))
    return (
        min(protocols, key=lambda protocol: min(distance(message, layout, reading) for layout in _newest(protocol))),
    )


def compare(page: Page, protocol: Protocol, version: int) -> list[Difference]:
    """Return the differences in the page's order. Raises ValueError if the protocol has no such version.

    Ignores, on both sides, rows and messages that the page dates after the version.
    """
    messages = messages_of(page, protocol) or page.messages
    return sorted(set(_Comparison(page, protocol, version, messages).differences))


def _newest(protocol: Protocol) -> tuple[Layout, ...]:
    return layouts(view(protocol, len(protocol.versions)))


class _Comparison:
    def __init__(self, page: Page, protocol: Protocol, version: int, messages: tuple[Message, ...]) -> None:
        self.differences: list[Difference] = []
        self._protocol = protocol
        self._reading = Reading(Path(page.source), version, _is_old(messages))
        self._is_two_way = any(message.sender == "client" for message in protocol.messages)
        self._layouts = {layout.name: layout for layout in layouts(view(protocol, version))}
        self._compare_messages(messages, _newest(protocol))
        self._compare_headings(messages)

    def _differ(self, line: int, spec: Place, what: str, printed: str, specified: str) -> None:
        self.differences.append(Difference(Place(self._reading.source, line), spec, what, printed, specified))

    def _compare_messages(self, messages: tuple[Message, ...], every: tuple[Layout, ...]) -> None:
        chosen = pair_messages(messages, every, partial(distance, reading=self._reading))
        place = self._protocol.place
        for index, message in enumerate(messages):
            layout = chosen.get(index)
            if layout is None:
                if not self._reading.is_later(message.group.since):
                    self._differ(message.line, place, quoting.name_of(message), quoting.name_of(message), NOTHING)
                continue
            place = layout.place
            self._compare_since(message, layout)
            if layout.name in self._layouts:
                self._compare_message(message, self._layouts[layout.name])
        for layout, side, neighbour in missing(messages, every, chosen):
            if layout.name in self._layouts:
                printed = quoting.nothing_beside(side, quoting.name_of(neighbour))
                line = neighbour.last_line if side == "after" else neighbour.line
                self._differ(line, layout.place, layout.name, printed, quoted(layout.name))
        for message, previous, layout, after in misplaced(messages, every, chosen):
            if layout.name in self._layouts:
                printed = f"{quoting.name_of(message)} after {quoting.name_of(previous)}"
                specified = f"{quoted(layout.name)} after {quoted(after.name) if after else NOTHING}"
                self._differ(message.line, layout.place, layout.name, printed, specified)

    def _compare_since(self, message: Message, layout: Layout) -> None:
        group = message.group
        printed = group.since or 1
        if group.heading_missing or printed == layout.since:
            return
        if not (self._reading.is_later(printed) and self._reading.is_later(layout.since)):
            self._differ(group.line, layout.place, layout.name, quoting.since(group.since), quoting.since(layout.since))

    def _compare_message(self, message: Message, layout: Layout) -> None:
        differ = partial(self._differ, message.line, layout.place, layout.name)
        if not message.head_missing:
            if not same_name(message, layout, is_old=self._reading.is_old):
                differ(quoting.name_of(message), quoted(layout.name))
            if message.direction != layout.direction and (message.direction or self._is_two_way):
                differ(quoting.direction(message.direction), quoting.direction(layout.direction))
            anchor = message.anchor or ""
            prefix = self._protocol.anchor.lower()
            if prefix and anchor.lower().startswith(prefix) and anchor.lower() != layout.anchor.lower():
                differ(f"the anchor {quoted(anchor)}", f"the anchor {quoted(layout.anchor)}")
        self._compare_choices(message, layout)
        self._compare_older(message, layout)
        self.differences += compare_tables(message, layout, self._reading)

    def _compare_choices(self, message: Message, layout: Layout) -> None:
        """Compare the sentences that list tags of which a message has at most one."""
        remarks_by_choice = {frozenset(remark.choice.constants): remark for remark in message.remarks if remark.choice}
        for wanted in layout.choices:
            remark = remarks_by_choice.pop(frozenset(wanted.constants), None)
            either = " or ".join(f"'{constant}'" for constant in wanted.constants)
            specified = f"{either} or none of them" if wanted.may_be_none else f"{either}, and always one of them"
            if remark is None:
                # A page that begins below the table may begin within the sentence.
                if message.rows and not message.tail_missing:
                    texts = " ".join(other.text for other in message.remarks)
                    printed = quoted(texts) if texts else "no such sentence after the table"
                    self._differ(message.last_line, wanted.place, wanted.what, printed, specified)
            elif remark.choice is not None and remark.choice.may_be_none != wanted.may_be_none:
                self._differ(remark.line, wanted.place, wanted.what, quoted(remark.text), specified)
        for remark in remarks_by_choice.values():
            self._differ(remark.line, layout.place, layout.name, quoted(remark.text), "no such choice")

    def _compare_older(self, message: Message, layout: Layout) -> None:
        """Compare the sentences on the length of rows in older versions."""
        told = [(remark, remark.older) for remark in message.remarks if remark.older]
        for row in layout.rows:
            older = row.older
            if older is None or not isinstance(older.type, Byten):
                continue
            specified = f"{quoted(str(older.type))} before version {row.version_name}"
            same = [pair for pair in told if words(older.name.replace("_", " ")) == words(pair[1].subject)]
            if not same and not message.tail_missing:
                printed = "no length before any version after the table"
                self._differ(message.last_line, older.place, row.what, printed, specified)
            for remark, length in same:
                told.remove((remark, length))
                if (older.type.count, row.version_name) != (length.length, length.version):
                    self._differ(remark.line, older.place, row.what, quoted(remark.text), specified)
        for remark, length in told:
            self._differ(remark.line, layout.place, layout.name, quoted(remark.text), f"no older {length.subject}")

    def _compare_headings(self, messages: tuple[Message, ...]) -> None:
        """Compare each heading's list of messages with the messages below it."""
        below: dict[Group, list[Message]] = {}
        for message in messages:
            below.setdefault(message.group, []).append(message)
        for group, members in below.items():
            if not group.names or self._reading.is_later(group.since):
                continue
            names = tuple(message.name for message in members)
            listed = group.names[: len(names)] if group.tail_missing else group.names
            if listed != names:
                below_it = ", ".join(name or "a message without a name" for name in names)
                self._differ(
                    group.line,
                    self._protocol.place,
                    "the heading",
                    quoted(", ".join(group.names)),
                    f"{quoted(below_it)} below it on the page",
                )


def _is_old(messages: tuple[Message, ...]) -> bool:
    """Return whether a page is older than PostgreSQL 15: no names in parentheses, no anchors."""
    names = any(row.type and " (" in row.type for message in messages for row in message.rows)
    return not names and not any(message.anchor for message in messages)
