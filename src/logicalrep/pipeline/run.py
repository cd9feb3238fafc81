"""`logicalrep.replicate`: a database's tables kept as Delta tables."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import psycopg

from logicalrep.observe.counts import Observed
from logicalrep.observe.logged import Logged
from logicalrep.observe.observer import Observer, Observers
from logicalrep.observe.page import page
from logicalrep.observe.serving import serve
from logicalrep.pipeline.catalog.catalog import Catalog
from logicalrep.pipeline.config.config import Config, read_config
from logicalrep.pipeline.engines.engine import Engine, EngineEndedError
from logicalrep.pipeline.engines.spark import start_spark
from logicalrep.pipeline.engines.timed import TimedEngine
from logicalrep.pipeline.errors import Ended
from logicalrep.pipeline.load.loader import Loader
from logicalrep.pipeline.load.loading import Loading, waiter
from logicalrep.pipeline.load.renewal import Renewal
from logicalrep.pipeline.loop import Loop
from logicalrep.pipeline.masks.guard import Guard
from logicalrep.pipeline.masks.mask_key import MaskKey
from logicalrep.pipeline.receiving import ChangeReceiver
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.settings import ReplicateSettings
from logicalrep.pipeline.setup import prepare, slot_lost
from logicalrep.pipeline.spec.table_settings import TableSettings
from logicalrep.pipeline.state.requests import PausedError, refuse_paused
from logicalrep.pipeline.state.state import State, States
from logicalrep.pipeline.storage.patience import Patience
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.table_writer import TableWriter
from logicalrep.pipeline.tables import TableManager
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.retries import Waiting
from logicalrep.postgres.slots.errors import SlotError
from logicalrep.transactions.table_names import table_names
from logicalrep_runtime.errors import LogicalRepError

_SIDE_BY_SIDE = 32
"""The number of tables written at the same time: few jobs have their work, and their commits wait for disks."""
_MOST_STARTS, _STARTS_WITHIN = 4, 3600.0
"""The number of ends of a Java within some seconds that ends the command too."""


def replicate(
    dsn: str | ConnectionSettings,
    to: str,
    *,
    publication: str | None = None,
    slot: str | None = None,
    failover: bool = False,
    tables: Iterable[str] = (),
    once: bool = False,
    retry_timeout: float | None = None,
    every: float = 10.0,
    keep: float = 24.0,
    unrepresentable: Literal["error", "null", "text"] = "error",
    deletes: Literal["hard", "soft"] = "hard",
    history: bool = False,
    append: bool = False,
    origin: Literal["any", "none"] = "any",
    config: str | Path | Mapping[str, object] | None = None,
    storage_options: Mapping[str, str] | None = None,
    load_sessions: int = 4,
    load_rate: float | None = None,
    listen: str | None = None,
    observer: Observer | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Keep the tables of a database as Delta tables. Needs `logicalrep[replicate]`.

    What is missing is made, the rows that are there are loaded, and what commits is applied, exactly once, whenever the
    process is killed. The same call goes on where the last one ended. It runs on the active Spark session, or on a
    local one of its own.

    Args:
        dsn: libpq's connection string or URI, or settings with more; environment variables such as PGHOST and
            PGPASSWORD apply.
        to: the destination: a folder, or an object store's URI. `schema.table` is the Delta table `to/schema/table`.
        publication: the publication; by default one that is made for the destination.
        slot: the slot; by default one that is made for the destination.
        failover: whether standbys keep the slot, so that it survives a failover; PostgreSQL 17.
        tables: names as in SQL; none for all tables that can be replicated.
        once: end when all that had committed at the start is in the tables; otherwise follow until `stop` is set.
        retry_timeout: the longest wait for a server that is away, in seconds; None for 60 with `once`, and otherwise
            for as long as it takes, with a line a minute.
        every: the seconds between two commits of a table; 0 is as fast as it goes.
        keep: the hours for which old versions of a table can be read.
        unrepresentable: what becomes of values that the column's type cannot hold, such as a timestamp of infinity: the
            table is stopped, NULL, or NULL with the server's text in a column beside it.
        deletes: whether a deleted row goes, or stays with `_deleted` and `_deleted_at`.
        history: keep every version of each row in a second Delta table, `to/schema/table~history`.
        append: keep all changes, one after another, in a second Delta table, `to/schema/table~changes`.
        origin: `none` leaves out changes that were replayed from another server, as in two-way replication; needs
            PostgreSQL 16. Loads copy rows of every origin.
        config: the settings of tables that have some of their own: the path of a YAML file, or a mapping like it.
        storage_options: options of the object store, such as `aws_region`; its usual environment variables apply too.
        load_sessions: the most sessions that copy rows at the same time.
        load_rate: the most megabytes a second that each of them copies; None for no bound.
        listen: serve a page and metrics for Prometheus at `HOST:PORT`, or at a port of this machine alone.
        observer: the observer of what happens; by default nobody.
        stop: ends the call after the batch that is being applied.

    Raises:
        ConfigError: `config` has mistakes, or names a table or a column that is not there; the text has all of them.
        MaskKeyError: columns are hashed, and the environment does not have their key in LOGICALREP_MASK_KEY.
        ListenError: the page cannot be served at `listen`.
        PublicationNeededError: the publication has to be made or changed by somebody else; the text has the statements.
        PreflightError: the server or the role does not meet a requirement.
        StateError: the destination belongs to another server, database, slot or publication.
        SlotError: the slot is lost, or another process reads it.
        ConnectError: the server was away for too long.
        StorageError: the destination cannot be written.
        PausedError: with `once`, the destination is paused.
        TablesStoppedError: with `once`, some tables are stopped; the others are up to date.

    Example:
        >>> import logicalrep
        >>> logicalrep.replicate("postgresql://replicator@db/shop", "./lake", once=True)
    """
    table_settings = TableSettings(
        unrepresentable=unrepresentable, deletes=deletes, history=history, append=append, origin=origin
    )
    settings = ReplicateSettings(
        connection=dsn if isinstance(dsn, ConnectionSettings) else ConnectionSettings(dsn),
        to=to,
        publication=publication,
        slot=slot,
        failover=failover,
        tables=tuple(name for text in tables for name in table_names(text)),
        once=once,
        retry_timeout=retry_timeout,
        every=every,
        keep=keep,
        table_settings=table_settings,
        config=Config() if config is None else read_config(config, table_settings),
        storage_options=storage_options or {},
        load_sessions=load_sessions,
        load_rate=load_rate * 1e6 if load_rate else None,
        listen=listen,
    )
    replicate_with(settings, observer or Observer(), stop=stop)


def replicate_with(
    settings: ReplicateSettings,
    observer: Observer,
    *,
    stop: threading.Event | None = None,
    engine: Engine | None = None,
) -> None:
    """Do what `replicate` does, with settings; `engine` runs the work in place of Spark."""
    logged = Logged()
    stop = stop or threading.Event()
    observer = Observers(observer, logged)
    try:
        _replicate(settings, observer, logged, stop, engine)
    except Ended:
        pass
    except Exception as error:
        if stop.is_set() and isinstance(error, LogicalRepError | psycopg.Error):
            # The end was asked for. What is at the destination is whole, and the next run goes on with it.
            observer.on_warning(f"ended, and did not wait for this to pass: {error}")
            return
        logged.on_ended(error, is_meant=isinstance(error, PausedError))
        raise


def _replicate(
    settings: ReplicateSettings, observer: Observer, logged: Logged, stop: threading.Event, engine: Engine | None
) -> None:
    storage = Storage(settings.to, settings.storage_options)
    by_table = [entry.settings for entry in settings.config.entries.values()]
    settings = replace(settings, mask_key=MaskKey.wanted(by_table))
    if settings.once:
        refuse_paused(storage)
    with ExitStack() as stack:
        observed = None
        if settings.listen is not None:
            observed = Observed()
            pages = {"/": partial(page, observed, storage.uri)}
            address = stack.enter_context(serve(settings.listen, observed.figures, pages))
            observer.on_listening(address)
            observer = Observers(observer, observed)
        ended: deque[float] = deque(maxlen=_MOST_STARTS)
        while True:
            try:
                _follow(settings, storage, observer, logged, observed, stop, engine)
                return
            except EngineEndedError as error:
                ended.append(time.monotonic())
                if stop.is_set() or (len(ended) == _MOST_STARTS and ended[-1] - ended[0] < _STARTS_WITHIN):
                    raise
                observer.on_warning(f"{error.description}; it is started again, and the tables go on where they are")


def _follow(
    settings: ReplicateSettings,
    storage: Storage,
    observer: Observer,
    logged: Logged,
    observed: Observed | None,
    stop: threading.Event,
    engine: Engine | None,
) -> None:
    """Prepare and follow, until `stop` is set or all is up to date; another call goes on where this one ended."""
    guard = Guard(storage, settings)
    waiting = Waiting(settings.patience, stop=stop, say=observer.on_waiting)
    with ExitStack() as stack:
        prepared = prepare(settings, storage, observer, stop, waiting)
        logged.slot = prepared.identity.slot
        if observed is not None:
            observed.slot_name = prepared.identity.slot
        identity = prepared.identity
        # The receiver holds the slot, and so keeps other writers from the destination.
        receiver = stack.enter_context(
            ChangeReceiver(
                settings.connection,
                identity.slot,
                prepared.options,
                acknowledged=State.read(storage).lsn,
                waiting=waiting,
                traffic=None if observed is None else observed.traffic,
            )
        )
        receiver.wait_until_started()
        # A process that had the slot before, and was stopped, finds its next number taken. Nobody copies rows now.
        states = States(storage)
        states.write(states.last.without_progress)
        guard.store()
        engine = timed = TimedEngine(engine or stack.enter_context(start_spark(storage, stop)))
        said = prepared.published.warnings
        catalog = stack.enter_context(Catalog(settings, identity.publication, identity.slot, observer, said, waiting))
        if observed is not None:
            observed.traffic, observed.tasks = receiver.traffic, timed
            stack.enter_context(observed.sampling(catalog.query_slot))
        context = RunContext(
            settings=settings,
            storage=storage,
            identity=identity,
            observer=observer,
            engine=engine,
            patience=Patience(observer, stop, catalog.describe_retained),
            stop=stop,
        )
        pool = stack.enter_context(ThreadPoolExecutor(_SIDE_BY_SIDE, thread_name_prefix="logicalrep-apply"))
        ending = threading.Event()
        renewal = Renewal(settings.connection, receiver, waiter(observer, ending))
        loader = stack.enter_context(Loader(Loading(context, ending, renewal), ending))
        writer = TableWriter(context, catalog, states.check)
        tables = TableManager(context, states.last, catalog, loader, writer, guard, pool)
        # The first to be called at the end, so that no thread waits for the server any more.
        stack.callback(waiting.end)
        try:
            Loop(context, receiver, catalog, tables, states, pool).run()
        except SlotError as error:
            if error.code != "SLOT_LOST":
                raise
            # The error tells what helps a stream's reader.
            raise slot_lost(identity.slot, "lost", states.last.lsn) from error
