from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from logicalrep.pipeline.config.nodes import refuse
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.storage.storage import Storage


def refuse_shared(settings: Mapping[str, ReplicateSettings]) -> None:
    """Raise ConfigError for two databases with one slot, one destination, or a destination within another.

    A server with two names counts as two servers; the server itself refuses a slot's second reader.
    """
    uris = {name: Storage(database.to, database.storage_options or {}).uri for name, database in settings.items()}
    slots = {
        name: (database.connection.server, database.slot)
        for name, database in settings.items()
        if database.slot is not None
    }
    mistakes = []
    for first, second in combinations(settings, 2):
        if uris[first] == uris[second]:
            mistakes.append(f"{first} and {second} have the same destination, {uris[first]}")
        elif f"{uris[first]}/".startswith(f"{uris[second]}/") or f"{uris[second]}/".startswith(f"{uris[first]}/"):
            mistakes.append(f"{first} and {second}: one destination is in the other, {uris[first]} and {uris[second]}")
        if slots.get(first, second) == slots.get(second, first):
            server, slot = slots[first]
            mistakes.append(f"{first} and {second} have the same slot, {slot} of {server}")
    refuse(mistakes)
