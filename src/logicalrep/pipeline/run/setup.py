"""Prepare a destination and its server for replication."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from logicalrep.observe.events import WaitReported, WarningIssued
from logicalrep.observe.figures import Standing
from logicalrep.observe.observer import Observer, passing
from logicalrep.pipeline.catalog.definitions import query_description
from logicalrep.pipeline.catalog.loadable import query_unloadable
from logicalrep.pipeline.catalog.publication_plan import PublicationNeededError, PublicationPlan, query_plan
from logicalrep.pipeline.catalog.publishing import Published, ensure_publication
from logicalrep.pipeline.config.config import Mistakes
from logicalrep.pipeline.config.nodes import refuse
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.formats.catalog_settings import catalog_of_tables, refuse_same_names
from logicalrep.pipeline.history.companion import companions_of
from logicalrep.pipeline.requirements.requirements import Requirements, query_requirements
from logicalrep.pipeline.run.receiving import ChangeReceiver
from logicalrep.pipeline.schema.names import companion_folder, table_folder
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.state.destination_names import confirm_names
from logicalrep.pipeline.state.state import Identity, State, StateError
from logicalrep.pipeline.state.stored_settings import StoredSettings
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.plugin_options import PluginOptions, most_streaming
from logicalrep.postgres.preflight.checks import check, ensure_slot
from logicalrep.postgres.preflight.findings import Finding, Needs
from logicalrep.postgres.publications import query_foreign_rows
from logicalrep.postgres.retries import LOCKED, Wait, retry
from logicalrep.postgres.server import Connection, newest_protocol, query_server_identity, server_major
from logicalrep.postgres.slots.creating import keep_on_standbys
from logicalrep.postgres.slots.errors import LostPositionError, SlotError
from logicalrep.postgres.slots.positions import outside_wal_reason
from logicalrep.postgres.slots.slot import Slot, find_slot, query_slot
from logicalrep.postgres.slots.standbys import standby_warnings
from logicalrep.postgres.snapshots import WRITERS_INTERVAL, run_and_report_waits
from logicalrep.transactions.table_names import TableName, table_name
from logicalrep_runtime.scalars import Lsn

_PATIENCE_FOR_LOCKS = "10s"
"""The longest wait for a table that another session alters."""
_PATIENCE_OF_CHECK = 5.0
"""The seconds that a check waits for a server that is away, as a person waits for the answer."""
_UNLESS_CLONE = "if --dsn leads to a copy of the server, such as a staging server, correct --dsn; otherwise"
"""The condition of a remedy that would replace the tables' rows by a copy's, which has the same system identifier."""


@dataclass(frozen=True, slots=True)
class Prepared:
    identity: Identity
    state: State
    """The last checkpoint, which is not before the slot's position."""
    published: Published
    options: PluginOptions


def prepare(
    settings: ReplicateSettings, storage: Storage, observer: Observer, stop: threading.Event, waiting: Wait
) -> Prepared:
    """Create the destination's identity, then the publication, then the slot, unless they exist; a broken connection
    starts it over. Raises UnmetError (nothing was created), StateError, SlotError, Ended and others."""
    # These warnings come first: connecting may send a password.
    for warning in settings.connection.warnings:
        observer.on_event(WarningIssued(warning))
    # Read the destination before creating anything: it may be unreadable.
    state = State.read(storage)
    with _naming_destination_remedies():
        return retry(lambda: _prepare_with(settings, storage, state, observer, stop), waiting)


def _prepare_with(
    settings: ReplicateSettings, storage: Storage, state: State, observer: Observer, stop: threading.Event
) -> Prepared:
    with settings.connection.connect() as connection, _bound_lock_waits(connection):
        identity = _claim_identity(connection, settings, storage)
        needs = _needs(settings, identity)
        # A lost slot raises here: no SQL script restores it.
        existing_slot = _find_slot(connection, identity, state)
        plan = query_plan(connection, identity.publication, settings)
        query_requirements(connection, plan, needs, is_first=not state.lsn).refuse_unmet()
        previous = _previous_settings(storage)
        refuse(_query_mistakes(connection, plan, needs, settings, previous, (*plan.tables, *plan.tables_to_add)).new)
        _refuse_catalog(
            connection,
            settings,
            state,
            [table for table in (*plan.tables, *plan.tables_to_add) if plan.includes(table)],
        )
        published = ensure_publication(connection, identity.publication, settings)
        for warning in published.warnings:
            observer.on_event(WarningIssued(warning))
        # Earlier servers lack this option, which the checks report.
        if needs.origin is not None and server_major(connection) >= 16:
            foreign = query_foreign_rows(connection, published.listed)
            if foreign is not None:
                observer.on_event(WarningIssued(foreign))
        # Tables that could not be published are not replicated.
        mistakes = _query_mistakes(connection, plan, needs, settings, previous, published.tables)
        refuse(mistakes.new)
        # An owner who renamed a column since the last run stops this table alone.
        for mistake in mistakes.outdated:
            observer.on_event(WarningIssued(mistake))
        if (
            settings.failover
            and existing_slot is not None
            and not existing_slot.failover
            and server_major(connection) >= 17
        ):
            keep_on_standbys(settings.connection, identity.slot)
        for warning in check(connection, replace(needs, makes_publications=False)):
            observer.on_event(WarningIssued(warning))
        # Creating the slot waits for open transactions that have written, without a limit.
        connection.execute("SET lock_timeout = 0")
        with settings.connection.connect() as second_connection:
            writers = Wait(stop=stop, say=passing(observer, WaitReported), interval=WRITERS_INTERVAL)
            run_and_report_waits(lambda: ensure_slot(connection, needs), connection, second_connection, writers)
        slot = query_slot(connection, identity.slot)
        # A process that still ran may have saved a checkpoint and acknowledged it since the first reading.
        state = State.read(storage)
        if state.lsn and slot.confirmed.lsn > state.lsn:
            raise SlotError(
                f"replication slot {identity.slot!r} is at {slot.confirmed.lsn}, but the tables are at {state.lsn}: "
                "another reader advanced it, and the changes between are lost; run logicalrep resync --all with the "
                "same --dsn and --to, and give each reader its own slot",
                code="POSITION_PASSED",
            )
        if state.lsn:
            _check_position(settings, state, identity, slot)
        version = newest_protocol(connection)
        options = PluginOptions(
            publication_names=needs.publications,
            proto_version=version,
            streaming=most_streaming(version),
            origin=None if needs.origin is None else "none",
        )
        return Prepared(identity, state, published, options)


def query_unmet(settings: ReplicateSettings) -> Requirements:
    """Return the unmet requirements of a run; only the destination's names of slot and publication are created.

    Raises ConnectError if no server answers within seconds, or within `retry_timeout`.
    """
    storage = Storage(settings.to, settings.storage_options or {})
    Identity.read(storage)
    state, previous = State.read(storage), _previous_settings(storage)

    def query() -> Requirements:
        with settings.connection.connect() as connection, _bound_lock_waits(connection):
            identity = _claim_identity(connection, settings, storage)
            slot = _find_slot(connection, identity, state)
            is_failover = slot is not None and slot.failover
            standbys = standby_warnings(settings.connection, connection, identity.slot) if is_failover else []
            plan, needs = query_plan(connection, identity.publication, settings), _needs(settings, identity)
            unmet = query_requirements(connection, plan, needs, is_first=not state.lsn)
            _refuse_catalog(
                connection,
                settings,
                state,
                [table for table in (*plan.tables, *plan.tables_to_add) if plan.includes(table)],
            )
            mistakes = _query_mistakes(connection, plan, needs, settings, previous, (*plan.tables, *plan.tables_to_add))
            stopping = _query_stopping(connection, plan, needs, settings, state, mistakes)
            return replace(
                unmet,
                findings=(*unmet.findings, *(Finding("CONFIG_INVALID", mistake) for mistake in mistakes.new)),
                stopping=(*unmet.stopping, *stopping),
                warnings=(*unmet.warnings, *standbys, *_upkeep_warnings(settings)),
            )

    return retry(query, _PATIENCE_OF_CHECK if settings.retry_timeout is None else settings.retry_timeout)


def _upkeep_warnings(settings: ReplicateSettings) -> list[str]:
    catalog = settings.table_catalog
    if catalog is None or not catalog.owns_tables or settings.upkeep == "none":
        return []
    return [
        f"the catalog {catalog.shown} owns its tables: if its service merges files and removes old snapshots, add "
        "--upkeep none, so that replicate leaves both to the service"
    ]


def _query_stopping(
    connection: Connection,
    plan: PublicationPlan,
    needs: Needs,
    settings: ReplicateSettings,
    state: State,
    mistakes: Mistakes,
) -> list[Finding]:
    """Return a finding for each table that is stopped, or that a run would stop."""
    findings = [Finding("CONFIG_INVALID", mistake) for mistake in mistakes.outdated]
    standings = {table_name(name): table.state for name, table in state.tables.items()}
    findings += [
        Finding("TABLES_STOPPED", f"{name} is stopped: {table.error}")
        for name, table in state.tables.items()
        if table.state is Standing.STOPPED and plan.includes(table_name(name))
    ]
    # With a mistake in its settings, a table would be reported twice.
    if mistakes.new or mistakes.outdated:
        return findings
    tables = [
        table
        for table in (*plan.tables, *plan.tables_to_add)
        if plan.includes(table) and standings.get(table) is not Standing.STOPPED
    ]
    errors = query_unloadable(
        connection,
        tables,
        needs.publications,
        settings.of,
        following=[table for table, standing in standings.items() if standing is Standing.FOLLOWING],
        sends_generated=plan.sends_generated,
    )
    return findings + [Finding(error.code, f"would stop the table: {error.description}") for error in errors]


def _previous_settings(storage: Storage) -> Mapping[TableName, TableSettings]:
    """Return the settings by table of the last run."""
    stored = StoredSettings.read(storage)
    return {} if stored is None else stored.tables


def _query_mistakes(
    connection: Connection,
    plan: PublicationPlan,
    needs: Needs,
    settings: ReplicateSettings,
    previous: Mapping[TableName, TableSettings],
    tables: Collection[TableName],
) -> Mistakes:
    meant = [table for table in tables if plan.includes(table)]

    def described(name: TableName) -> TableSpec | None:
        return query_description(
            connection, name, needs.publications, settings.of(name), sends_generated=plan.sends_generated
        )

    return settings.by_table.mistakes(meant, described, previous)


def _needs(settings: ReplicateSettings, identity: Identity) -> Needs:
    origin = settings.table_settings.origin
    return Needs(
        slot=identity.slot,
        publications=(identity.publication,),
        mode="walsender",
        create_slot=True,
        failover=settings.failover,
        origin=None if origin == "any" else origin,
        fills_defaults=True,
        makes_publications=True,
    )


def _find_slot(connection: Connection, identity: Identity, state: State) -> Slot | None:
    slot = find_slot(connection, identity.slot)
    if (slot is not None and slot.lost is not None) or (slot is None and state.lsn):
        raise _slot_lost(identity.slot, "missing" if slot is None else f"lost ({slot.lost})", state.lsn)
    return slot


def _slot_lost(slot: str, reason: str, lsn: Lsn) -> SlotError:
    error = SlotError(
        f"replication slot {slot!r} is {reason}, and with it the changes since {lsn}, so that replicate cannot "
        f"continue: {_UNLESS_CLONE} run logicalrep resync --all with the same --dsn and --to, which creates a new slot "
        "and reloads all tables",
        code="SLOT_LOST",
    )
    error.reason = reason
    return error


def _check_position(settings: ReplicateSettings, state: State, identity: Identity, slot: Slot) -> None:
    """Raise SlotError if the tables have commits that the server lacks."""
    reason = outside_wal_reason(settings.connection, slot, state.position(identity.system_identifier))
    if reason is not None:
        raise _diverged(reason)


def _diverged(reason: str) -> SlotError:
    return SlotError(
        f"{reason}; the tables have commits that this server may not have: {_UNLESS_CLONE} run logicalrep resync --all "
        "with the same --dsn and --to, which reloads all tables",
        code="WAL_DIVERGED",
    )


def proven_before(state: State, server_started: str) -> Lsn | None:
    """Return the LSN up to which the server provably has all commits that were read; None if it has all of them."""
    history = state.history
    return None if history is not None and history.server_started == server_started else state.lsn


@contextmanager
def naming_remedies(slot: str, receiver: ChangeReceiver) -> Iterator[None]:
    with _naming_destination_remedies():
        try:
            yield
        except SlotError as error:
            if error.code == "SLOT_MISSING":
                raise _slot_lost(slot, "missing", receiver.acknowledged) from error
            if error.code == "SLOT_LOST":
                raise _slot_lost(slot, f"lost ({error.reason})", receiver.acknowledged) from error
            if isinstance(error, LostPositionError) and error.code == "WAL_DIVERGED":
                raise _diverged(error.reason) from error
            raise


@contextmanager
def _naming_destination_remedies() -> Iterator[None]:
    try:
        yield
    except SlotError as error:
        if error.is_for_stream:
            raise error.for_destination() from error
        raise


@contextmanager
def _bound_lock_waits(connection: Connection) -> Iterator[None]:
    """Bound the wait for sessions that alter a table, as the list of a publication's tables waits for them too."""
    connection.execute(f"SET lock_timeout = '{_PATIENCE_FOR_LOCKS}'".encode())
    try:
        yield
    except LOCKED:
        raise PublicationNeededError(
            "another session has locked a table that is or will be published, as ALTER TABLE does: run the same "
            "command once that session has ended"
        ) from None


def _claim_identity(connection: Connection, settings: ReplicateSettings, storage: Storage) -> Identity:
    system, database = query_server_identity(connection)
    identity = Identity.read(storage)
    if identity is not None and identity.system_identifier == system and identity.database != database:
        slot = find_slot(connection, identity.slot)
        # A slot belongs to its database for ever, and follows its name.
        if slot is not None and slot.database == database:
            confirm_names(storage, identity, slot=settings.slot, publication=settings.publication)
            identity.replace_server(storage, system_identifier=system, database=database)
    if settings.slot is not None and identity is None and find_slot(connection, settings.slot) is not None:
        raise StateError(
            f"replication slot {settings.slot!r} exists, and {storage.uri} has not been replicated with it: its "
            "changes belong to another reader. Name another slot, or omit --slot",
            code="SLOT_EXISTS",
        )
    return Identity.claim(
        storage,
        slot=settings.slot,
        publication=settings.publication,
        system_identifier=system,
        database=database,
        table_format=settings.format,
        catalog=catalog_of_tables(settings.table_catalog),
    )


def _refuse_catalog(
    connection: Connection, settings: ReplicateSettings, state: State, tables: Collection[TableName]
) -> None:
    """Raise CatalogNameError for a name conflict, StateError if replicate would replicate commits to the catalog."""
    catalog = settings.table_catalog
    if catalog is None:
        return
    folders_by_table = {table_name(text): table.folder for text, table in state.tables.items()}
    folders: list[str] = []
    for table in tables:
        folder = folders_by_table.get(table) or table_folder(table, [*folders_by_table.values(), *folders])
        wanted = companions_of(settings.of(table))
        folders += [folder, *(companion_folder(folder, companion) for companion in wanted)]
    refuse_same_names(folders)
    if catalog.kind == "postgresql" and any(table.name == "iceberg_tables" for table in tables):
        with ConnectionSettings(catalog.uri).connect() as of_catalog:
            if query_server_identity(of_catalog) == query_server_identity(connection):
                raise StateError(
                    f"the catalog {catalog.shown} is in the replicated database, and its tables are replicated, so "
                    "that each commit would cause another: use another database for the catalog, or exclude its tables "
                    "with --exclude-tables '*.iceberg_*'"
                )
