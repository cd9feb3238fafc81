"""The files at a destination with its identity and progress: all state is stored in the destination."""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, TypeVar

from logicalrep.pipeline.schema.stored_json import check_times, decode, encode
from logicalrep.pipeline.schema.table_formats import DEFAULT_FORMAT, FormatName
from logicalrep.pipeline.state.destination_names import confirm_names, default_name
from logicalrep.pipeline.state.table_state import TableState
from logicalrep.pipeline.storage.storage import MalformedFileError, Storage
from logicalrep.postgres.sessions.commit_log import History
from logicalrep.postgres.timelines import Timeline, WalPosition
from logicalrep.transactions.table_names import table_name
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn

_Result = TypeVar("_Result")

FOLDER = "_logicalrep"
FORMAT = 1
_DESTINATION, _STATES, _COPY = "destination.json", "states", "state.json"
DELETED_LAST = (f"{FOLDER}/{_STATES}/", f"{FOLDER}/settings.json", f"{FOLDER}/{_DESTINATION}")
"""The files that `drop` deletes last, in this order, so that an interrupted `drop` can be repeated."""


class StateError(LogicalRepError, RuntimeError):
    """A destination of another server, slot or format, or whose files cannot be read."""

    code = "DESTINATION_DIFFERS"


@dataclass(frozen=True, slots=True)
class Identity:
    """The constant facts about a destination; `destination.json`, written before anything is created."""

    slot: str
    publication: str
    system_identifier: int
    """The unique identifier of the database cluster."""
    database: str
    format: int = FORMAT
    table_format: FormatName = DEFAULT_FORMAT
    catalog: str | None = None
    """The catalog of its tables, without credentials; None without one."""

    @classmethod
    def read(cls, storage: Storage) -> Self | None:
        """Return a destination's identity; None for a new destination. Every command calls it first. Raises StateError
        for a destination of another format, or with files but no identity."""
        identity = read_file(storage, _DESTINATION, lambda content: decode(content, cls))
        if identity is not None:
            return identity
        paths = storage.list(FOLDER)
        if f"{FOLDER}/{_DESTINATION}" in paths:
            # Another process has begun to replicate to it.
            return cls.read(storage)
        # A killed process may have left a temporary file.
        if any(not path.rpartition("/")[2].startswith(".") for path in paths):
            raise StateError(
                f"{storage.uri} has files in {FOLDER}, and no {_DESTINATION}: it has a format that this version does "
                "not read, or somebody deleted the file. Use the version that wrote it, restore the file, or replicate "
                "to another destination; an unused slot retains WAL until you drop it",
                code="DESTINATION_FORMAT",
            )
        return None

    @classmethod
    def claim(
        cls,
        storage: Storage,
        *,
        slot: str | None,
        publication: str | None,
        system_identifier: int,
        database: str,
        table_format: FormatName = DEFAULT_FORMAT,
        catalog: str | None = None,
    ) -> Self:
        """Return the identity of a destination; a new destination gets one. Raises StateError if it replicates another
        server, database, slot, publication, format or catalog, or UnconfirmedNameError."""
        identity = cls.read(storage)
        if identity is None:
            name = default_name(storage)
            new_identity = cls(
                slot or name, publication or name, system_identifier, database, FORMAT, table_format, catalog
            )
            if storage.create(f"{FOLDER}/{_DESTINATION}", encode(new_identity)):
                return new_identity
            identity = cls.read(storage)
            assert identity is not None
        identity.check(system_identifier=system_identifier, database=database, slot=slot, publication=publication)
        confirm_names(storage, identity, slot=slot, publication=publication)
        if identity.table_format != table_format:
            raise StateError(
                f"this destination has tables in the format {identity.table_format}, not {table_format}: replicate to "
                f"another destination, or pass --format {identity.table_format}"
            )
        identity.check_catalog(catalog)
        return identity

    def replace_server(self, storage: Storage, *, system_identifier: int, database: str) -> Self:
        identity = replace(self, system_identifier=system_identifier, database=database)
        storage.write(f"{FOLDER}/{_DESTINATION}", encode(identity))
        return identity

    def check_catalog(self, catalog: str | None) -> None:
        """Raise StateError if the tables are in another catalog; None stands for no catalog."""
        if self.catalog != catalog:
            own_catalog, wanted_catalog = self.catalog or "no catalog", catalog or "none"
            raise StateError(
                f"this destination has tables in {own_catalog}, not in {wanted_catalog}: pass the --catalog of its "
                "first start, or replicate to another destination"
            )

    def check(
        self, *, system_identifier: int, database: str, slot: str | None = None, publication: str | None = None
    ) -> None:
        """Raise StateError if the destination belongs to another server, database, slot or publication."""
        if self.system_identifier != system_identifier:
            raise StateError(
                f"this destination has the tables of the server with system identifier {self.system_identifier}, but "
                f"this is {system_identifier}: another server, or an upgraded or restored one. Replicate it to another "
                "destination; or, if it replaces the first server, run logicalrep resync --all --new-server with the "
                "same --to, which reloads all tables from it",
                code="OTHER_SERVER",
            )
        if self.database != database:
            raise StateError(
                f"this destination is replicated with the database {self.database!r}, not {database!r}. If that "
                "database was renamed, start logicalrep replicate, which finds its slot there; if another replaces it, "
                "run logicalrep resync --all --new-server with the same --to, which reloads all tables from it"
            )
        for what, wanted, is_there in (
            ("slot", slot, self.slot),
            ("publication", publication, self.publication),
        ):
            if wanted is not None and wanted != is_there:
                raise StateError(f"this destination is replicated with the {what} {is_there!r}, not {wanted!r}")


@dataclass(frozen=True, slots=True)
class State:
    """The state of all tables: the last file of `_logicalrep/states/`, written after each batch."""

    lsn: Lsn = field(default=Lsn(0))
    """Every commit before this LSN is in the tables that follow."""
    commit_timestamp: str | None = None
    """The time of the last commit among them, ISO 8601 in UTC."""
    caught_up: str | None = None
    """The last time at which the tables had all of the server's commits, ISO 8601 in UTC; None if unknown."""
    tables: Mapping[str, TableState] = field(default_factory=dict)
    until: str | None = None
    """The time before which all rows of the tables had committed, ISO 8601 in UTC; None before the first checkpoint."""
    history: History | None = None
    """The evidence that a server has all commits that were read up to the LSN; None before the first checkpoint."""

    @classmethod
    def read(cls, storage: Storage) -> State:
        """Return a destination's last state; an empty state for a new destination."""
        return _last(storage)[1]

    @classmethod
    def of(cls, content: dict[str, Any]) -> Self:
        """Return the state in a file's content. Raises ValueError for invalid content."""
        state = decode({key: value for key, value in content.items() if key not in ("format", "writer")}, cls)
        check_times(state.commit_timestamp, state.caught_up, state.until)
        for name, table in state.tables.items():
            if name != str(table_name(name)):
                raise ValueError(f"it writes a table's name as {name}")
            table.check()
        return state

    @property
    def without_progress(self) -> State:
        return replace(self, tables={name: table.without_progress for name, table in self.tables.items()})

    def position(self, system_identifier: int) -> WalPosition:
        # A standby reports no timeline, which is stored as 0.
        timeline = max((table.timeline for table in self.tables.values()), default=0)
        return WalPosition(self.lsn, Timeline(system_identifier, timeline) if timeline else None)

    def to_json(self, writer: str) -> bytes:
        content = {state_field.name: getattr(self, state_field.name) for state_field in fields(self)}
        tables = dict(sorted(self.tables.items()))
        return encode({"format": FORMAT, "writer": writer, **content, "tables": tables})


class States:
    """Writes states in order, each into a new file with the next number: a suspended process whose slot was taken over
    ends when it wakes. replicate does not read `state.json`, a copy for other programs."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._writer = secrets.token_hex(8)
        # Threads check while another thread writes: its new file must not look like another process's file.
        self._lock = threading.Lock()
        self._number, self.last = _last(storage)

    @property
    def last_path(self) -> str:
        return _path(self._number)

    def write(self, state: State) -> None:
        with self._lock:
            number, data = self._number + 1, state.to_json(self._writer)
            if not self._storage.create(_path(number), data):
                writer = self._storage.parse(_path(number), lambda content: content["writer"])
                # An earlier try may have succeeded although its answer was lost.
                if writer != self._writer:
                    raise self._overtaken()
            self._number, self.last = number, state
        numbers = self.check()
        if number > 1 and number - 1 not in numbers:
            # The states were dropped meanwhile, and another process may have begun with the first number.
            self._storage.delete(_path(number))
            raise self._overtaken()
        self._storage.write(f"{FOLDER}/{_COPY}", data)
        # Another process may have listed the last but one, and be about to read it.
        for old in numbers[:-2]:
            self._storage.delete(_path(old))

    def check(self) -> list[int]:
        """Return the numbers of all states. Raises StateError if the last one is not this process's."""
        with self._lock:
            numbers, number = _numbers(self._storage), self._number
        if max(numbers, default=0) != number:
            raise self._overtaken()
        return numbers

    def _overtaken(self) -> StateError:
        return StateError(
            f"another process has replicated to {self._storage.uri}, or dropped it, since this process wrote there: "
            "this process was suspended, or two processes run at the same time; this process exits",
            code="DESTINATION_HAS_WRITER",
        )


def _path(number: int) -> str:
    return f"{FOLDER}/{_STATES}/{number:020}.json"


def _numbers(storage: Storage) -> list[int]:
    names = storage.names(f"{FOLDER}/{_STATES}", "")
    return [int(name.removesuffix(".json")) for name in names if re.fullmatch(r"\d{20}\.json", name)]


def _last(storage: Storage) -> tuple[int, State]:
    while numbers := _numbers(storage):
        name = _path(numbers[-1]).removeprefix(f"{FOLDER}/")
        state = read_file(storage, name, State.of)
        if state is not None:
            return numbers[-1], state
        # The state was deleted meanwhile, after later states.

    if storage.read(f"{FOLDER}/{_COPY}") is not None:
        if _numbers(storage):
            # The first state was written meanwhile.
            return _last(storage)
        copy = storage.uri_of(f"{FOLDER}/{_COPY}")
        raise MalformedFileError(f"{copy} is damaged: it copies the last file in {_STATES}, which has no files")
    return 0, State()


def read_file(storage: Storage, name: str, parser: Callable[[dict[str, Any]], _Result]) -> _Result | None:
    """Return the parsed content of a file; None without a file. Raises StateError (another format) or
    MalformedFileError."""

    def parse(content: Any) -> _Result:
        if content["format"] != FORMAT:
            raise StateError(
                f"{storage.uri_of(f'{FOLDER}/{name}')} has the format {content['format']!r:.20}, which this version "
                "does not read: use the version that wrote it, or replicate to another destination",
                code="DESTINATION_FORMAT",
            )
        return parser(content)

    return storage.parse(f"{FOLDER}/{name}", parse)
