"""Names of slot and publication. A writer to a destination can make it name another program's slot, so a default name
has a digest of the location, and any other name must be the command line's too."""

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
"""The number of random hexadecimal digits, and of digits of the location's digest."""


class UnconfirmedNameError(LogicalRepError, RuntimeError):
    """A destination's slot or publication that is neither its default name nor named by the caller."""

    code = "NAME_UNCONFIRMED"


def default_name(storage: Storage) -> str:
    """Return a new unique name for slot and publication, with a digest of the destination's location."""
    return _name(storage, secrets.token_hex(_DIGITS // 2))


def is_default_name(name: str, storage: Storage) -> bool:
    """Return whether `default_name` may return a name for a destination."""
    return name == _name(storage, name[-2 * _DIGITS : -_DIGITS])


class DestinationNames(Protocol):
    @property
    def slot(self) -> str: ...
    @property
    def publication(self) -> str: ...


def confirm_names(storage: Storage, names: DestinationNames, *, slot: str | None, publication: str | None) -> None:
    """Raise UnconfirmedNameError unless each name is the destination's default name, or the caller's name."""
    unconfirmed = [
        (option, name)
        for option, name, wanted in (("slot", names.slot, slot), ("publication", names.publication, publication))
        if name != wanted and not is_default_name(name, storage)
    ]
    if unconfirmed:
        # Users paste the text into a shell, and others may have written the names.
        options = " ".join(f"--{option} {shlex.quote(name)}" for option, name in unconfirmed)
        raise UnconfirmedNameError(
            f"{storage.uri} names {' and '.join(f'the {option} {name!r}' for option, name in unconfirmed)}, which "
            f"{'was' if len(unconfirmed) == 1 else 'were'} not created for a destination at this location. If you "
            "passed the name to replicate before, or the destination was moved or is mounted at another path, and no "
            f"other destination uses it, add {options}"
        )


def _name(storage: Storage, random: str) -> str:
    location = os.path.realpath(storage.uri) if storage.is_local else re.sub("^(s3|abfs)[as]:", r"\1:", storage.uri)
    last = location.rstrip("/").rpartition("/")[2].lower()
    digest = hashlib.sha256(f"{random} {location}".encode("utf-8", "surrogateescape")).hexdigest()
    return f"logicalrep_{re.sub('[^a-z0-9]+', '_', last).strip('_')[:32]}_{random}{digest[:_DIGITS]}"
