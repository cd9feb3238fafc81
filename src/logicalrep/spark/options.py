"""The options of the data source: the type, reader, default and documentation of each option, in one table."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from logicalrep.options import kinds
from logicalrep.options.kinds import Option, OptionError, OptionTexts, option
from logicalrep.postgres.connection import PARAMETERS, ConnectionSettings, settings_from
from logicalrep.postgres.plugin_options import PluginOptions, Streaming, most_streaming
from logicalrep.postgres.preflight.findings import Needs
from logicalrep.postgres.snapshots import Snapshot
from logicalrep.transactions.table_names import TableName
from logicalrep.values import TypeCatalog
from logicalrep_protocol.versions import PARSE

__all__ = ["FEED_OPTIONS", "OptionError", "SourceOptions", "read_options"]

_NEWEST = max(PARSE)
# The largest WAL page of a server: a batch ends at the start of a page.
_WAL_PAGE = 64 << 10
# A socket to Spark buffers a record batch of this size while Spark reads the previous batch; a larger batch would
# block its writer. A typed table takes more messages, as other tables' messages become no rows.
_ROWS, _ROWS_OF_A_TABLE = 10_000, 30_000
FEED_OPTIONS = ("tables", "relations", "messages")
"""Options of the change feed, which a typed table does not have."""
# The options that Spark adds by itself.
_OF_SPARK = ("paths", "header", "inferschema")


def _rows(texts: OptionTexts, name: str) -> int:
    default = _ROWS_OF_A_TABLE if "table" in texts else _ROWS
    return kinds.count(default, 1)(texts, name)  # type: ignore[no-any-return]


def _snapshot(texts: OptionTexts, name: str) -> Snapshot | None:
    if name not in texts:
        return None
    try:
        return Snapshot.parse(texts[name])
    except ValueError:
        raise OptionError(
            f"option {name!r} is {texts[name]!r}; expected the text from logicalrep.spark.snapshot(...)"
        ) from None


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    connection: ConnectionSettings
    slot: str | None = option(kinds.text, "The replication slot. Each query needs a slot of its own.")
    publications: tuple[str, ...] = option(
        kinds.names, "The publication, or several, separated by commas.", name="publication"
    )
    create_slot: bool = option(
        kinds.flag,
        "Create the slot at the first start of a query. If the slot disappears later, the query fails. "
        "From PostgreSQL 19 on, creating a server's first slot waits for a checkpoint.",
    )
    failover: bool = option(
        kinds.flag,
        "Create the slot so that [standbys keep it too](../how-to/spark-queries.md#failover) (PostgreSQL 17).",
    )
    mode: Literal["auto", "peek", "walsender"] = option(
        kinds.choice("auto", "peek", "walsender"),
        "`auto`, `peek` or `walsender`, see [the modes](../explanation/spark-modes.md).",
    )
    decoding_sessions: int = option(
        kinds.count(2, 1, 16),
        "In the mode `peek`: the number of server sessions that decode a long batch in parallel, 1 to 16. Always "
        "one session with `relations`.",
    )
    table: TableName | None = option(
        kinds.one_table,
        "Read one table, as `schema.table`, in its own columns and types. Here and in `tables`, write names "
        'as in SQL: quote names that are not in lower case, as in `"Shop"."order lines"`; the default schema is '
        "`public`. For a partitioned table name a partition, unless one of the publications has the table with "
        "`publish_via_partition_root`.",
    )
    tables: tuple[TableName, ...] = option(
        kinds.tables,
        "The tables in the feed, separated by commas; for partitions see `table`. Logical messages belong to "
        "no table and are not filtered.",
        default="all",
    )
    messages: bool = option(
        kinds.flag, "Also read logical messages (PostgreSQL 14). A capture contains them if its session requested them."
    )
    relations: bool = option(
        kinds.flag, "Add a row for each description of a table that differs from the previous description."
    )
    origin: Literal["any", "none"] | None = option(
        kinds.choice(None, "any", "none"),
        "`none` leaves out changes that were replayed from another server (PostgreSQL 16).",
        default="`any`",
    )
    new_columns: Literal["error", "null"] = option(
        kinds.choice("error", "null"),
        "With `null`, a typed table's new column is NULL in rows that were written without it.",
    )
    text_columns: tuple[str, ...] = option(
        kinds.names,
        "Columns of a typed table, separated by commas, to read as the strings that the server sends.",
        default="none",
    )
    protocol_version: int | None = option(
        kinds.count(None, 1, _NEWEST),
        "The version of the protocol, 1 to 4.",
        default="the newest version that the server supports too",
    )
    binary: bool = option(
        kinds.flag,
        "Request values in binary format (PostgreSQL 14). The results are the same, except that `regclass` and "
        "similar types become OIDs. It does not support money, aclitem, ranges from CREATE TYPE, and those extension "
        "types that [types.md](types.md) does not list.",
    )
    streaming: Streaming | None = option(
        kinds.choice(None, "off", "on", "parallel"),
        "`mode = walsender` only: `off`, `on`, `parallel`; the last two need a folder, see `spool`.",
        default="with `spool` and without `messages` the protocol version's best, else `off`",
    )
    two_phase: bool = option(
        kinds.flag,
        "Not with `mode = peek` (PostgreSQL 15): create the slot with two_phase, for [prepared "
        "transactions](../explanation/spark-guarantees.md#prepared-transactions). An existing slot without it "
        "gets it permanently.",
    )
    max_changes: int | None = option(
        kinds.count(None, 1),
        "The largest number of changes in a batch, which ends after a transaction or a message outside of "
        "transactions. A larger transaction becomes a batch of its own. peek counts the changes of all published "
        "tables, walsender counts the rows that are read.",
        default="none",
        name="max_changes_per_batch",
    )
    max_bytes: int | None = option(
        kinds.count(None, 1),
        "The same limit in bytes of messages, or of rows where the source builds a walsender's rows one by one.",
        default="none",
        name="max_bytes_per_batch",
    )
    max_wal: int | None = option(
        kinds.count(None, _WAL_PAGE),
        "The same limit in bytes of the server's WAL, including WAL without changes for this query.",
        default="`256m`; with Spark 4.0 and 4.1 none",
        name="max_wal_per_batch",
    )
    target_seconds: float = option(
        kinds.seconds(30),
        "The target duration of a batch in seconds. After a longer batch the source gives the next batches less WAL, "
        "if less WAL takes less time; it gives them more WAL once they take less than half of the target.",
        name="target_seconds_per_batch",
    )
    poll_interval: float = option(kinds.seconds(0.1), "The shortest time between two queries for changes, in seconds.")
    idle_advance_bytes: int = option(
        kinds.count(16 << 20, 1),
        "The bytes of WAL without changes for this query after which an empty batch lets the server remove this WAL.",
        default="`16m`",
    )
    retry_timeout: float = option(
        kinds.seconds(60),
        "The longest time for retries while the server does not answer, in seconds since the first failure after the "
        "last success. If a process has never connected with these settings, it retries for ten seconds when the "
        "server refuses the connection, and not at all when it refuses the password.",
    )
    rows_per_record_batch: int = option(
        _rows,
        "The number of rows, or of messages of all tables, in an Arrow record batch. A batch has fewer rows if they "
        "exceed 4 MiB, or 16 MiB where the source builds rows one by one.",
        default="`10000`; with `table` `30000`",
    )
    spool: Path | None = option(
        kinds.folder,
        "A folder for the rows that a walsender receives, which driver and executors share: the rows then travel in "
        "segment files, not in the executors' tasks. The driver creates an absent folder. The folder must belong to "
        "the user, must not be writable by other users, and must not be a link; the driver and the executors check "
        "this before each use. "
        "Executors must see the folder and run as the driver's user. The next start removes the files of "
        "killed processes of the same host.",
        default="none; with `two_phase`, and with `mode = walsender` and `streaming` or `relations`, `logicalrep-` and "
        "the user's number in the system's temporary folder",
    )
    segment_bytes: int = option(
        kinds.count(32 << 20, 1),
        "With `spool`: the size of a segment in bytes. Each segment is a task.",
        default="`32m`",
    )
    spool_bytes: int = option(
        kinds.count(8 << 30, 1), "The size of the spool in bytes at which the receiver waits for Spark.", default="`8g`"
    )
    memory_limit: int = option(
        kinds.count(64 << 20, 0),
        "The memory for the changes of open transactions in bytes; further changes go to temporary files.",
        default="`64m`",
    )
    listen: str | None = option(
        kinds.address,
        "Streams only: serve the query's [metrics](metrics.md) for Prometheus at `http://HOST:PORT/metrics`, from the "
        "driver. A port alone means 127.0.0.1; port 0 is any free port, which the log names. See "
        "[Monitoring](../how-to/spark-monitoring.md).",
        default="none",
    )
    snapshot: Snapshot | None = option(
        _snapshot,
        "`spark.read` with `table` only: read the table's rows at the start of the slot, see "
        "[copies of tables](../how-to/spark-copies.md).",
    )
    path: str | None = option(
        kinds.text,
        "`spark.read` only: capture files, a folder (with files `.jsonl` and `.bin`, perhaps with `.gz`), a pattern, "
        "or several, separated by commas. `protocol_version`, `streaming` and `two_phase` apply to captures without a "
        "header.",
    )
    catalog: TypeCatalog = field(default_factory=TypeCatalog)
    """The catalog's entries for the table's types, if the server was asked; not an option."""
    relation_id: int | None = None
    """The OID of `table`, if a stream knows it; not an option."""

    @property
    def the_slot(self) -> str:
        if self.slot is None:
            raise OptionError("option 'slot' is missing: the name of the replication slot to read from")
        return self.slot

    @property
    def needs(self) -> Needs:
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

    @property
    def uses_spool(self) -> bool:
        """Whether a walsender's rows travel through a folder; without a folder, peek must read large transactions."""
        must = self.two_phase or self.streaming in ("on", "parallel") or self.relations
        return self.spool is not None or (self.mode == "walsender" and must)

    def plugin_options(self, newest_protocol: int) -> PluginOptions:
        version = self.protocol_version or newest_protocol
        streaming: Streaming = self.streaming or "off"
        # Only a streaming session numbers the messages of rolled-back savepoints.
        if self.mode == "walsender" and self.streaming is None and self.uses_spool and not self.messages:
            streaming = most_streaming(version)
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
        wanted = self.tables if self.table is None else (self.table,)
        return not wanted or (schema, name) in wanted


_OPTIONS: dict[str, tuple[str, Option]] = {
    field.name: (field.metadata["option"].name or field.name, field.metadata["option"])
    for field in fields(SourceOptions)
    if "option" in field.metadata
}
_NAMES = ("dsn", *(name for name, _ in _OPTIONS.values()), *PARAMETERS)


def read_options(texts: Mapping[str, str]) -> SourceOptions:
    options = {name.lower(): value for name, value in texts.items() if name.lower() not in _OF_SPARK}
    for name in options:
        if name not in _NAMES:
            near = difflib.get_close_matches(name, _NAMES, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; the options are {', '.join(sorted(_NAMES))}"
            raise OptionError(f"option {name!r} is unknown{hint}")
    _refuse_visible_password(options)
    _refuse_ineffective(options)
    values: dict[str, Any] = {field: option.read(options, name) for field, (name, option) in _OPTIONS.items()}
    return SourceOptions(connection=settings_from(options), **values)


def _refuse_visible_password(options: Mapping[str, str]) -> None:
    """Refuse a password that Spark would show in plans: Spark hides only options with the word password."""
    dsn = options.get("dsn", "")
    if "password" not in dsn.lower() and settings_from({"dsn": dsn}).has_password:
        raise OptionError(
            "option 'dsn' is a URI with a password, which Spark would show in plans: put it in the option 'password', "
            "in PGPASSWORD or in a password file"
        )


def _refuse_ineffective(options: Mapping[str, str]) -> None:
    if "table" in options:
        for name in FEED_OPTIONS:
            if name in options:
                raise OptionError(f"option {name!r} is for the change feed, and 'table' reads one table: remove one")
    else:
        for name in ("new_columns", "text_columns"):
            if name in options:
                raise OptionError(f"option {name!r} is for a typed table: name the table in the option 'table'")
        if "snapshot" in options:
            raise OptionError("option 'snapshot' reads the rows of one table: name the table in the option 'table'")
    if "path" in options and "snapshot" in options:
        raise OptionError("option 'path' reads captures, and 'snapshot' a server: remove one")


_OF_LIBPQ = (
    "libpq's parameters by name, which override the parameters in `dsn`. Spark's driver and its executors each read "
    "their own environment variables and password file (`~/.pgpass`, or the file in `PGPASSFILE`): executors need them "
    "too."
)
_PAGE = """# Options of the Spark source

Flags are `true` or `false`; whole numbers may end in `k`, `m` or `g`, for 1024 and its powers.
See [The Spark source](../how-to/spark.md).

| option | default | meaning |
| --- | --- | --- |
| `dsn` | | libpq's connection string or URI. A URI must not contain a password, as Spark shows options in plans. |
| `host`, `port`, `dbname`, `user`, `password`, `sslmode`, … | libpq's environment | {} |
{}
It is an error to set any other option, an option of the change feed together with `table`, an option of a typed table
without `table`, or `streaming` or `two_phase` for a stream with `mode = peek`.
"""


def page() -> str:
    lines = [f"| `{name}` | {option.default} | {option.doc} |\n" for name, option in _OPTIONS.values()]
    return _PAGE.format(_OF_LIBPQ, "".join(lines)).replace("|  |", "| |")
