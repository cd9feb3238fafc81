"""A protocol on both sides."""

from __future__ import annotations

from typing import NamedTuple

from codegen.diff.names import Names, as_new
from codegen.diff.presence import Presence
from codegen.model.model import Protocol


class Pair(NamedTuple):
    """A protocol on both sides."""

    original: Protocol
    """The old side."""
    old: Protocol
    """The old side with the names of the new side."""
    new: Protocol
    names: Names
    old_presence: Presence
    new_presence: Presence
    facts: tuple[str, ...]
    """The session facts under which servers send messages to older versions."""


def pair_of(original: Protocol, new: Protocol, names: Names) -> Pair:
    """Pair the two sides of a protocol."""
    old = as_new(original, names)
    newest = min(len(original.versions), len(new.versions))
    # A fact of a new version cannot hold in a session of an older version.
    common_facts = {fact.name for side in (old, new) for fact in side.session if fact.since <= newest}
    used = {message.also_when for side in (old, new) for message in side.messages}
    facts = tuple(sorted(common_facts & used))
    return Pair(original, old, new, names, Presence(old, facts), Presence(new, facts), facts)
