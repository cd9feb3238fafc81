"""The files at a place that tell what it replicates and how far it is: the destination is the only state."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Self, TypeVar

from logicalrep.postgres.timelines import Timeline, WalPosition
from logicalrep.tables.delta.place import Place, below
from logicalrep.tables.load.progress import LoadProgress
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn

_Result = TypeVar("_Result")

FOLDER = "_logicalrep"
"""The folder of these files at a place."""
FORMAT = 1
"""The format of these files."""
_NONE = Lsn(0)


class StateError(LogicalRepError, RuntimeError):
    """A place that belongs to something else, or whose files cannot be read."""

    code = "PLACE_DIFFERS"


@dataclass(frozen=True, slots=True)
class Identity:
    """The facts on a place that do not change; `_logicalrep/place.json`, written before anything is made."""

    slot: str
    publication: str
    system_identifier: int
    """The database cluster's identifier, which another server does not have."""
    database: str
    format: int = FORMAT

    @classmethod
    def read(cls, place: Place) -> Self | None:
        """Return a place's identity; None for a new place. Raises StateError for a file of another version."""
        return read_file(place, "place.json", lambda content: cls(**content))

    @classmethod
    def claim(
        cls, place: Place, *, slot: str | None, publication: str | None, system_identifier: int, database: str
    ) -> Self:
        """Return the identity of a place; a new place gets one.

        Args:
            place: the place.
            slot: the wanted slot; None for that of the place, which is named after it.
            publication: the wanted publication, likewise.
            system_identifier: the server's.
            database: the database's name.

        Raises:
            StateError: the place replicates another server or database, or with another slot or publication.
        """
        found = cls.read(place)
        if found is None:
            name = _name_for(place)
            made = cls(slot or name, publication or name, system_identifier, database)
            if place.create(f"{FOLDER}/place.json", to_json(asdict(made))):
                return made
            found = cls.read(place)
            assert found is not None
        found.check(system_identifier=system_identifier, database=database, slot=slot, publication=publication)
        return found

    def replace_server(self, place: Place, *, system_identifier: int, database: str) -> None:
        """Let a place have the tables of another server from now on."""
        made = replace(self, system_identifier=system_identifier, database=database)
        place.write(f"{FOLDER}/place.json", to_json(asdict(made)))

    def check(
        self, *, system_identifier: int, database: str, slot: str | None = None, publication: str | None = None
    ) -> None:
        """Raise StateError if the place has the tables of another server, database, slot or publication."""
        if self.system_identifier != system_identifier:
            raise StateError(
                f"this place has the tables of the server with system identifier {self.system_identifier}, but this is "
                f"{system_identifier}: another server, or one that was upgraded or made anew. Replicate it to another "
                "place; or, if it has taken the place of the first, run logicalrep resync --all --new-server with the "
                "same --to, which loads all tables from it",
                code="OTHER_SERVER",
            )
        for what, wanted, is_there in (
            ("database", database, self.database),
            ("slot", slot, self.slot),
            ("publication", publication, self.publication),
        ):
            if wanted is not None and wanted != is_there:
                raise StateError(f"this place is replicated with the {what} {is_there!r}, not {wanted!r}")


def _name_for(place: Place) -> str:
    """Return a name for slot and publication that tells the place, and that no other place has."""
    last = place.uri.rstrip("/").rpartition("/")[2].lower()
    return f"logicalrep_{re.sub('[^a-z0-9]+', '_', last).strip('_')[:32]}_{secrets.token_hex(4)}"


@dataclass(frozen=True, slots=True)
class TableState:
    """The progress of a table."""

    folder: str
    version: int | None
    """The Delta table's version; None before the first load."""
    lsn: Lsn
    """The table has all commits up to this LSN, and none after it."""
    load: str | None
    """The load that its rows began with."""
    timeline: int
    """The server's timeline at that LSN."""
    state: str = "following"
    """`following`, `loading` or `stopped`."""
    error: str | None = None
    """The reason why it is stopped."""
    oid: int | None = None
    """The table's OID on the server, which renaming does not change."""
    beside: Mapping[str, int] = field(default_factory=dict)
    """The versions of the Delta tables beside it, `history` and `changes`, as far as there are any."""
    rows: int | None = None
    """The number of its rows, with those that are marked as deleted; None before the first load."""
    commit_timestamp: str | None = None
    """The time of the last commit with changes of it, ISO 8601 in UTC; None before the first one after its load."""
    progress: LoadProgress | None = None
    """The progress of the copying of its rows; None if they are not being copied."""


@dataclass(frozen=True, slots=True)
class State:
    """The progress of all tables: `_logicalrep/state.json`, written after each batch."""

    lsn: Lsn = field(default=_NONE)
    """Every commit before this LSN is in the tables that follow."""
    commit_timestamp: str | None = None
    """The time of the last commit among them, ISO 8601 in UTC."""
    caught_up: str | None = None
    """The last time at which the server had committed nothing beyond them, ISO 8601 in UTC; None if that is unknown."""
    tables: Mapping[str, TableState] = field(default_factory=dict)
    """The tables by their names, as in SQL."""
    format: int = FORMAT

    @classmethod
    def read(cls, place: Place) -> Self:
        """Return a place's state; that of a new place is empty."""
        return read_file(place, "state.json", cls._of) or cls()

    @classmethod
    def _of(cls, found: dict[str, Any]) -> Self:
        tables = {}
        for name, table in found["tables"].items():
            progress = table.get("progress") and LoadProgress(**table["progress"])
            folder = below(table["folder"])
            tables[name] = TableState(**table | {"folder": folder, "lsn": Lsn(table["lsn"]), "progress": progress})
        return cls(Lsn(found["lsn"]), found["commit_timestamp"], found.get("caught_up"), tables)

    def position(self, system_identifier: int) -> WalPosition:
        """Return the position of the place in the WAL of its server."""
        # It is 0 for a standby, which tells none.
        timeline = max((table.timeline for table in self.tables.values()), default=0)
        return WalPosition(self.lsn, Timeline(system_identifier, timeline) if timeline else None)

    def write(self, place: Place) -> None:
        """Replace the place's state."""
        # Of 200 tables `asdict` would take twenty milliseconds, at each batch.
        tables = {
            name: _content(table) | {"progress": table.progress and asdict(table.progress)}
            for name, table in sorted(self.tables.items())
        }
        place.write(f"{FOLDER}/state.json", to_json(_content(self) | {"tables": tables}))


def _content(state: State | TableState) -> dict[str, object]:
    return {each.name: getattr(state, each.name) for each in fields(state)} | {"lsn": str(state.lsn)}


def to_json(content: Mapping[str, object]) -> bytes:
    """Return the bytes of a place's file."""
    return json.dumps(content, indent=2, ensure_ascii=False).encode()


def read_file(place: Place, name: str, parser: Callable[[dict[str, Any]], _Result]) -> _Result | None:
    """Return what a function makes of the content of a place's file; None if there is none.

    Raises StateError if it is of a later version, and MalformedFileError if it is damaged.
    """

    def parse(content: Any) -> _Result:
        if content["format"] != FORMAT:
            raise StateError(f"{FOLDER}/{name} has format {content['format']}, which a later version wrote: use that")
        return parser(content)

    return place.parse(f"{FOLDER}/{name}", parse)
