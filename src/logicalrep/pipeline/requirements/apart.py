"""The requirements of databases side by side: each has a slot and a destination of its own."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from logicalrep.pipeline.config.nodes import refuse
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.storage.storage import Storage


def refuse_shared(settings: Mapping[str, ReplicateSettings]) -> None:
    """Raise ConfigError if two databases have the same slot of a server, or the same destination.

    A destination within another one is refused too: its folders could be those of the other's tables. A server with
    two names is two servers here; it refuses the second reader of a slot itself.

    Args:
        settings: the settings of each database by its name.
    """
    uris = {name: Storage(each.to, each.storage_options or {}).uri for name, each in settings.items()}
    slots = {name: (each.connection.server, each.slot) for name, each in settings.items() if each.slot is not None}
    mistakes = []
    for one, other in combinations(settings, 2):
        if uris[one] == uris[other]:
            mistakes.append(f"{one} and {other} have the same destination, {uris[one]}")
        elif f"{uris[one]}/".startswith(f"{uris[other]}/") or f"{uris[other]}/".startswith(f"{uris[one]}/"):
            mistakes.append(f"{one} and {other}: one destination is in the other, {uris[one]} and {uris[other]}")
        if slots.get(one, other) == slots.get(other, one):
            server, slot = slots[one]
            mistakes.append(f"{one} and {other} have the same slot, {slot} of {server}")
    refuse(mistakes)
