"""The names of a destination's slot and publication on the server, which the destination itself cannot choose freely.

Whoever writes to a destination can make it name the slot of another program. So the default name tells the location of
its destination, and a name that does not is used only if the command line names it too.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shlex
from typing import Protocol

from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.errors import LogicalRepError

_DIGITS = 8
"""The hexadecimal digits that are random, and as many that tell the location."""


class UnconfirmedNameError(LogicalRepError, RuntimeError):
    """A slot or publication that a destination names, and that is neither its default one nor named by the caller."""

    code = "NAME_UNCONFIRMED"


def default_name(storage: Storage) -> str:
    """Return a new name for slot and publication that tells the destination, and that no other destination has."""
    return _name(storage, secrets.token_hex(_DIGITS // 2))


def is_default_name(name: str, storage: Storage) -> bool:
    """Return whether a name is one that `default_name` may return for a destination."""
    return name == _name(storage, name[-2 * _DIGITS : -_DIGITS])


class DestinationNames(Protocol):
    """The names in a destination's `destination.json`."""

    @property
    def slot(self) -> str: ...
    @property
    def publication(self) -> str: ...


def confirm_names(storage: Storage, names: DestinationNames, *, slot: str | None, publication: str | None) -> None:
    """Raise UnconfirmedNameError unless each name is a default one of its destination, or the one that is given.

    Args:
        storage: the destination.
        names: the names at the destination.
        slot: the slot that the caller names; None without one.
        publication: the publication that the caller names; None without one.
    """
    unconfirmed = [
        (option, name)
        for option, name, wanted in (("slot", names.slot, slot), ("publication", names.publication, publication))
        if name != wanted and not is_default_name(name, storage)
    ]
    if unconfirmed:
        # The text is pasted into a shell, and others may have written the names.
        options = " ".join(f"--{option} {shlex.quote(name)}" for option, name in unconfirmed)
        raise UnconfirmedNameError(
            f"{storage.uri} names {' and '.join(f'the {option} {name!r}' for option, name in unconfirmed)}, which "
            f"{'was' if len(unconfirmed) == 1 else 'were'} not made for a destination at this location. If you gave "
            "the name to replicate before, or the destination was moved or is mounted at another path, and no other "
            f"destination uses it, add {options}"
        )


def _name(storage: Storage, random: str) -> str:
    location = os.path.realpath(storage.uri) if storage.is_local else re.sub("^(s3|abfs)[as]:", r"\1:", storage.uri)
    last = location.rstrip("/").rpartition("/")[2].lower()
    digest = hashlib.sha256(f"{random} {location}".encode("utf-8", "surrogateescape")).hexdigest()
    return f"logicalrep_{re.sub('[^a-z0-9]+', '_', last).strip('_')[:32]}_{random}{digest[:_DIGITS]}"
