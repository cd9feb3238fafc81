"""The options of the data source: what each is, how it is read, and what the documentation says of it, once."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from logicalrep.postgres.connection import PARAMETERS, ConnectionSettings, settings_from
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.preflight.findings import Needs
from logicalrep.postgres.snapshots import Snapshot
from logicalrep.spark import option_kinds as kinds
from logicalrep.spark.option_kinds import Given, Option, OptionError, option
from logicalrep.transactions.table_names import TableName
from logicalrep.values import TypeCatalog
from logicalrep_protocol.versions import PARSE

__all__ = ["OF_THE_FEED", "OptionError", "SourceOptions", "read_options"]

_NEWEST = max(PARSE)
# The end of a batch is at the start of a page, of which there are as large ones.
_WAL_PAGE = 64 << 10
# As much of the feed as sockets hold for Spark while it makes rows of what came before: a larger record batch would
# keep its writer waiting. Messages of other tables are no rows of a typed table: it takes more of them.
_ROWS, _ROWS_OF_A_TABLE = 10_000, 30_000
OF_THE_FEED = ("tables", "relations", "messages", "values")
"""The options of the change feed that a typed table has not."""
# What Spark itself puts among the options.
_OF_SPARK = ("paths", "header", "inferschema")


def _rows(given: Given, name: str) -> int:
    default = _ROWS_OF_A_TABLE if "table" in given else _ROWS
    return kinds.count(default, 1)(given, name)  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """The options, each with its type."""

    connection: ConnectionSettings
    """What `dsn` and libpq's parameters say."""
    slot: str | None = option(
        "slot",
        kinds.text,
        "The replication slot. One query, one slot.",
    )
    publications: tuple[str, ...] = option(
        "publication",
        kinds.names,
        "The publication, or several with commas.",
    )
    create_slot: bool = option(
        "create_slot",
        kinds.flag,
        "Make the slot at the first start of a query. A slot that is gone later is an error all the same. "
        "From PostgreSQL 19 on the first one of a server waits for a checkpoint.",
        default="`false`",
    )
    failover: bool = option(
        "failover",
        kinds.flag,
        "Make the slot one that standbys keep too (PostgreSQL 17), see [spark.md](spark.md).",
        default="`false`",
    )
    mode: Literal["peek", "walsender"] = option(
        "mode",
        kinds.choice("peek", "walsender"),
        "`peek` or `walsender`, see [spark.md](spark.md).",
        default="`peek`",
    )
    decoding_sessions: int = option(
        "decoding_sessions",
        kinds.count(2, 1, 16),
        "peek only: how many sessions of the server decode a long batch at the same time, 1 to 16; one with "
        "`relations`.",
        default="`2`",
    )
    table: TableName | None = option(
        "table",
        kinds.one_table,
        "One table, as `schema.table`, in its own columns and types. Names are written as in SQL, here and in "
        '`tables`: `"Shop"."order lines"` has what is not in small letters in quotes; the schema is `public` '
        "where there is none. Of a partitioned table a partition, unless one of the publications that are "
        "read has it with `publish_via_partition_root`.",
    )
    tables: tuple[TableName, ...] = option(
        "tables",
        kinds.tables,
        "The tables whose changes are in the feed, with commas, partitions as for `table`; messages are of "
        "none and not left out by it.",
        default="all",
    )
    messages: bool = option(
        "messages",
        kinds.flag,
        "Logical messages too (PostgreSQL 14). A capture has them if its session had.",
        default="`false`",
    )
    relations: bool = option(
        "relations",
        kinds.flag,
        "A row for each description of a table that differs from the last.",
        default="`false`",
    )
    origin: Literal["any", "none"] | None = option(
        "origin",
        kinds.choice(None, "any", "none"),
        "`none` leaves out what was replayed from another server (PostgreSQL 16).",
        default="`any`",
    )
    values: Literal["map", "variant"] = option(
        "values",
        kinds.choice("map", "variant"),
        "What `before` and `after` are: `map<string,string>`, or `variant`, an object of the same texts.",
        default="`map`",
    )
    new_columns: Literal["error", "null"] = option(
        "new_columns",
        kinds.choice("error", "null"),
        "`null`: a typed table's column that a row's table did not have is NULL.",
        default="`error`",
    )
    text_columns: tuple[str, ...] = option(
        "text_columns",
        kinds.names,
        "Columns of a typed table, with commas, that are strings as the server sends them, whatever their types.",
        default="none",
    )
    protocol_version: int | None = option(
        "protocol_version",
        kinds.count(None, 1, _NEWEST),
        "1 to 4.",
        default="the newest of both",
    )
    binary: bool = option(
        "binary",
        kinds.flag,
        "Values in binary format (PostgreSQL 14). What comes out is the same, but OIDs for `regclass` and its "
        "like. money, aclitem, ranges made with CREATE TYPE, and types of extensions that "
        "[types.md](types.md) does not list cannot be read so.",
        default="`false`",
    )
    streaming: Literal["off", "on", "parallel"] | None = option(
        "streaming",
        kinds.choice(None, "off", "on", "parallel"),
        "walsender only: `off`, `on`, `parallel`.",
        default="what the protocol has",
    )
    two_phase: bool = option(
        "two_phase",
        kinds.flag,
        "walsender only (PostgreSQL 15): make the slot with two_phase, see [spark.md](spark.md). A slot without "
        "gets it, for good.",
        default="`false`",
    )
    max_changes: int | None = option(
        "max_changes_per_batch",
        kinds.count(None, 1),
        "Ends a batch at the last transaction, or message that belongs to none, that keeps within it. A "
        "larger transaction is a batch alone. peek counts the changes of all published tables, walsender the "
        "rows that are read.",
        default="none",
    )
    max_bytes: int | None = option(
        "max_bytes_per_batch",
        kinds.count(None, 1),
        "The same in bytes of messages; of rows, where a walsender's are made one by one.",
        default="none",
    )
    max_wal: int | None = option(
        "max_wal_per_batch",
        kinds.count(None, _WAL_PAGE),
        "The same in bytes of the server's WAL, of all that is written to it: see [spark.md](spark.md).",
        default="`256m`; with Spark 4.0 and 4.1 none",
    )
    poll_interval: float = option(
        "poll_interval",
        kinds.seconds(0.1),
        "How often to look for changes at most, in seconds.",
        default="`0.1`",
    )
    idle_advance_bytes: int = option(
        "idle_advance_bytes",
        kinds.count(16 << 20, 1),
        "After so much WAL without changes of ours an empty batch lets the server remove it.",
        default="`16m`",
    )
    retry_timeout: float = option(
        "retry_timeout",
        kinds.seconds(60),
        "How long to go on trying while the server is away, in seconds from the first failure since something "
        "was read. Of connections that a process has yet to make once, one that the server answers and "
        "refuses is tried for ten seconds, and a password that it refuses once.",
        default="`60`",
    )
    rows_per_record_batch: int = option(
        "rows_per_record_batch",
        _rows,
        "Rows, or messages of all tables, of an Arrow record batch; fewer where they have more than 4 MiB, or "
        "16 where they are made row by row.",
        default="`10000`; with `table` `30000`",
    )
    spool: Path | None = option(
        "spool",
        kinds.folder,
        "walsender only: the folder for segments, made where it is not there. It must be the user's own, "
        "closed to writing by others, and no link, which the driver and the executors look at before each "
        "use: executors must see it, and run as the driver's user. What killed processes of the same host "
        "left there is removed by the next start.",
        default="`logicalrep-` and the user's number in the system's temporary folder",
    )
    segment_bytes: int = option(
        "segment_bytes",
        kinds.count(32 << 20, 1),
        "walsender only: a segment's size. A segment is a task.",
        default="`32m`",
    )
    spool_bytes: int = option(
        "spool_bytes",
        kinds.count(8 << 30, 1),
        "walsender only: with so much in the spool the receiver waits for Spark.",
        default="`8g`",
    )
    memory_limit: int = option(
        "memory_limit",
        kinds.count(64 << 20, 0),
        "What the changes of open transactions may take; the rest is in temporary files.",
        default="`64m`",
    )
    snapshot: Snapshot | None = option(
        "snapshot",
        kinds.snapshot,
        "`spark.read` with `table` only: the rows that the table had where the slot begins, see [spark.md](spark.md).",
    )
    path: str | None = option(
        "path",
        kinds.text,
        "`spark.read` only: capture files and segments, a folder (of `.jsonl` and `.bin`, with or without "
        "`.gz`, and `.arrow`), a pattern, or several with commas. Of captures that do not say how their "
        "session was set up, `protocol_version`, `streaming` and `two_phase` do.",
    )
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


OPTIONS: tuple[tuple[str, Option], ...] = tuple(
    (each.name, each.metadata["option"]) for each in fields(SourceOptions) if "option" in each.metadata
)
"""The options, each after the name of the field that holds it."""
_NAMES = ("dsn", *(known.name for _, known in OPTIONS), *PARAMETERS)


def read_options(given: Mapping[str, str]) -> SourceOptions:
    """Return the options that are given, their names in any case; OptionError says which one is wrong and why."""
    options = {name.lower(): value for name, value in given.items() if name.lower() not in _OF_SPARK}
    for name in options:
        if name not in _NAMES:
            near = difflib.get_close_matches(name, _NAMES, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(sorted(_NAMES))}"
            raise OptionError(f"option {name!r} is unknown{hint}")
    _refuse_visible_password(options)
    _refuse_what_does_nothing(options)
    values: dict[str, Any] = {held_by: known.read(options, known.name) for held_by, known in OPTIONS}
    return SourceOptions(connection=settings_from(options), **values)


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


_OF_LIBPQ = (
    "libpq's parameters by their names, over those of `dsn`. The environment is that in which Spark's driver and "
    "executors were started. So is the file of passwords, `~/.pgpass` or what `PGPASSFILE` names: executors need it "
    "too."
)
_PAGE = """# Options of the Spark source

Flags are `true` or `false`; whole numbers may end in `k`, `m` or `g`, for 1024 and its powers. [spark.md](spark.md)
explains the modes, batches and snapshots.

| option | default | |
| --- | --- | --- |
| `dsn` | | libpq's connection string or URI. Without a password in a URI: Spark shows options in plans. |
| `host`, `port`, `dbname`, `user`, `password`, `sslmode`, … | libpq's environment | {} |
{}
An option that is none of these is an error, and so is one of the change feed beside `table`, one of a typed table
without it, and `streaming` or `two_phase` with a stream by `peek`.
"""


def page() -> str:
    """Return the documentation's page of all options, as Markdown."""
    lines = [f"| `{known.name}` | {known.default} | {known.doc} |\n" for _, known in OPTIONS]
    return _PAGE.format(_OF_LIBPQ, "".join(lines)).replace("|  |", "| |")
