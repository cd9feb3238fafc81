"""Sequences of messages in one session, for blocks, session facts and described objects.

Like the readers of single messages, this code follows only the model and shares no code with the generated decoder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from codegen.lowering.rows import looked_up, lower
from codegen.model.layouts import OUTSIDE, Message
from codegen.model.model import Protocol, fact_of, value_of
from codegen.model.versions import View
from codegen.vectors.codec import Fields, write
from codegen.vectors.samples import Samples


@dataclass
class _Session:
    """One session's messages, and its state after them."""

    shown: tuple[View, ...]
    version: int
    facts: dict[str, bool]
    block: str = OUTSIDE
    described: set[tuple[str, Any]] = field(default_factory=set)
    entries: list[dict[str, Any]] = field(default_factory=list)

    def layouts(self) -> Iterator[tuple[Message, View]]:
        """Yield the messages of servers in this session, each in the version of its layout."""
        for message in self.shown[-1].messages:
            may_come = message.is_sent_in(self.version) and (
                message.since <= self.version or message.also_when is None or self.facts[message.also_when]
            )
            if message.sender == "server" and may_come:
                view = self.shown[max(message.since, self.version) - 1]
                yield next(candidate for candidate in view.messages if candidate.name == message.name), view

    def message(self, name: str) -> tuple[Message, View]:
        return next(layout for layout in self.layouts() if layout[0].name == name)

    def send(self, message: Message, view: View) -> None:
        """Add a message with usual values: accepted and applied, or refused with the first reason."""
        values = Samples(view, self.facts).usual(lower(view, message.fields))
        data, written = write(view, message, values)
        entry = {"message": message.name, "bytes": data.hex()}
        refused = self._refused(message, values, {row.path: row.start for row in written})
        if refused is not None:
            self.entries.append(entry | {"refused": refused, "strict": True})
            return
        self._follow(message, values)
        state = {"block": self.block} | {fact: self.facts[fact] for fact in self.facts}
        self.entries.append(entry | {"fields": values, "state": state})

    def _refused(self, message: Message, values: Fields, starts: dict[str, int]) -> dict[str, Any] | None:
        if self.block not in message.places:
            where = "outside of all blocks" if self.block == OUTSIDE else f"in a {self.block}"
            return {"field": "tag", "offset": 0, "reason": f"it cannot stand {where}"}
        for name, describing in looked_up(message.fields).items():
            is_list = isinstance(values[name], list)
            for index, number in enumerate(values[name] if is_list else [values[name]]):
                if (describing, number) not in self.described:
                    path = f"{name}[{index}]" if is_list else name
                    return {"field": path, "offset": starts[path], "reason": f"no {describing} describes it"}
        return None

    def _follow(self, message: Message, values: Fields) -> None:
        if message.describes is not None:
            self.described.add((message.name, values[message.describes]))
        self.block = follow(message, self.block, self.facts)


def follow(message: Message, block: str, facts: dict[str, Any]) -> str:
    """Apply a message to the session facts, and return the block after it."""
    for condition, holds in ((message.sets, True), (message.clears, False)):
        if condition is not None:
            facts[str(fact_of(condition))] = value_of(condition) or holds
    return message.opens or (OUTSIDE if block in message.closes else block)


def sequences(protocol: Protocol, shown: tuple[View, ...]) -> Iterator[dict[str, Any]]:
    """Yield each version's sequences, without session facts and with each fact that has an effect."""
    lets_in = {message.also_when for message in protocol.messages}
    for view in shown:
        fact_names = [
            fact.name for fact in protocol.argument_facts if fact.since <= view.version or fact.name in lets_in
        ]
        for fact_name in (None, *fact_names):
            facts = {fact.name: fact.name == fact_name for fact in protocol.session}

            def new_session(view: View = view, facts: dict[str, bool] = facts) -> _Session:
                return _Session(shown, view.version, dict(facts))

            session = {fact_name: True} if fact_name is not None else {}
            for name, entries in _of_session(protocol, new_session):
                title = f"{name}, {fact_name}" if fact_name is not None else name
                yield {"name": title, "version": view.version, "session": session, "messages": entries}


def _of_session(protocol: Protocol, new_session: Callable[[], _Session]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield each block's messages, misplaced messages, and messages before the descriptions that they need."""
    for block in (OUTSIDE, *protocol.blocks):
        opener = next((message.name for message in protocol.messages if message.opens == block), None)
        closer = next((message.name for message in protocol.messages if block in message.closes), None)
        if opener is not None and all(message.name != opener for message, _ in new_session().layouts()):
            continue
        inside = [
            (message, view)
            for message, view in new_session().layouts()
            if block in message.places and message.opens is None and not message.closes
        ]
        describing = {name for message, _ in inside for name in looked_up(message.fields).values()}
        for what in ("", "before what describes them", "out of place"):
            session = new_session()
            if opener is not None:
                session.send(*session.message(opener))
            if what == "out of place":
                for message, view in session.layouts():
                    if block not in message.places:
                        session.send(message, view)
            else:
                first = [entry for entry in inside if (entry[0].name in describing) is not bool(what)]
                for message, view in (*first, *(entry for entry in inside if entry not in first)):
                    session.send(message, view)
            if closer is not None:
                session.send(*session.message(closer))
            if session.entries and (what != "before what describes them" or describing):
                yield f"{block}{': ' if what else ''}{what}", session.entries
