"""Consistent versions of a destination's tables, now or as of a time."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from logicalrep.observe.figures import Standing
from logicalrep.options.kinds import OptionError
from logicalrep.pipeline.formats.catalog_settings import CatalogSettings, catalog_of_tables
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import TableFormat
from logicalrep.pipeline.operate.status import read_identity
from logicalrep.pipeline.schema.names import companion_folder
from logicalrep.pipeline.state.past_states import earliest_time, read_state
from logicalrep.pipeline.state.state import State, StateError
from logicalrep.pipeline.state.table_state import TableState
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.reader.errors import ReadError
from logicalrep.reader.table_version import TableVersion
from logicalrep.transactions.table_names import TableNameError, table_name
from logicalrep_runtime.scalars import Lsn

__all__ = ["ReadError", "Versions", "at", "read"]


@dataclass(frozen=True)
class Versions(Mapping[str, TableVersion]):
    """Consistent versions of all tables and companion tables, which have the same commits, by name as in SQL.

    Example:
        >>> yesterday = logicalrep.at("lake", "2026-11-25T18:00+01:00")
        >>> yesterday["public.orders"].polars().join(yesterday["customer"].polars(), on="customer_id")
    """

    storage: Storage
    lsn: Lsn
    """The tables have every commit before this LSN, and none after it."""
    until: datetime | None
    """Every commit in the tables is at or before this time; None before the first checkpoint after a start."""
    tables: Mapping[str, TableVersion]
    """The versions by name."""
    behind: Mapping[str, str] = field(default_factory=dict)
    """The tables that were loading or stopped at the time and have other commits, with the reasons."""

    def __getitem__(self, name: str) -> TableVersion:
        """Return a table's version.

        Args:
            name: the table's name as in SQL; the default schema is `public`. `orders~history` and `orders~changes` are
                the companion tables of `orders`.

        Raises:
            ReadError: the table does not exist, or was loading or stopped at the time.
            TableNameError: the text is not a table's name.
        """
        name = _stored_name(name, [*self.tables, *self.behind], self.storage)
        if name in self.behind:
            raise ReadError(
                f"{name} has no version that matches the other tables: {self.behind[name]}. logicalrep.read without a "
                "time reads its rows",
                code="TABLE_NOT_CURRENT",
            )
        return self.tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)


def at(
    destination: str | os.PathLike[str],
    time: datetime | str,
    *,
    storage_options: Mapping[str, str] | None = None,
    catalog: str | None = None,
    catalog_options: Mapping[str, str] | None = None,
) -> Versions:
    """Return consistent versions of all tables as of a time: the last stored versions without later commits.

    replicate stores the versions after each batch, and keeps the versions of each minute for the hours of `--keep`.
    Times are the server's; the time of loaded rows is the time of the machine that loaded them.

    Args:
        destination: the folder or the URI in the option `--to` of `logicalrep replicate`.
        time: a time with a zone, or its text in ISO 8601.
        storage_options: options of the object store, as for `replicate`.
        catalog: the URI of the catalog of Iceberg tables, as for `replicate`; None for tables without a catalog. A
            reader connects only to a catalog that is passed here, not to a catalog that the destination names.
        catalog_options: options of the catalog, as for `replicate`.

    Raises:
        ReadError: no versions of this time are stored.
        OptionError: `time` is not a time, or has no zone.
        StateError: nothing is replicated to the destination, its tables are not in this catalog, or they are in a
            catalog and `catalog` is None.
        FormatError: the library for the tables' format is not installed.
        StorageError: the destination cannot be read, or the catalog does not answer.

    Example:
        >>> yesterday = at("lake", "2026-11-25T18:00+01:00")
        >>> yesterday["public.orders"].duckdb().aggregate("sum(price)")
    """
    tables_format, moment = _open_tables(destination, storage_options, catalog, catalog_options), _parse_time(time)
    storage = tables_format.storage
    state = read_state(storage, moment)
    if state is None:
        first = earliest_time(storage)
        earliest = f"the earliest is {first.isoformat()}" if first else "none is stored yet"
        raise ReadError(
            f"{storage.uri} has no versions of its tables of {moment.isoformat()} or before: {earliest}, and they "
            "remain for the hours of --keep",
            code="TIME_NOT_STORED",
        )
    tables, behind = {}, {}
    for name, table in state.tables.items():
        if table.state is Standing.FOLLOWING:
            tables.update(_versions(tables_format, name, table))
        else:
            reason = f"it was stopped: {table.error}" if table.state is Standing.STOPPED else "it was being loaded"
            names = [name, *(f"{name}~{companion}" for companion in table.companions)]
            behind.update(dict.fromkeys(names, reason))
    until = None if state.until is None else datetime.fromisoformat(state.until)
    return Versions(storage, state.lsn, until, tables, behind)


def read(
    destination: str | os.PathLike[str],
    table: str,
    at: datetime | str | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    catalog: str | None = None,
    catalog_options: Mapping[str, str] | None = None,
) -> TableVersion:
    """Return a version of a stored table, for DuckDB, Polars, pandas, Spark or Arrow.

    The version does not change while replication continues. If the table is being reloaded or is stopped, the version
    has its previous rows.

    Args:
        destination: the folder or the URI in the option `--to` of `logicalrep replicate`.
        table: the table's name as in SQL; the default schema is `public`. `orders~history` and `orders~changes` are
            the companion tables of `orders`.
        at: the version's time with a zone, or its text in ISO 8601; None for the last version.
        storage_options: options of the object store, as for `replicate`.
        catalog: the URI of the catalog of Iceberg tables, as for `replicate`; None for tables without a catalog. A
            reader connects only to a catalog that is passed here, not to a catalog that the destination names.
        catalog_options: options of the catalog, as for `replicate`.

    Raises:
        ReadError: the table or its version at this time does not exist; the code has the reason.
        TableNameError: `table` is not a table's name.
        OptionError: `at` is not a time, or has no zone.
        StateError: nothing is replicated to the destination, its tables are not in this catalog, or they are in a
            catalog and `catalog` is None.
        FormatError: the library for the tables' format is not installed.
        StorageError: the destination cannot be read, or the catalog does not answer.

    Example:
        >>> read("lake", "public.orders").select(["price"], where=[("day", ">=", "2026-11-01")]).pandas()
        >>> orders = read("lake", "public.orders", at="2026-11-25T18:00+01:00")
        >>> duckdb.sql("SELECT customer_id, sum(price) FROM orders GROUP BY ALL")
    """
    if at is not None:
        versions_at = _at(
            destination, at, storage_options=storage_options, catalog=catalog, catalog_options=catalog_options
        )
        return versions_at[table]
    tables = _open_tables(destination, storage_options, catalog, catalog_options)
    state = State.read(tables.storage)
    versions = {
        name: version
        for stored_name, stored in state.tables.items()
        for name, version in _versions(tables, stored_name, stored).items()
    }
    name = _stored_name(table, [*{**versions, **state.tables}], tables.storage)
    if name not in versions:
        raise ReadError(f"{name} has no rows yet: its first load has not ended", code="TABLE_NOT_CURRENT")
    return versions[name]


_at = at


def _versions(tables: TableFormat, name: str, table: TableState) -> dict[str, TableVersion]:
    # Empty before the table's first load.
    heads = {name: (table.folder, table.head())} | {
        f"{name}~{companion}": (companion_folder(table.folder, companion), table.head(companion))
        for companion in table.companions
    }
    return {
        text: TableVersion(tables, text, folder, head.version, table.lsn, head.commit)
        for text, (folder, head) in heads.items()
        if head is not None
    }


def _stored_name(name: str, stored_names: list[str], storage: Storage) -> str:
    base, tilde, companion = name.rpartition("~")
    try:
        full_name = str(table_name(name)) if not tilde or name.endswith('"') else f"{table_name(base)}~{companion}"
    except TableNameError:
        if name in stored_names:
            return name
        raise
    if full_name not in stored_names:
        near = difflib.get_close_matches(full_name, stored_names, 1)
        what = f"did you mean {near[0]}?" if near else f"it has {', '.join(sorted(stored_names)) or 'none yet'}"
        raise ReadError(f"{storage.uri} has no table {full_name}; {what}", code="TABLE_UNKNOWN")
    return full_name


def _open_tables(
    destination: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None,
    catalog: str | None,
    catalog_options: Mapping[str, str] | None,
) -> TableFormat:
    uri = str(Path(destination)) if isinstance(destination, os.PathLike) else destination
    storage = Storage(uri, dict(storage_options or {}))
    identity = read_identity(storage)
    if catalog is None and identity.catalog is not None:
        raise StateError(
            f"the destination names the catalog {identity.catalog}: if you trust this catalog, and everybody who can "
            "write to the destination, pass it in the argument catalog",
            code="CATALOG_NOT_NAMED",
        )
    settings = CatalogSettings.of(catalog, catalog_options)
    identity.check_catalog(catalog_of_tables(settings))
    return table_format(storage, identity.table_format, settings)


def _parse_time(moment: datetime | str) -> datetime:
    try:
        time = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    except ValueError:
        raise OptionError(f"option 'at' has {moment!r}: expected a time as in 2026-11-25T18:00+01:00") from None
    if time.tzinfo is None:
        raise OptionError(f"option 'at' has {moment!r} without a zone: write it as in 2026-11-25T18:00+01:00")
    return time
