"""The versions of a destination's tables that belong together, now or as of a time."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from logicalrep.observe.figures import Standing
from logicalrep.options.kinds import OptionError
from logicalrep.pipeline.formats.catalog_settings import CatalogSettings
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import TableFormat
from logicalrep.pipeline.operate.status import read_identity
from logicalrep.pipeline.schema.names import companion_folder
from logicalrep.pipeline.state.past_states import first_time, read_state
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
    """The versions of all tables, and of their companions, that have the same commits; by the tables' names, as in SQL.

    Example:
        >>> yesterday = logicalrep.at("lake", "2026-11-25T18:00+01:00")
        >>> yesterday["public.orders"].polars().join(yesterday["customer"].polars(), on="customer_id")
    """

    storage: Storage
    lsn: Lsn
    """Every commit before it is in the tables, and none after it."""
    until: datetime | None
    """All that is in the tables had committed by this time; None before the first checkpoint after a start."""
    tables: Mapping[str, TableVersion]
    """The versions by their names."""
    behind: Mapping[str, str] = field(default_factory=dict)
    """The tables that loaded or were stopped then, and so have other commits than the others, each with the reason."""

    def __getitem__(self, name: str) -> TableVersion:
        """Return a table's version.

        Args:
            name: the table, as in SQL; without a schema it is in `public`. `orders~history` and `orders~changes` are
                the companion tables of `orders`.

        Raises:
            ReadError: there is no such table, or it loaded or was stopped then.
            TableNameError: the text is no table's name.
        """
        name = _found(name, [*self.tables, *self.behind], self.storage)
        if name in self.behind:
            raise ReadError(
                f"{name} does not belong to the versions of the other tables: {self.behind[name]}. logicalrep.read "
                "without a time reads the rows that it has",
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
    """Return the versions of all tables that belong together at a time: the last without later commits.

    Those of each minute are kept for the hours of `--keep`. The time is the server's; for rows that a load brought, it
    is that of the process that loaded them.

    Args:
        destination: the folder, or the object store's URI, that `logicalrep replicate` has as `--to`.
        time: a time with its zone; as text in the form of ISO 8601.
        storage_options: options of the object store, as in `replicate`.
        catalog: the catalog of Iceberg tables, as in `replicate`; None for tables that are in none. A reader never
            connects to a catalog because the destination names it.
        catalog_options: options of the catalog, as in `replicate`.

    Raises:
        ReadError: no such versions are kept, or not any more.
        OptionError: it is not a time, or has no zone.
        StateError: nothing is replicated to the destination, its tables are not in this catalog, or they are in one
            that is not named here.
        FormatError: the library of the tables' format is not installed.
        StorageError: the destination cannot be read, or the catalog does not answer.

    Example:
        >>> yesterday = at("lake", "2026-11-25T18:00+01:00")
        >>> yesterday["public.orders"].duckdb().aggregate("sum(price)")
    """
    tables_there, wanted = _open_tables(destination, storage_options, catalog, catalog_options), _time(time)
    storage = tables_there.storage
    state = read_state(storage, wanted)
    if state is None:
        first = first_time(storage)
        earliest = f"the earliest is {first.isoformat()}" if first else "none is kept yet"
        raise ReadError(
            f"{storage.uri} has no versions of its tables of {wanted.isoformat()} or before: {earliest}, and they stay "
            "for the hours of --keep",
            code="TIME_NOT_STORED",
        )
    tables, behind = {}, {}
    for name, table in state.tables.items():
        if table.state is Standing.FOLLOWING:
            tables.update(_versions(tables_there, name, table))
        else:
            why = f"it was stopped: {table.error}" if table.state is Standing.STOPPED else "it was being loaded"
            names = [name, *(f"{name}~{companion}" for companion in table.companions)]
            behind.update(dict.fromkeys(names, why))
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
    """Return a table of a destination, to be read by DuckDB, Polars, pandas, Spark, or as Arrow.

    It is a version, and stays the same whatever is replicated meanwhile. A table that loads or is stopped has the rows
    from before.

    Args:
        destination: the folder, or the object store's URI, that `logicalrep replicate` has as `--to`.
        table: the table, as in SQL; without a schema it is in `public`. `orders~history` and `orders~changes` are the
            companion tables of `orders`.
        at: a time with its zone, of which the version is; as text in the form of ISO 8601. None for the last version.
        storage_options: options of the object store, as in `replicate`.
        catalog: the catalog of Iceberg tables, as in `replicate`; None for tables that are in none. A reader never
            connects to a catalog because the destination names it.
        catalog_options: options of the catalog, as in `replicate`.

    Raises:
        ReadError: there is no such table, or no version of that time; the code tells which.
        TableNameError: the text is no table's name.
        OptionError: it is not a time, or has no zone.
        StateError: nothing is replicated to the destination, its tables are not in this catalog, or they are in one
            that is not named here.
        FormatError: the library of the tables' format is not installed.
        StorageError: the destination cannot be read, or the catalog does not answer.

    Example:
        >>> read("lake", "public.orders").select(["price"], where=[("day", ">=", "2026-11-01")]).pandas()
        >>> orders = read("lake", "public.orders", at="2026-11-25T18:00+01:00")
        >>> duckdb.sql("SELECT customer_id, sum(price) FROM orders GROUP BY ALL")
    """
    if at is not None:
        versions_then = _at(
            destination, at, storage_options=storage_options, catalog=catalog, catalog_options=catalog_options
        )
        return versions_then[table]
    tables = _open_tables(destination, storage_options, catalog, catalog_options)
    state = State.read(tables.storage)
    versions = {
        name: version
        for each, known in state.tables.items()
        for name, version in _versions(tables, each, known).items()
    }
    name = _found(table, [*{**versions, **state.tables}], tables.storage)
    if name not in versions:
        raise ReadError(f"{name} has no rows yet: its first load has not ended", code="TABLE_NOT_CURRENT")
    return versions[name]


_at = at


def _versions(tables: TableFormat, name: str, table: TableState) -> dict[str, TableVersion]:
    """Return the versions of a table and of its companion tables; none before its first load."""
    heads = {name: (table.folder, table.head())} | {
        f"{name}~{companion}": (companion_folder(table.folder, companion), table.head(companion))
        for companion in table.companions
    }
    return {
        text: TableVersion(tables, text, folder, head.version, table.lsn, head.commit)
        for text, (folder, head) in heads.items()
        if head is not None
    }


def _found(name: str, there: list[str], storage: Storage) -> str:
    """Return a table's name as it is known. Raises ReadError if there is no such table, with what is near."""
    base, tilde, companion = name.rpartition("~")
    try:
        known = str(table_name(name)) if not tilde or name.endswith('"') else f"{table_name(base)}~{companion}"
    except TableNameError:
        if name in there:
            return name
        raise
    if known not in there:
        near = difflib.get_close_matches(known, there, 1)
        what = f"did you mean {near[0]}?" if near else f"it has {', '.join(sorted(there)) or 'none yet'}"
        raise ReadError(f"{storage.uri} has no table {known}; {what}", code="TABLE_UNKNOWN")
    return known


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
            f"the destination says that its tables are in the catalog {identity.catalog}: if you trust that catalog, "
            "and whoever can write to the destination, name it in the argument catalog",
            code="CATALOG_NOT_NAMED",
        )
    settings = CatalogSettings.of(catalog, catalog_options)
    identity.check_catalog(None if settings is None else settings.shown)
    return table_format(storage, identity.table_format, settings)


def _time(wanted: datetime | str) -> datetime:
    try:
        found = datetime.fromisoformat(wanted) if isinstance(wanted, str) else wanted
    except ValueError:
        raise OptionError(f"option 'at' has {wanted!r}: expected a time as in 2026-11-25T18:00+01:00") from None
    if found.tzinfo is None:
        raise OptionError(f"option 'at' has {wanted!r} without a zone: write it as in 2026-11-25T18:00+01:00")
    return found
