"""`logicalrep.replicate`: replicates a database's tables to Delta Lake or Iceberg."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial

import psycopg

from logicalrep.observe.calls import CallsOnSchemaChange, CallsOnStop
from logicalrep.observe.counts import Observed
from logicalrep.observe.events import (
    EngineChosen,
    PageServed,
    RunEnded,
    RunPrepared,
    RunResumed,
    StepStarted,
    WaitEnded,
    WaitReported,
    WarningIssued,
)
from logicalrep.observe.health import health, readiness
from logicalrep.observe.lineage import Lineage, LineageNames, StoredColumns
from logicalrep.observe.logged import LogObserver
from logicalrep.observe.observer import Observer, Observers, passing
from logicalrep.options.arguments import takes
from logicalrep.pipeline.catalog.catalog import Catalog
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines.choice import choose_engine
from logicalrep.pipeline.engines.engine import Engine, EngineEndedError
from logicalrep.pipeline.engines.spark.shared import SharedSpark
from logicalrep.pipeline.engines.start import start_engine
from logicalrep.pipeline.engines.timed import TimedEngine
from logicalrep.pipeline.formats.opening import refuse_missing_format, table_format
from logicalrep.pipeline.index.key_indexes import KeyIndexes
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.load.load_queue import LoadQueue
from logicalrep.pipeline.load.renewal import Renewal
from logicalrep.pipeline.load.snapshot_copy import SnapshotCopy
from logicalrep.pipeline.masks.guard import Guard
from logicalrep.pipeline.operate.resync import resync
from logicalrep.pipeline.run.loop import Loop
from logicalrep.pipeline.run.receiving import ChangeReceiver
from logicalrep.pipeline.run.setup import Prepared, naming_remedies, prepare, proven_before
from logicalrep.pipeline.run.summary import RunSummary, SummaryObserver
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.state.lost_slots import may_replace_slot
from logicalrep.pipeline.state.requests import PausedError, refuse_paused
from logicalrep.pipeline.state.state import Identity, State, States
from logicalrep.pipeline.storage.patience import Patience
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.tables.manager import TableManager
from logicalrep.postgres.retries import Ended, Wait
from logicalrep.postgres.slots.errors import LostPositionError, SlotError
from logicalrep.postgres.snapshots import WRITERS_INTERVAL
from logicalrep_runtime.errors import LogicalRepError

_MOST_STARTS, _STARTS_WITHIN = 4, 3600.0
"""The number of engine failures, and the seconds within which they end the run."""


@dataclass(frozen=True, kw_only=True)
class ReplicateCall(ReplicateSettings):
    observer: Observer | None = field(
        default=None, metadata={"doc": "The observer of the run's events; none by default."}
    )
    stop: threading.Event | None = field(default=None, metadata={"doc": "Ends the call after the current batch."})


@takes(ReplicateCall)
def replicate(call: ReplicateCall) -> RunSummary:
    """Replicate the tables of a database to Delta Lake or Iceberg tables.

    Needs `logicalrep[replicate]`, or `logicalrep[local]` for the local engine. replicate creates the publication and
    the slot, loads the tables, and applies every commit exactly once. Kill it at any time: the same call resumes where
    it stopped. The work runs on the active Spark session; without a session it runs in processes of this machine,
    without Spark and Java. With `engine="spark"` it starts a local Spark if there is none. The result has the number of
    tables, loaded rows and applied changes, and an LSN: the tables have every commit before it.

    Raises:
        OptionError: an argument has an invalid value.
        ConfigError: `config` has mistakes, or names a missing table or column; the text lists all mistakes.
        MaskKeyError: columns are hashed, and the environment has no key in LOGICALREP_MASK_KEY.
        ListenError: replicate cannot listen at `listen`.
        UnmetError: the server or the role does not meet a requirement; nothing was created. The text has a line for
            each unmet requirement, and `script` the SQL that meets all of them.
        PublicationNeededError: another role must change the publication; the text has the statements.
        StateError: the destination belongs to another server, database, slot or publication.
        SlotError: the slot is lost, or another process reads it.
        FormatError: the library of the format is not installed.
        EngineError: the engine's libraries are not installed, or its processes exit again and again.
        ConnectError: the server did not answer within `retry_timeout`.
        StorageError: replicate cannot write to the destination.
        PausedError: with `once`, the destination is paused.
        TablesStoppedError: with `once`, tables are stopped; all other tables are up to date.

    Example:
        >>> import logicalrep
        >>> logicalrep.replicate("postgresql://replicator@db/shop", "./lake", once=True)
    """
    summarizing = SummaryObserver()
    replicate_with(call, Observers(*filter(None, [call.observer]), summarizing), stop=call.stop)
    return summarizing.summary(State.read(Storage(call.to, call.storage_options or {})))


def replicate_with(
    settings: ReplicateSettings,
    observer: Observer,
    *,
    stop: threading.Event | None = None,
    engine: Engine | None = None,
    shared: SharedSpark | None = None,
    limits: Limits | None = None,
) -> None:
    stop, observed = stop or threading.Event(), Observed()
    with ExitStack() as stack:
        commands = {CallsOnStop: settings.call_on_stop, CallsOnSchemaChange: settings.call_on_schema_change}
        calls = [kind(to, settings.to) for kind, to in commands.items() if to is not None]
        lineage = None if settings.lineage is None else _lineage(settings, settings.lineage)
        observer = Observers(observer, LogObserver(), observed, *calls, *filter(None, [lineage]))
        for call in calls:
            stack.enter_context(call.calling())
        if lineage is not None:
            stack.enter_context(lineage.sending())
        try:
            if engine is None:
                choice = choose_engine(settings.engine)
                observer.on_event(EngineChosen(choice.name, choice.reason))
                choice.refuse_missing(over_connect=shared is not None)
            storage = Storage(settings.to, settings.storage_options or {}, limits or settings.limits)
            start = partial(start_engine, settings, storage, stop, observer, shared)
            if engine is not None:
                start = partial(nullcontext, engine)
            _serve(settings, storage, observer, observed, stop, start)
        except Ended:
            pass
        except Exception as error:
            if stop.is_set() and isinstance(error, LogicalRepError | psycopg.Error):
                # The end was requested. The destination is consistent, and the next run resumes from it.
                observer.on_event(WarningIssued(f"ended, and did not wait for this to pass: {error}"))
                return
            observer.on_event(RunEnded(error, isinstance(error, PausedError)))
            raise


def _lineage(settings: ReplicateSettings, url: str) -> Lineage:
    storage = Storage(settings.to, settings.storage_options or {})

    def describe(name: str) -> StoredColumns | None:
        folder = State.read(storage).tables[name].folder
        stored = table_format(storage, settings.format, settings.table_catalog).open(folder)
        return (
            None
            if stored is None
            else StoredColumns(folder, {field.name: str(field.type) for field in stored.table.stored})
        )

    connection = settings.connection
    return Lineage(url, LineageNames(connection.server, connection.database, settings.to), describe)


def _serve(
    settings: ReplicateSettings,
    storage: Storage,
    observer: Observer,
    observed: Observed,
    stop: threading.Event,
    start: Callable[[], AbstractContextManager[Engine]],
) -> None:
    Identity.read(storage)
    refuse_missing_format(settings.format)
    if settings.once:
        refuse_paused(storage)
    with ExitStack() as stack:
        if settings.listen is not None:
            from logicalrep.observe.page import page
            from logicalrep.observe.serving import serve

            pages = {"/": partial(page, observed, storage.uri)}
            checks = {"/healthz": partial(health, observed), "/readyz": partial(readiness, observed)}
            address = stack.enter_context(serve(settings.listen, observed.figures, pages, checks=checks))
            observer.on_event(PageServed(address))
        ended: deque[float] = deque(maxlen=_MOST_STARTS)
        while True:
            try:
                follow(settings, storage, observer, observed, stop, start)
                return
            except EngineEndedError as error:
                ended.append(time.monotonic())
                if stop.is_set() or (len(ended) == _MOST_STARTS and ended[-1] - ended[0] < _STARTS_WITHIN):
                    raise
                observer.on_event(WarningIssued(f"{error.description}: replicate restarts it, and replication resumes"))
            except SlotError as error:
                is_replaceable = error.code == "SLOT_LOST" and settings.on_lost_slot == "resync"
                if stop.is_set() or not is_replaceable or not may_replace_slot(storage):
                    raise
                slot, publication = settings.slot, settings.publication
                resync(settings.connection, storage, (), new_slot=True, slot=slot, publication=publication)
                text = f"the slot is {error.reason}: replicate creates a new slot and reloads all tables"
                observer.on_event(WarningIssued(text))


def follow(
    settings: ReplicateSettings,
    storage: Storage,
    observer: Observer,
    observed: Observed,
    stop: threading.Event,
    start: Callable[[], AbstractContextManager[Engine]],
) -> None:
    """Prepare the server, start the parts and run the loop. The parts end in the reverse order of their start."""
    guard, limits = Guard(storage, settings), storage.limits
    tables = table_format(storage, settings.format, settings.table_catalog, creates=True)
    server = Wait(
        settings.patience, stop=stop, say=passing(observer, WaitReported), say_end=passing(observer, WaitEnded)
    )
    # The receiver holds the slot, which keeps other writers from the destination.
    with _receive(settings, storage, observer, observed, stop, server) as (prepared, receiver):
        identity, state = prepared.identity, prepared.state
        # A suspended process that held the slot before finds its next state number taken. No process copies rows now.
        states = States(storage)
        states.write(states.last.without_progress)
        guard.store()
        with (
            start() as engine,
            Catalog(
                settings,
                identity.publication,
                identity.slot,
                observer,
                prepared.published.warnings,
                server,
                limits,
            ) as catalog,
            nullcontext() if settings.listen is None else observed.sampling(catalog.query_slot),
            closing(
                KeyIndexes(
                    storage.uri,
                    int((settings.index_size or 0) * 1e6),
                    passing(observer, WarningIssued),
                )
            ) as indexes,
            ThreadPoolExecutor(limits.tables_at_once, thread_name_prefix="logicalrep-apply") as pool,
        ):
            observer.on_event(StepStarted("reading the catalog"))
            context = RunContext(
                settings=settings,
                storage=tables.storage,
                tables=tables,
                identity=identity,
                observer=observer,
                engine=TimedEngine(engine, observed.engine_time),
                indexes=indexes,
                patience=Patience(observer, stop, catalog.describe_retained, limits.failing_seconds),
                stop=stop,
                proven_before=proven_before(state, receiver.server_started),
            )
            # The wait for the server ends first, so that no thread keeps waiting for it.
            with _loader(context, receiver) as loader, server:
                manager = TableManager(context, states, catalog, loader, guard, pool)
                if states.last.lsn:
                    observer.on_event(RunResumed(len(states.last.tables), states.last.lsn))
                with manager.registrations.running():
                    Loop(context, receiver, catalog, manager, states, pool).run()
                observer.on_event(StepStarted("ending"))


@contextmanager
def _receive(
    settings: ReplicateSettings,
    storage: Storage,
    observer: Observer,
    observed: Observed,
    stop: threading.Event,
    server: Wait,
) -> Iterator[tuple[Prepared, ChangeReceiver]]:
    """Prepare the server, and yield a receiver that holds the slot, from the last checkpoint on.

    A process that still runs, as in a rolling restart, keeps the slot until it ends, and saves checkpoints until then:
    the receiver starts over from its last checkpoint.
    """
    while True:
        observer.on_event(StepStarted("checking the server, the role and the destination"))
        prepared = prepare(settings, storage, observer, stop, server)
        slot, position = prepared.identity.slot, prepared.state.lsn
        observer.on_event(RunPrepared(slot))
        observer.on_event(StepStarted(f"starting to read the slot {slot}"))
        receiving = ChangeReceiver(
            settings.connection,
            slot,
            prepared.options,
            state=prepared.state,
            waiting=server,
            traffic=observed.traffic,
            limits=storage.limits,
        )
        with receiving as receiver, naming_remedies(slot, receiver):
            try:
                receiver.wait_until_started()
            except LostPositionError:
                if State.read(storage).lsn == position:
                    raise
                continue
            if State.read(storage).lsn != position:
                continue
            yield prepared, receiver
            return


def _loader(context: RunContext, receiver: ChangeReceiver) -> LoadQueue:
    ending = threading.Event()
    waiting = Wait(
        stop=ending,
        say=passing(context.observer, WaitReported),
        say_end=passing(context.observer, WaitEnded),
        interval=WRITERS_INTERVAL,
    )
    copying = SnapshotCopy(context, waiting, Renewal(context.settings.connection, receiver, waiting))
    return LoadQueue(copying, ending, context.limits)
