"""`logicalrep verify`: the comparison of a destination's tables with the server's tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

import psycopg

from logicalrep.pipeline.catalog.definitions import query_description
from logicalrep.pipeline.config.mask_key import MaskKey
from logicalrep.pipeline.formats.catalog_settings import CatalogSettings, catalog_of_tables
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import TableFormat
from logicalrep.pipeline.state.state import Identity, State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.table_errors import is_table_error, reason_of
from logicalrep.pipeline.verify.comparison import Comparison
from logicalrep.pipeline.verify.destination_rows import DestinationRows, with_all_text_columns
from logicalrep.pipeline.verify.progress import DestinationProgress, UnsettledError
from logicalrep.pipeline.verify.server_rows import ServerRows
from logicalrep.pipeline.verify.verdicts import Verdict
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.server import Connection, query_server_identity
from logicalrep.postgres.snapshots import SnapshotError
from logicalrep.postgres.table_rows.reading import NotReadableError, UnsafeTableError
from logicalrep.transactions.table_names import TableName, table_name
from logicalrep_runtime.errors import LogicalRepError

_PAUSE = 1.0


class VerifyError(LogicalRepError, RuntimeError):
    code = "VERIFY_IMPOSSIBLE"


def verify(
    settings: ConnectionSettings,
    storage: Storage,
    tables: Sequence[TableName] = (),
    *,
    catalog: CatalogSettings | None = None,
    patience: float = 60.0,
    with_values: bool = False,
    warn: Callable[[str], None] = lambda text: None,
) -> Iterator[Verdict]:
    """Compare each table of a destination with the server's table, while both keep changing; yield the verdicts.

    Args:
        settings: the server.
        storage: the destination, to which `logicalrep replicate` may write at the same time.
        tables: the tables to compare; none for all of the destination.
        catalog: the catalog of the destination's tables; None without a catalog.
        patience: the seconds after which rows that differ without a proof are undecided.
        with_values: whether examples of differing rows have the values of all columns.
        warn: the receiver of warnings.

    Raises:
        VerifyError: the destination lacks one of the tables, or the role may not read all rows of a table.
        StateError: the destination has the tables of another server or database, or they are not in this catalog.
        StorageError: the destination cannot be read.
        ConnectError: connecting to the server failed.
        MaskKeyError: columns are hashed, and the environment lacks the key.

    Example:
        >>> for verdict in verify(ConnectionSettings("dbname=shop"), Storage("./lake")):
        ...     print(verdict.table, verdict.result)
    """
    identity = Identity.read(storage)
    if identity is None:
        raise VerifyError(f"{storage.uri} has no replicated tables: give the same --to as to logicalrep replicate")
    identity.check_catalog(catalog_of_tables(catalog))
    formats = table_format(storage, identity.table_format, catalog)
    stored_names = [table_name(text) for text in State.read(storage).tables]
    if absent := [str(name) for name in tables if name not in stored_names]:
        raise VerifyError(f"{storage.uri} has no table {', '.join(absent)}")
    for warning in settings.warnings:
        warn(warning)
    with closing(settings.connect()) as connection:
        system_identifier, database = query_server_identity(connection)
        identity.check(system_identifier=system_identifier, database=database)
        progress = DestinationProgress(settings, connection, storage, identity)
        for name in sorted(tables or stored_names):
            try:
                yield _compare(settings, formats, identity, progress, name, patience, with_values)
            except NotReadableError as error:
                raise VerifyError(f"{name}: {error.description}", code=error.code) from None
            except psycopg.Error as error:
                if not is_table_error(error):
                    raise VerifyError(f"{name}: {str(error).strip()}", code="SERVER_AWAY") from None
                # The table was altered or dropped during the comparison, or the server cannot read it.
                yield Verdict(name, "undecided", reason=reason_of(error))
            except (ValueError, SnapshotError, UnsafeTableError) as error:
                if not isinstance(error, SnapshotError) and not is_table_error(error):
                    raise
                # The destination's type cannot hold a value, or the table was altered during the comparison.
                yield Verdict(name, "undecided", reason=reason_of(error).partition("\n")[0])


def _compare(
    settings: ConnectionSettings,
    stored: TableFormat,
    identity: Identity,
    progress: DestinationProgress,
    name: TableName,
    patience: float,
    with_values: bool,
) -> Verdict:
    deadline = time.monotonic() + patience
    while True:
        try:
            with closing(settings.connect()) as connection, closing(settings.connect()) as catalog_connection:
                rows = DestinationRows(stored, progress.state(name).folder)
                server = _server_rows(connection, catalog_connection, rows, identity, name)
                compared = Comparison(name, server, rows, progress, patience=patience, with_values=with_values)
                return compared.compare()
        except UnsettledError as error:
            if not error.may_pass or not progress.is_followed or time.monotonic() >= deadline:
                return Verdict(name, "undecided", reason=error.description)
        time.sleep(_PAUSE)


def _server_rows(
    connection: Connection, catalog_connection: Connection, rows: DestinationRows, identity: Identity, name: TableName
) -> ServerRows:
    publications = (identity.publication,)
    table = query_description(connection, name, publications, rows.table.settings)
    if table is None:
        raise UnsettledError("the server no longer has the table")
    if table.relation.relation_id != rows.table.relation.relation_id:
        raise UnsettledError("the server has another table of this name: logicalrep replicate reloads it")
    if with_all_text_columns(table).schema != rows.table.schema or table.relation.names != rows.table.relation.names:
        raise UnsettledError("its columns differ from the server's columns: logicalrep replicate reloads it")
    key = MaskKey.wanted([rows.table.settings])
    return ServerRows(connection, catalog_connection, rows.table, publications, key)
