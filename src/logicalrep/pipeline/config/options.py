"""The options of `replicate`: each one's type, reader, default and documentation in one table.

The arguments of the Python function, those of the command line, the settings of a file and
docs/reference/replicate-options.md come from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from logicalrep.options import kinds
from logicalrep.options.kinds import Option, OptionError, OptionTexts, option, read_value
from logicalrep.pipeline.limits import LEAST_MEMORY, Limits
from logicalrep.pipeline.schema.table_formats import FORMATS, FormatName
from logicalrep.pipeline.storage.uris import is_folder
from logicalrep.transactions.table_names import TableNameError, TableSelection

if TYPE_CHECKING:
    # Loaded late: the command line has the table for its help, also without what these need.
    from logicalrep.pipeline.config.config import Config
    from logicalrep.pipeline.config.nodes import TablesOfDatabase
    from logicalrep.postgres.connection import ConnectionSettings


def _tables(texts: OptionTexts, name: str) -> tuple[str, ...]:
    """Read comma-separated tables and patterns of tables, and return each as in SQL with its schema."""
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
            "doc": "The server: libpq's connection string or URI, or settings with more; environment variables such as "
            "PGHOST and PGPASSWORD apply."
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
        kinds.text, "The publication.", default="one that is made for the destination", metavar="NAME"
    )
    slot: str | None = option(
        kinds.text, "The replication slot.", default="one that is made for the destination", metavar="NAME"
    )
    failover: bool = option(kinds.flag, "Have standbys keep the slot, so that it survives a failover (PostgreSQL 17).")
    tables: Iterable[str] = option(
        _tables,
        "Only these tables: `schema.table`, or `table`, as in SQL; `*` stands for any text, as in `sales.*`. Tables of "
        "a pattern that come later are replicated too.",
        default="all that can be replicated",
        metavar="A,B",
    )
    exclude_tables: Iterable[str] = option(
        _tables,
        "Not these tables, written in the same way: they are neither published nor loaded, and another publication's "
        "changes of them are ignored. The start says so. Rows that the destination has of them stay as they are.",
        default="none",
        metavar="A,B",
    )
    once: bool = option(
        kinds.flag,
        "End when the tables have all that was committed before the start; without it, follow until the process is "
        "ended.",
    )
    retry_timeout: float | None = option(
        kinds.amount(None, "seconds"),
        "The longest wait for a server that is away, in seconds.",
        default="`60` with `once`, else as long as it takes",
        metavar="SECONDS",
    )
    every: float = option(
        kinds.amount(10.0, "seconds"),
        "The seconds between two commits of a table; 0 is as soon as changes come, at most ten times a second.",
        metavar="SECONDS",
    )
    keep: float = option(
        kinds.amount(24.0, "hours"), "The hours for which old versions of a table can be read.", metavar="HOURS"
    )
    unrepresentable: Literal["error", "null", "text"] = option(
        kinds.choice("error", "null", "text"),
        "What to do with a value that its column's type cannot hold, such as the timestamp `infinity`: `error` stops "
        "the table, `null` writes NULL, and `text` writes NULL and has the server's text in a second column.",
        is_by_table=True,
    )
    numeric: str = option(
        kinds.number_type,
        "The type of a `numeric` without a bound: `text`; `double`, which rounds; or `decimal(p,s)`, which does not "
        "round, and cannot hold a number with more digits.",
        metavar="TYPE",
        is_by_table=True,
    )
    deletes: Literal["hard", "soft"] = option(
        kinds.choice("hard", "soft"),
        "`hard` removes a deleted row; `soft` keeps it, and marks it in `_deleted` and `_deleted_at`.",
        is_by_table=True,
    )
    history: bool = option(
        kinds.flag, "Keep every version of each row in a second table, `TABLE~history`.", is_by_table=True
    )
    append: bool = option(
        kinds.flag, "Keep all changes, one after another, in a second table, `TABLE~changes`.", is_by_table=True
    )
    write_mode: Literal["copy-on-write", "merge-on-read"] = option(
        kinds.choice("copy-on-write", "merge-on-read"),
        "`copy-on-write` writes the files anew in which rows change. `merge-on-read` marks such rows in deletion "
        "vectors: this costs less where changes are spread over a large table, but not all readers know such marks. A "
        "table is not loaded again for another mode.",
        is_by_table=True,
    )
    format: FormatName = option(
        kinds.choice(*FORMATS),
        "The format of all tables of the destination: Delta, or Iceberg, format version 2, in its folder, or "
        "in a catalog too, which needs the extra `iceberg`. A destination has one format.",
    )
    origin: Literal["any", "none"] = option(
        kinds.choice("any", "none"),
        "`none` leaves out changes that were replayed from another server, as in two-way replication (PostgreSQL 16); "
        "loads copy rows of every origin.",
    )
    config: str | Path | Mapping[str, object] | TablesOfDatabase | Config | None = option(
        kinds.text,
        "A YAML file with the settings of single tables; in Python also a mapping like it. On the command line it may "
        "have several databases, each with its server, its destination and its tables' settings.",
        metavar="FILE",
    )
    storage_options: Mapping[str, str] | None = field(
        default=None,
        repr=False,
        metadata={
            "doc": "Options of the object store, such as `aws_region`; its usual environment variables apply too."
        },
    )
    catalog: str | None = field(
        default=None,
        repr=False,
        metadata={
            "doc": "The catalog that Iceberg tables are in: `sqlite:///FILE`, `postgresql://…`, `https://…` of a REST "
            "catalog, or `glue://REGION`. Their files are at the destination all the same."
        },
    )
    catalog_options: Mapping[str, str] | None = field(
        default=None,
        repr=False,
        metadata={
            "doc": "Options of pyiceberg for the catalog, such as `warehouse`, and `name`, the name of an SQL catalog, "
            "which is `default`; pyiceberg's own file and environment variables apply too."
        },
    )
    load_sessions: int = option(
        kinds.count(4, 1), "The most sessions that copy rows at the same time.", metavar="COUNT"
    )
    load_rate: float | None = option(
        kinds.amount(None, "megabytes"),
        "The most megabytes a second that each of them copies.",
        default="no bound",
        metavar="MB",
    )
    index_size: float | None = option(
        kinds.amount(None, "megabytes"),
        "The most megabytes of this machine's disk for indexes of keys. With one, a batch finds its rows without "
        "reading the keys of the whole table. A million rows need 33.",
        default="no indexes",
        metavar="MB",
    )
    memory: float | None = option(
        kinds.amount(None, "megabytes", least=LEAST_MEMORY / 1e6),
        f"The most megabytes of rows in the memory of replicate's own process, from {LEAST_MEMORY / 1e6:g} on; a value "
        "above the default changes nothing. docs/reference/sizing.md lists the memory that it does not bound.",
        default=f"`{Limits().memory // 10**6}`",
        metavar="MB",
    )
    engine: Literal["spark", "local"] = option(
        kinds.choice("spark", "local"),
        "Where the work runs: `spark`, also that of a cluster, or `local`, processes of this machine without Spark "
        "and Java.",
    )
    shared_folder: bool = option(
        kinds.flag,
        "The destination is a folder that all machines mount, such as one of NFS. The start checks that two processes "
        "see each other's files in it, and that only one of them can make a file.",
    )
    listen: str | None = option(
        kinds.address,
        "Serve a page at `/`, metrics for Prometheus at `/metrics`, and `/healthz` and `/readyz`, at this address; a "
        "port alone means 127.0.0.1.",
        metavar="HOST:PORT",
    )
    call_on_stop: str | None = option(
        kinds.text,
        "A shell command, or a URL, to call when a table stops, or the run ends with an error. It gets a JSON object, "
        "on standard input or posted.",
        default="nobody is called",
        metavar="COMMAND|URL",
    )
    call_on_schema_change: str | None = option(
        kinds.text,
        "A shell command, or a URL, to call in the same way when a table at the destination has other columns, or "
        "another key.",
        default="nobody is called",
        metavar="COMMAND|URL",
    )

    def __post_init__(self) -> None:
        for name, own_option in OPTIONS.items():
            # A call may pass the settings by table themselves, instead of a file's path.
            if name != "config":
                object.__setattr__(self, name, read_value(own_option, getattr(self, name), name))
        is_store = not is_folder(self.to)
        if self.shared_folder and is_store:
            raise OptionError("option 'shared_folder' is for a folder, and the destination is an object store")
        if self.catalog is not None and not FORMATS[self.format].has_catalogs:
            raise OptionError("option 'catalog' is for Iceberg tables: add --format iceberg")
        if self.catalog_options and self.catalog is None:
            raise OptionError("option 'catalog_options' is for a catalog, and 'catalog' names none")
        if both := sorted({*self.tables} & {*self.exclude_tables}):
            raise OptionError(f"options 'tables' and 'exclude_tables' both name {', '.join(both)}: leave it out of one")


OPTIONS: Mapping[str, Option] = {
    item.name: item.metadata["option"] for item in fields(ReplicateOptions) if "option" in item.metadata
}
"""The options by their names in Python; on the command line these have hyphens."""
TABLE_OPTIONS: Mapping[str, Option] = {name: option for name, option in OPTIONS.items() if option.is_by_table} | {
    "optional": Option(kinds.flag, "Whether the table may be absent, as it comes later or may go.", "`false`"),
    "key": Option(
        kinds.names,
        "The columns that tell rows apart, of a table with `REPLICA IDENTITY FULL`: those of a unique index.",
        "the primary key, else all columns",
    ),
    "left_out": Option(kinds.names, "The columns that are not written at all.", "none"),
    "partition_by": Option(
        kinds.names,
        "The columns by which the table's rows are divided among its files: `COLUMN` for each of its values, "
        "`day(COLUMN)`, `month(COLUMN)` or `bucket(COUNT, COLUMN)`.",
        "none",
    ),
    "masked": Option(
        kinds.choice("hashed", "nulled"),
        "The columns whose values are masked, each with `hashed` or `nulled`.",
        "none",
    ),
}
"""The settings that a table may have of its own, in a file or a mapping."""


_PAGE = """# Options of `replicate`

`logicalrep replicate` has these options; in Python, `logicalrep.replicate` has arguments of the same names, with `_` in
place of `-`, and flags are `True` or `False`. A wrong value is `OPTION_INVALID`.

| option | default | meaning |
| --- | --- | --- |
| `--dsn DSN`, `--dsn-file FILE` | libpq's environment | The server: a URI or connection string of libpq, or a \
file with it; in Python the first argument. |
| `--to DESTINATION` | | The destination: a folder, or an object store's URI; in Python the second argument. |
| `--storage-option NAME=VALUE` | the store's environment | An option of the object store; may be repeated. In Python \
a mapping, `storage_options`. |
| `--catalog URI` | | The catalog that Iceberg tables are in: `sqlite:///FILE`, `postgresql://HOST/DATABASE`, \
`https://…` of a REST catalog, or `glue://REGION`; see [formats.md](formats.md#catalogs). |
| `--catalog-option NAME=VALUE` | pyiceberg's file and environment | An option of pyiceberg for the catalog; may be \
repeated. In Python a mapping, `catalog_options`. |
| `--password-command COMMAND` | | A command of the shell that prints the password, run at each connect, also on \
Spark's executors, for passwords that expire. In Python `ConnectionSettings(dsn).with_password_command(COMMAND)` as \
the first argument. |
{}
These are of the command line alone:

| option | meaning |
| --- | --- |
| `--database NAME` | Replicate only this database of the file of `--config`, which has \
[several](../how-to/many-databases.md). |
| `--quiet` | Show only warnings, and what the work waits for. |
| `--log text`, `-v`, `--verbose` | Write the log to standard error instead, a line for each batch. |
| `--log json` | The same, each line a JSON object: `time`, `level`, `logger`, `message`, and the `event` with its \
`figures`. |

`logicalrep check` has the options of `replicate`, and `--print-sql`, which prints the script alone.

## Settings of a table

A table may have these settings of its own, in the file of `--config` or in the mapping of `config`: see
[Settings by table](../how-to/table-settings.md). A mistake in them is `CONFIG_INVALID`, with its line.

| setting | default | meaning |
| --- | --- | --- |
{}"""


def flag_of(name: str) -> str:
    """Return an option's name on the command line."""
    return f"--{name.replace('_', '-')}"


def page() -> str:
    """Return the documentation's page of all options as Markdown."""
    lines = [
        f"| `{flag_of(name)}{f' {option.metavar}' if option.metavar else ''}` | {option.default} | {option.doc} |\n"
        for name, option in OPTIONS.items()
    ]
    settings = [
        f"| `{name}` | {f'that of `{flag_of(name)}`' if name in OPTIONS else option.default} | {option.doc} |\n"
        for name, option in TABLE_OPTIONS.items()
    ]
    return _PAGE.format("".join(lines), "".join(settings)).replace("|  |", "| |")
