"""The options of `replicate`, for Python, the command line, files and docs/reference/replicate-options.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from logicalrep.options import kinds
from logicalrep.options.extras import find_missing, installing
from logicalrep.options.kinds import Option, OptionError, OptionTexts, option, read_value
from logicalrep.pipeline.limits import LEAST_MEMORY, Limits
from logicalrep.pipeline.schema.table_formats import FORMATS, FormatName
from logicalrep.pipeline.storage.uris import is_folder
from logicalrep.transactions.table_names import TableNameError, TableSelection

if TYPE_CHECKING:
    # Imported late: the command line's help needs the table, but not the packages of these modules.
    from logicalrep.pipeline.config.config import Config
    from logicalrep.pipeline.config.nodes import TablesOfDatabase
    from logicalrep.postgres.connection import ConnectionSettings


def _tables(texts: OptionTexts, name: str) -> tuple[str, ...]:
    """Return the tables and patterns of a comma-separated text, each as in SQL with its schema. Raises OptionError."""
    try:
        selection = TableSelection.of([texts[name]] if texts.get(name, "").strip() else [])
    except TableNameError as error:
        raise OptionError(f"option {name!r}: {error.description}") from None
    return tuple(map(str, (*selection.names, *selection.patterns)))


@dataclass(frozen=True)
class ReplicateOptions:
    """The arguments of `replicate`. Raises OptionError for an invalid value.

    Example:
        >>> ReplicateOptions("dbname=shop", "./lake", once=True)
    """

    dsn: str | ConnectionSettings = field(
        repr=False,
        metadata={
            "doc": "The server: a connection string or URI of libpq, or ConnectionSettings; libpq's environment "
            "variables, such as PGHOST and PGPASSWORD, apply."
        },
    )
    to: str = field(
        metadata={
            "doc": "The destination: a folder, or an object store's URI. `schema.table` is the Delta table "
            "`to/schema/table`."
        }
    )
    _: KW_ONLY
    publication: str | None = option(
        kinds.text, "The publication.", default="a new one for the destination", metavar="NAME"
    )
    slot: str | None = option(
        kinds.text, "The replication slot.", default="a new one for the destination", metavar="NAME"
    )
    failover: bool = option(
        kinds.flag, "Synchronize the slot to standbys, so that it survives a failover (PostgreSQL 17 and later)."
    )
    on_lost_slot: Literal["error", "resync"] = option(
        kinds.choice("error", "resync"),
        "The action if the slot is lost, or the server lacks its WAL: `error` ends the run; `resync` creates a new "
        "slot and reloads all tables, at most three times a day.",
    )
    tables: Iterable[str] = option(
        _tables,
        "Replicate only these tables: `schema.table`, or `table`, as in SQL; `*` stands for any text, as in `sales.*`. "
        "New tables that match a pattern are replicated too.",
        default="all tables that can be replicated",
        metavar="A,B",
    )
    exclude_tables: Iterable[str] = option(
        _tables,
        "Exclude these tables, written in the same way: replicate neither publishes nor loads them, and ignores their "
        "changes in another publication, with a message at its start. Their stored rows stay as they are.",
        default="none",
        metavar="A,B",
    )
    join_after: float = option(
        kinds.amount(0.0, "seconds"),
        "The seconds to wait before replicate publishes and loads a table that was created during a run. With a wait, "
        "replicate ignores tables that tools create for a short time.",
        metavar="SECONDS",
    )
    once: bool = option(
        kinds.flag,
        "Exit once replicate has applied everything that was committed before it started; without it, replicate until "
        "the process is stopped.",
    )
    retry_timeout: float | None = option(
        kinds.amount(None, "seconds"),
        "The longest wait for a server that refuses connections or cannot be reached, in seconds.",
        default="`60` with `once`, else no limit",
        metavar="SECONDS",
    )
    every: float = option(
        kinds.amount(10.0, "seconds"),
        "The least seconds between two batches. A batch is one commit in each changed table. 0 applies changes as soon "
        "as they arrive, ten times a second, or three times if a batch takes much processor time.",
        metavar="SECONDS",
    )
    keep: float = option(
        kinds.amount(24.0, "hours"), "The hours for which readers can open old versions of a table.", metavar="HOURS"
    )
    unrepresentable: Literal["error", "null", "text"] = option(
        kinds.choice("error", "null", "text"),
        "The action for a value that its column's type cannot hold, such as the timestamp `infinity`: `error` stops "
        "the table, `null` writes NULL, and `text` writes NULL, and the server's text into a second column.",
        is_by_table=True,
    )
    numeric: str = option(
        kinds.number_type,
        "The type of a `numeric` column without a precision: `text`; `double`, which rounds; or `decimal(p,s)`, which "
        "does not round, and cannot hold a number with more digits.",
        metavar="TYPE",
        is_by_table=True,
    )
    deletes: Literal["hard", "soft"] = option(
        kinds.choice("hard", "soft"),
        "`hard` removes a deleted row; `soft` keeps the row, and marks it in `_is_deleted` and `_deleted_at`.",
        is_by_table=True,
    )
    history: bool = option(
        kinds.flag, "Keep every version of each row in a second table, `TABLE~history`.", is_by_table=True
    )
    append: bool = option(kinds.flag, "Append every change to a second table, `TABLE~changes`.", is_by_table=True)
    write_mode: Literal["copy-on-write", "merge-on-read"] = option(
        kinds.choice("copy-on-write", "merge-on-read"),
        "`copy-on-write` rewrites the files whose rows change. `merge-on-read` marks such rows in deletion vectors: "
        "this costs less if changes are spread over a large table, but not all readers support such marks. Changing "
        "the mode does not reload the table.",
        is_by_table=True,
    )
    change_data_feed: bool = option(
        kinds.flag,
        "Write Delta's change data feed: each commit has files with the rows before and after its changes, for "
        "`table_changes` in Spark. Changing the option does not reload the table.",
        is_by_table=True,
    )
    format: FormatName = option(
        kinds.choice(*FORMATS),
        "The format of all tables of the destination: Delta, or Iceberg. Iceberg tables are in the "
        "destination's folder, or also in a catalog, which needs the extra `iceberg`. A destination has one format.",
    )
    format_version: int = option(
        kinds.count(2, 2, 3),
        "The version of Iceberg's format. `3` gives each row an id that updates keep, and marks deleted rows by "
        "deletion vectors; docs/reference/formats.md lists its readers. replicate upgrades a table of version 2 in one "
        "commit; a table of version 3 keeps its version.",
        metavar="NUMBER",
        is_by_table=True,
    )
    origin: Literal["any", "none"] = option(
        kinds.choice("any", "none"),
        "`none` omits changes that were replayed from another server, as in two-way replication (PostgreSQL 16 and "
        "later); loads copy rows of every origin.",
    )
    config: str | Path | Mapping[str, object] | TablesOfDatabase | Config | None = option(
        kinds.text,
        "A YAML file with settings by table; in Python also an equivalent mapping. On the command line the file may "
        "have several databases, each with its server, its destination and its settings by table.",
        metavar="FILE",
    )
    storage_options: Mapping[str, str] | None = field(
        default=None,
        repr=False,
        metadata={
            "doc": "Options of the object store, such as `aws_region`; the usual environment variables apply too."
        },
    )
    catalog: str | None = field(
        default=None,
        repr=False,
        metadata={
            "doc": "The catalog of Iceberg tables: `sqlite:///FILE`, `postgresql://…`, `https://…` of a REST catalog, "
            "or `glue://REGION`. The tables' files are at the destination. For Delta tables, "
            "`unity+https://HOST/CATALOG` of Unity Catalog."
        },
    )
    catalog_options: Mapping[str, str] | None = field(
        default=None,
        repr=False,
        metadata={
            "doc": "Options of pyiceberg for the catalog, such as `warehouse`, and `name`, the name of an SQL catalog, "
            "by default `default`; pyiceberg's own file and environment variables apply too. Or the `token` of Unity "
            "Catalog."
        },
    )
    upkeep: Literal["all", "none"] = option(
        kinds.choice("all", "none"),
        "`none` is for a catalog whose service does the upkeep: replicate merges no files and manifests, removes no "
        "snapshots, and deletes no files that a commit replaced.",
    )
    load_sessions: int = option(
        kinds.count(4, 1), "The most sessions that copy rows at the same time, for all loads together.", metavar="COUNT"
    )
    load_rate: float | None = option(
        kinds.amount(None, "megabytes"),
        "The most megabytes a second that each of these sessions copies.",
        default="no limit",
        metavar="MB",
    )
    index_size: float | None = option(
        kinds.amount(None, "megabytes"),
        "The most megabytes of this machine's disk for indexes of keys. With an index, replicate finds the rows that a "
        "batch changes without reading the keys of the whole table. It saves work with `merge-on-read`, or if most "
        "files have no changed row. A million rows need 33 MB.",
        default="no indexes",
        metavar="MB",
    )
    memory: float | None = option(
        kinds.amount(None, "megabytes", least=LEAST_MEMORY / 1e6),
        f"The most megabytes of rows in the memory of replicate's own process, at least {LEAST_MEMORY / 1e6:g}; a "
        "value above the default has no effect. docs/reference/sizing.md lists the memory beside these rows.",
        default=f"`{Limits().memory // 10**6}`",
        metavar="MB",
    )
    engine: Literal["auto", "spark", "local"] = option(
        kinds.choice("auto", "spark", "local"),
        "The engine that reads and writes files: `spark`, on this machine or a cluster; or `local`, processes of this "
        "machine, without Spark and Java. `auto` uses the Spark of the program: its active session, the server of "
        "`SPARK_REMOTE`, or `spark-submit`; without a Spark, `auto` is `local`.",
    )
    shared_folder: bool = option(
        kinds.flag,
        "The destination is a folder that all machines mount, such as an NFS folder. replicate checks at its start "
        "that two processes see each other's files there, and that only one of them can create a file of a name.",
    )
    listen: str | None = option(
        kinds.address,
        "Serve a page at `/`, metrics for Prometheus at `/metrics`, and `/healthz` and `/readyz`, at this address; a "
        "port alone means 127.0.0.1.",
        metavar="HOST:PORT",
    )
    call_on_stop: str | None = option(
        kinds.text,
        "A shell command, or a URL, to call when a table stops, replicate cannot write to the destination for half a "
        "minute, or the run ends with an error. The command gets a JSON object on standard input, a URL by POST.",
        default="no call",
        metavar="COMMAND|URL",
    )
    call_on_schema_change: str | None = option(
        kinds.text,
        "A shell command, or a URL, to call in the same way when the columns or the key of a stored table change.",
        default="no call",
        metavar="COMMAND|URL",
    )
    lineage: str | None = option(
        kinds.text,
        "The URL of a receiver of OpenLineage events, such as `http://marquez:5000`: the start and the end of the run, "
        "and in between its tables with their columns and loaded rows. The option needs the extra `lineage`; replicate "
        "sends `OPENLINEAGE_API_KEY` of the environment too. If replicate cannot send an event, it logs a warning.",
        default="no events",
        metavar="URL",
    )

    def __post_init__(self) -> None:
        for name, own_option in OPTIONS.items():
            # A call may pass a Config instead of a file's path.
            if name != "config":
                object.__setattr__(self, name, read_value(own_option, getattr(self, name), name))
        is_store = not is_folder(self.to)
        if self.shared_folder and is_store:
            raise OptionError("option 'shared_folder' is for a folder, and the destination is an object store")
        if self.catalog_options and self.catalog is None:
            raise OptionError("option 'catalog_options' is for a catalog, and 'catalog' names none")
        if self.upkeep == "none" and self.catalog is None:
            raise OptionError(
                "option 'upkeep' is none, which is for a catalog whose service does the upkeep: 'catalog' names none"
            )
        if self.lineage is not None and find_missing(("openlineage.client",)) is not None:
            raise OptionError(f"option 'lineage' needs the client of OpenLineage: {installing('lineage')}")
        if both := sorted({*self.tables} & {*self.exclude_tables}):
            raise OptionError(f"options 'tables' and 'exclude_tables' both name {', '.join(both)}: remove it from one")


OPTIONS: Mapping[str, Option] = {
    item.name: item.metadata["option"] for item in fields(ReplicateOptions) if "option" in item.metadata
}
TABLE_OPTIONS: Mapping[str, Option] = {name: option for name, option in OPTIONS.items() if option.is_by_table} | {
    "optional": Option(
        kinds.flag, "Whether the server may lack the table, because you create it later or drop it.", "`false`"
    ),
    "key": Option(
        kinds.names,
        "The columns that identify the rows of a table with `REPLICA IDENTITY FULL`: the columns of a unique index, "
        "all `NOT NULL`.",
        "the primary key, else all columns",
    ),
    "left_out": Option(kinds.names, "The columns to omit from the stored table.", "none"),
    "partition_by": Option(
        kinds.names,
        "The columns that partition the table's files: `COLUMN` for each of its values, `day(COLUMN)`, `month(COLUMN)` "
        "or `bucket(COUNT, COLUMN)`.",
        "none",
    ),
    "masked": Option(
        kinds.choice("hashed", "nulled"),
        "The columns to mask, each with `hashed` or `nulled`.",
        "none",
    ),
}
"""The settings by table, in a file or a mapping."""


_PAGE = """# Options of `replicate`

These are the options of `logicalrep replicate`. In Python, `logicalrep.replicate` has arguments of the same names, with
`_` in place of `-`; a flag is `True` or `False`. An invalid value raises `OPTION_INVALID`.

| option | default | meaning |
| --- | --- | --- |
| `--dsn DSN`, `--dsn-file FILE` | libpq's environment | The server: a URI or connection string of libpq, or the \
path of a file with one; in Python the first argument. |
| `--to DESTINATION` | | The destination: a folder, or an object store's URI; in Python the second argument. |
| `--storage-option NAME=VALUE` | the store's environment | An option of the object store; may be repeated. In Python \
a mapping, `storage_options`. |
| `--catalog URI` | | The catalog of Iceberg tables: `sqlite:///FILE`, `postgresql://HOST/DATABASE`, \
`https://…` of a REST catalog, or `glue://REGION`. For Delta tables, `unity+https://HOST/CATALOG` of Unity Catalog; \
see [catalogs.md](catalogs.md). |
| `--catalog-option NAME=VALUE` | pyiceberg's file and environment | An option of pyiceberg for the catalog, or Unity \
Catalog's `token`; may be repeated. In Python a mapping, `catalog_options`. |
| `--password-command COMMAND` | | A shell command that prints the password, for passwords that expire; replicate and \
Spark's executors run the command for each connection. In Python the first argument is \
`ConnectionSettings(dsn).with_password_command(COMMAND)`. |
{}
Only the command line has these options:

| option | meaning |
| --- | --- |
| `--database NAME` | Replicate only this database, if the file of `--config` has \
[several databases](../how-to/many-databases.md). |
| `--quiet` | Show only warnings and waits. |
| `--log text`, `-v`, `--verbose` | Write the log to standard error, with a line for each batch, in place of progress. |
| `--log json` | Write each line of the log as a JSON object: `time`, `level`, `logger`, `message`, and the `event` \
with its `figures`. |

`logicalrep check` has the same options, and `--print-sql`, which prints only the SQL script.

## Settings of a table

Set these for a table in the file of `--config`, or in the mapping of `config`: see [Configure single
tables](../how-to/table-settings.md). A mistake raises `CONFIG_INVALID`, with its line.

| setting | default | meaning |
| --- | --- | --- |
{}"""


def flag_of(name: str) -> str:
    """Return the option of the command line with an argument's name."""
    return f"--{name.replace('_', '-')}"


def page() -> str:
    """Return the text of docs/reference/replicate-options.md."""
    lines = [
        f"| `{flag_of(name)}{f' {option.metavar}' if option.metavar else ''}` | {option.default} | {option.doc} |\n"
        for name, option in OPTIONS.items()
    ]
    settings = [
        f"| `{name}` | {f'the value of `{flag_of(name)}`' if name in OPTIONS else option.default} | {option.doc} |\n"
        for name, option in TABLE_OPTIONS.items()
    ]
    return _PAGE.format("".join(lines), "".join(settings)).replace("|  |", "| |")
