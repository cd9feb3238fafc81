"""The options of the data source, read once and checked: an unknown one is an error, as it would do nothing."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from logicalrep.postgres.connection import PARAMETERS, ConnectionSettings, settings_from
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.preflight.findings import Needs
from logicalrep.postgres.snapshots import Snapshot
from logicalrep.transactions.table_names import TableName, TableNameError, table_names
from logicalrep.values import TypeCatalog
from logicalrep_runtime.errors import LogicalRepError

_NAMES = (
    "dsn",
    "slot",
    "publication",
    "tables",
    "table",
    "mode",
    "protocol_version",
    "binary",
    "messages",
    "relations",
    "origin",
    "two_phase",
    "streaming",
    "create_slot",
    "failover",
    "decoding_sessions",
    "values",
    "new_columns",
    "text_columns",
    "max_changes_per_batch",
    "max_bytes_per_batch",
    "max_wal_per_batch",
    "poll_interval",
    "idle_advance_bytes",
    "retry_timeout",
    "rows_per_record_batch",
    "spool",
    "segment_bytes",
    "spool_bytes",
    "memory_limit",
    "path",
    "snapshot",
    *PARAMETERS,
)
# As much of the feed as sockets hold for Spark while it makes rows of what came before: a larger record batch would
# keep its writer waiting. Messages of other tables are no rows of a typed table: it takes more of them.
_ROWS, _ROWS_OF_A_TABLE = 10_000, 30_000
OF_THE_FEED = ("tables", "relations", "messages", "values")
"""The options of the change feed that a typed table has not."""
# What Spark itself puts among the options.
_OF_SPARK = ("paths", "header", "inferschema")


class OptionError(LogicalRepError, ValueError):
    """An option that is unknown, missing, or has a value that it does not take."""

    code = "OPTION_INVALID"


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """The options, each with its type; `LogicalRepDataSource` says what they mean."""

    connection: ConnectionSettings
    slot: str | None
    publications: tuple[str, ...]
    tables: tuple[TableName, ...]
    table: TableName | None
    mode: Literal["peek", "walsender"]
    protocol_version: int | None
    binary: bool
    messages: bool
    relations: bool
    origin: Literal["any", "none"] | None
    two_phase: bool
    streaming: Literal["off", "on", "parallel"] | None
    create_slot: bool
    failover: bool
    decoding_sessions: int
    values: Literal["map", "variant"]
    new_columns: Literal["error", "null"]
    text_columns: tuple[str, ...]
    max_changes: int | None
    max_bytes: int | None
    max_wal: int | None
    poll_interval: float
    idle_advance_bytes: int
    retry_timeout: float
    rows_per_record_batch: int
    spool: Path | None
    """The folder for spools; None: the user's own among the temporary files."""
    segment_bytes: int
    spool_bytes: int
    memory_limit: int
    path: str | None
    snapshot: Snapshot | None
    catalog: TypeCatalog = field(default_factory=TypeCatalog)
    """No option: what the server's catalog says of the types of the table, known where the server was asked."""
    relation_id: int | None = None
    """No option: the OID of `table`, where a stream knows it."""

    @property
    def the_slot(self) -> str:
        """The slot; OptionError if none is named."""
        if self.slot is None:
            raise OptionError("option 'slot' is missing: the name of the replication slot to read from")
        return self.slot

    @property
    def needs(self) -> Needs:
        """What the reader needs of the server."""
        if not self.publications:
            raise OptionError("option 'publication' is missing: the publication to read, or several with commas")
        return Needs(
            slot=self.the_slot,
            publications=self.publications,
            mode=self.mode,
            create_slot=self.create_slot,
            failover=self.failover,
            protocol_version=self.protocol_version,
            messages=self.messages,
            origin=self.origin,
            two_phase=self.two_phase,
            streaming=self.streaming,
            binary=self.binary,
            tables=self.tables if self.table is None else (self.table,),
        )

    def plugin_options(self, newest_protocol: int) -> PluginOptions:
        """pgoutput's options, for a server that speaks versions up to this."""
        version = self.protocol_version or newest_protocol
        streaming: Literal["off", "on", "parallel"] = "off"
        if self.mode == "walsender":
            streaming = self.streaming or ("off" if version < 2 else "on" if version < 4 else "parallel")
        return PluginOptions(
            publication_names=self.publications,
            proto_version=version,
            binary=self.binary,
            messages=self.messages,
            origin=self.origin,
            streaming=streaming,
            two_phase=self.two_phase,
        )

    def reads(self, schema: str, name: str) -> bool:
        """Whether the changes of a table are wanted."""
        wanted = self.tables if self.table is None else (self.table,)
        return not wanted or (schema, name) in wanted


def read_options(given: Mapping[str, str]) -> SourceOptions:
    """The options as given, names in any case; OptionError says which one is wrong and why."""
    options = {name.lower(): value for name, value in given.items() if name.lower() not in _OF_SPARK}
    for name in options:
        if name not in _NAMES:
            near = difflib.get_close_matches(name, _NAMES, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(sorted(_NAMES))}"
            raise OptionError(f"option {name!r} is unknown{hint}")
    _refuse_visible_password(options)
    _refuse_what_does_nothing(options)
    slot = options.get("slot")
    spool = options.get("spool")
    return SourceOptions(
        connection=settings_from(options),
        slot=slot,
        publications=_list(options, "publication"),
        tables=_tables(options, "tables"),
        table=_table(options),
        mode=cast(Literal["peek", "walsender"], _choice(options, "mode", ("peek", "walsender"))),
        protocol_version=_count(options, "protocol_version", None, 1, 4),
        binary=_flag(options, "binary"),
        messages=_flag(options, "messages"),
        relations=_flag(options, "relations"),
        origin=cast(Literal["any", "none"] | None, _choice(options, "origin", (None, "any", "none"))),
        two_phase=_flag(options, "two_phase"),
        streaming=cast(
            Literal["off", "on", "parallel"] | None,
            _choice(options, "streaming", (None, "off", "on", "parallel")),
        ),
        create_slot=_flag(options, "create_slot"),
        failover=_flag(options, "failover"),
        decoding_sessions=_count(options, "decoding_sessions", 2, 1, 16) or 0,
        values=cast(Literal["map", "variant"], _choice(options, "values", ("map", "variant"))),
        new_columns=cast(Literal["error", "null"], _choice(options, "new_columns", ("error", "null"))),
        text_columns=_list(options, "text_columns"),
        max_changes=_count(options, "max_changes_per_batch", None, 1),
        max_bytes=_count(options, "max_bytes_per_batch", None, 1),
        # The end of a batch is at the start of a page, of which there are as large ones.
        max_wal=_count(options, "max_wal_per_batch", None, 64 << 10),
        poll_interval=_seconds(options, "poll_interval", 0.1),
        idle_advance_bytes=_count(options, "idle_advance_bytes", 16 << 20, 1) or 0,
        retry_timeout=_seconds(options, "retry_timeout", 60),
        rows_per_record_batch=_count(
            options, "rows_per_record_batch", _ROWS_OF_A_TABLE if "table" in options else _ROWS, 1
        )
        or 0,
        # As the executors are to find it, whatever their own folders are.
        spool=Path(os.path.abspath(spool)) if spool else None,
        segment_bytes=_count(options, "segment_bytes", 32 << 20, 1) or 0,
        spool_bytes=_count(options, "spool_bytes", 8 << 30, 1) or 0,
        memory_limit=_count(options, "memory_limit", 64 << 20, 0) or 0,
        path=options.get("path"),
        snapshot=_snapshot(options),
    )


def _refuse_visible_password(options: Mapping[str, str]) -> None:
    """Spark shows options in plans; it hides those that have the word password in their name or value."""
    dsn = options.get("dsn", "")
    if "password" not in dsn.lower() and settings_from({"dsn": dsn}).has_password:
        raise OptionError(
            "option 'dsn' is a URI with a password in it, which Spark would show in plans: give it as the option "
            "'password', in PGPASSWORD or in a password file"
        )


def _refuse_what_does_nothing(options: Mapping[str, str]) -> None:
    """What would be taken for something that is done."""
    if "table" in options:
        for name in OF_THE_FEED:
            if name in options:
                raise OptionError(f"option {name!r} is for the change feed, and 'table' reads one table: leave one out")
    else:
        for name in ("new_columns", "text_columns"):
            if name in options:
                raise OptionError(f"option {name!r} is for a typed table: name that in the option 'table'")
        if "snapshot" in options:
            raise OptionError("option 'snapshot' reads the rows of one table: name that in the option 'table'")
    if "path" in options and "snapshot" in options:
        raise OptionError("option 'path' reads captures, and 'snapshot' a server: leave one out")


def _list(options: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in options.get(name, "").split(",") if part.strip())


def _tables(options: Mapping[str, str], name: str) -> tuple[TableName, ...]:
    if not options.get(name, "").strip():
        return ()
    try:
        return tuple(table_names(options[name]))
    except TableNameError as error:
        raise OptionError(f"option {name!r}: {error.description}") from None


def _table(options: Mapping[str, str]) -> TableName | None:
    tables = _tables(options, "table")
    if "table" in options and len(tables) != 1:
        raise OptionError(f"option 'table' is {options['table']!r}; expected one table, as schema.table")
    return tables[0] if tables else None


def _choice(options: Mapping[str, str], name: str, choices: tuple[str | None, ...]) -> str | None:
    value = options.get(name, choices[0])
    if value is not None:
        value = value.lower()
    if value not in choices:
        raise OptionError(f"option {name!r} is {value!r}; expected one of {', '.join(filter(None, choices))}")
    return value


def _snapshot(options: Mapping[str, str]) -> Snapshot | None:
    if "snapshot" not in options:
        return None
    try:
        return Snapshot.parse(options["snapshot"])
    except ValueError:
        raise OptionError(
            f"option 'snapshot' is {options['snapshot']!r}; expected what snapshot(...) of this package gives"
        ) from None


def _flag(options: Mapping[str, str], name: str) -> bool:
    return _choice(options, name, ("false", "true")) == "true"


def _count(
    options: Mapping[str, str], name: str, default: int | None, least: int, most: int | None = None
) -> int | None:
    if name not in options:
        return default
    text = options[name].strip()
    units = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
    digits, unit = (text[:-1], units[text[-1].lower()]) if text[-1:].lower() in units else (text, 1)
    if not digits.isdecimal() or int(digits) * unit < least or (most is not None and int(digits) * unit > most):
        upto = f" to {most}" if most is not None else ", with k, m or g for larger units"
        raise OptionError(f"option {name!r} is {options[name]!r}; expected a number from {least}{upto}")
    return int(digits) * unit


def _seconds(options: Mapping[str, str], name: str, default: float) -> float:
    try:
        value = float(options.get(name, default))
    except ValueError:
        value = -1
    if not 0 <= value < 1e6:
        raise OptionError(f"option {name!r} is {options[name]!r}; expected a number of seconds")
    return value
