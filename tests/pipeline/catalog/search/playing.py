"""Fifty histories at once under one `replicate`, which runs, is killed, or refreshes too early; and what differs then."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import psycopg
import pytest
from psycopg import sql

from conformance.histories.generating import History
from conformance.histories.statements import Part, Players, interleaved, setup_statements
from conformance.histories.subjects_masks import stops
from logicalrep.observe.events import LoadsNeeded, RunEvent, TableStopped
from logicalrep.observe.observer import Observer
from logicalrep.pipeline.catalog import catalog as catalogs
from logicalrep.pipeline.catalog.catalog import Catalog
from logicalrep.pipeline.catalog.definitions import catalog_snapshot
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.run.loop import TablesStoppedError
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.server import query_wal_head
from logicalrep.transactions.table_names import TableName
from tests.pipeline.catalog.search.comparing import MASK_KEY, Expected, difference, in_clear, masked
from tests.pipeline.catalog.search.owning import OwningCatalog, owning_catalog
from tests.pipeline.catalog.search.stored import Stored
from tests.pipeline.comparison import query_rows
from tests.pipeline.index.small_indexes import index_small_tables
from tests.pipeline.kills import Killed, Kills
from tests.pipeline.replicating import replicate_once, settings
from tests.postgres.servers import Database, create_database
from tests.waiting import eventually

_OPTIONS = "-c TimeZone=UTC -c extra_float_digits=3 -c synchronize_seqscans=off -c lock_timeout=5s"
# The published rows of each table without an unlogged partition. A cast tells the texts of arrays of enums from labels.
_ENTRIES = """
SELECT schemaname, tablename, sent.names, {filter}, sent.texts
FROM pg_publication_tables CROSS JOIN LATERAL (
    SELECT array_agg(attname ORDER BY attnum) AS names,
        array_agg(attname || CASE WHEN typcategory = 'A' THEN '::text[]' ELSE '' END ORDER BY attnum) AS texts
    FROM pg_attribute JOIN pg_type AS type ON type.oid = atttypid
    WHERE attrelid = format('%%I.%%I', schemaname, tablename)::regclass AND attnum > 0 AND NOT attisdropped AND {is_sent}
) AS sent
WHERE pubname = 'p' AND NOT EXISTS (
    SELECT FROM pg_partition_tree(format('%%I.%%I', schemaname, tablename)) AS part
    JOIN pg_class AS class ON class.oid = relid AND relpersistence = 'u'
) ORDER BY 1, 2
"""
# Early minors of 15 list generated columns, which they do not send; 13 and 14 list no columns.
_OF_MAJOR = {
    13: {"filter": "NULL", "is_sent": "attgenerated = ''"},
    15: {"filter": "rowfilter", "is_sent": "attname = ANY (attnames) AND attgenerated = ''"},
    18: {"filter": "rowfilter", "is_sent": "attname = ANY (attnames)"},
}
_SETTINGS = ("publish = 'insert'", "publish_via_partition_root = false", "publish_generated_columns = stored")
LIMITS = index_small_tables(Limits(metadata_versions=1_000_000, loads_at_once=1_000_000))
"""All versions of Iceberg tables are compared."""
_MOST_KILLS, _LAST_KILL = 3, 400
"""The kills of a phase, and the write up to which one comes: a run of fifty histories has some hundreds."""
DOWN = ("down", "down, then refreshes too early")
"""What `replicate` does in phases that take the least time."""


@dataclass(frozen=True)
class Schedule:
    """What happens to `replicate` and to the publication while histories are played."""

    seed: object
    phases: int = 4
    settings: TableSettings = field(default_factory=TableSettings)
    changes_publication: bool = False
    """Whether a statement changes the whole publication, so that all tables are loaded again."""
    has_index: bool = False
    """Whether the rows that change are found by indexes of the tables' keys."""
    is_ours: bool = False
    """Whether `replicate` makes the publication and keeps it complete; else it is the user's."""
    has_schemas: bool = False
    """Whether the publication has schemas, so that no column list can be in it."""

    catalog: str = ""
    """The name of the catalog that owns the tables; none for an empty text."""
    version: int | str = 18
    """The server's major or minor version."""
    kinds: tuple[str, ...] = (
        *DOWN,
        "down, then killed",
        "runs",
        "runs, and refreshes too early",
    )
    """What `replicate` may do in a phase."""

    def moments(self) -> list[str]:
        """Return what `replicate` does in each phase."""
        return random.Random(f"{self.seed}/moments").choices(self.kinds, k=self.phases)


@dataclass
class Outcome:
    """What came of histories."""

    wrong: dict[str, str] = field(default_factory=dict)
    """What is wrong, by the history's name."""
    loads: dict[str, list[str]] = field(default_factory=dict)
    """The reasons for loads after the first, by the history's name."""
    statements: int = 0
    refused: int = 0
    """The statements that the server refused."""


class _Watched(Observer):
    """Collects the reasons for loads, and why tables stop."""

    def __init__(self) -> None:
        self.reasons: list[tuple[str, str]] = []
        self.stopped: dict[str, str] = {}

    def on_event(self, event: RunEvent) -> None:
        match event:
            case LoadsNeeded(tables, reason):
                self.reasons += [(table.schema, f"{table.name}: {reason}") for table in tables]
            case TableStopped(table, reason):
                self.stopped[str(table)] = reason


def play(histories: Sequence[History], schedule: Schedule, folder: Path) -> Outcome:
    """Play histories in a new database, and return what came of them."""
    with ExitStack() as stack:
        database = stack.enter_context(create_database(schedule.version))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("LOGICALREP_MASK_KEY", MASK_KEY)
        patch.setenv("XDG_CACHE_HOME", str(folder.parent / "cache"))
        players = [
            stack.enter_context(psycopg.connect(database.dsn, autocommit=True, options=_OPTIONS)) for _ in range(2)
        ]
        playing = _Play(histories, schedule, folder, database, players)
        if schedule.catalog:
            playing.use_catalog(stack.enter_context(owning_catalog(schedule.catalog, schedule.seed, folder)))
        return playing.run()


class _Play:
    def __init__(
        self,
        histories: Sequence[History],
        schedule: Schedule,
        folder: Path,
        database: Database,
        players: Sequence[psycopg.Connection[Any]],
    ) -> None:
        self._histories = histories
        self._schedule = schedule
        self._folder = folder
        self._database = database
        self._writer, self._players = players[0], Players(players)
        self._chance = random.Random(f"{schedule.seed}/play")
        self._watched = _Watched()
        masks = {f"{history.name}.{table}": mask for history in histories for table, mask in history.masks.items()}
        self._options: dict[str, Any] = {
            "publication": "p",
            "table_settings": schedule.settings,
            "format": schedule.settings.format,
            "config": {"tables": masks},
            "index_size": 100.0 if schedule.has_index else None,
        }
        self._settings = settings(database, folder, **self._options)
        self._by_name = {history.name: history for history in histories}
        self._stored = Stored()
        self._outcome = Outcome()

    def use_catalog(self, catalog: OwningCatalog) -> None:
        self._options |= catalog.options
        self._stored = Stored(locate=catalog.locate)

    def run(self) -> Outcome:
        self._set_up()
        replicate_once(self._database, self._folder, limits=LIMITS, **self._options)
        moments = self._schedule.moments()
        for number, moment in enumerate(moments):
            statements = interleaved(self._histories, number, self._chance)
            with ExitStack() as stack:
                if "too early" in moment:
                    stack.enter_context(_early_refreshes(self._database.dsn, self._chance.randint(1, 4)))
                if moment.startswith("runs"):
                    self._run_meanwhile(statements)
                else:
                    self._play(statements)
                    if "killed" in moment:
                        self._run_with_kills()
                self._run_once()
            # What is wrong now may be loaded later, and be right again.
            self._compare(number)
        for schema, reason in self._watched.reasons:
            self._outcome.loads.setdefault(schema.removesuffix("_b"), []).append(reason)
        self._outcome.statements, self._outcome.refused = self._players.statements, self._players.refused
        return self._outcome

    def _set_up(self) -> None:
        player, is_ours = self._writer, self._schedule.is_ours
        if not is_ours:
            player.execute("CREATE PUBLICATION p WITH (publish_via_partition_root = true)")
        for history in self._histories:
            texts = setup_statements(history)
            texts += [f"ALTER PUBLICATION p ADD TABLE {entry}" for entry in history.entries if not is_ours]
            player.execute("; ".join(texts).encode())

    # Statements

    def _play(self, parts: Sequence[Part]) -> None:
        publication = self._chance.randrange(len(parts) + 1) if self._schedule.changes_publication and parts else None
        for number, part in enumerate(parts):
            if number == publication:
                self._change_publication()
            self._players.play(part)

    def _change_publication(self) -> None:
        """Change what the publication sends, and change it back; or drop it and make it again."""
        player, kind = self._writer, self._chance.randrange(3)
        player.execute("SET search_path = ''")
        if kind == 2:
            entries = player.execute(
                "SELECT format('%%I.%%I', nspname, relname), (SELECT ' (' || string_agg(quote_ident(attname), ', ') || ')' "
                "FROM pg_attribute WHERE attrelid = prrelid AND attnum = ANY (prattrs::int2[])), "
                "' WHERE (' || pg_get_expr(prqual, prrelid) || ')' FROM pg_publication_rel "
                "JOIN pg_class AS class ON class.oid = prrelid JOIN pg_namespace AS n ON n.oid = relnamespace",
                (),
            ).fetchall()
            listed = [f"TABLE {name}{columns or ''}{where or ''}" for name, columns, where in entries]
            schemas = player.execute("SELECT pnnspid::regnamespace::text FROM pg_publication_namespace").fetchall()
            listed += [f"TABLES IN SCHEMA {name}" for (name,) in schemas]
            player.execute(
                f"DROP PUBLICATION p; CREATE PUBLICATION p{' FOR ' * bool(listed)}{', '.join(listed)} "
                "WITH (publish_via_partition_root = true)".encode()
            )
            return
        setting = _SETTINGS[kind]
        player.execute(f"ALTER PUBLICATION p SET ({setting})".encode())
        for history in self._histories:
            # Rows that are not sent: their tables have to be loaded, though all is as before afterwards.
            for entry in history.entries:
                table = entry.split()[0]
                with suppress(psycopg.Error):
                    player.execute(f"UPDATE {history.name}.{table} SET id = id + 5000 WHERE id = 1".encode())
        player.execute(
            "ALTER PUBLICATION p SET (publish = 'insert, update, delete, truncate', publish_via_partition_root = true)"
        )

    # `replicate`

    def _run_once(self) -> None:
        with suppress(TablesStoppedError):
            replicate_with(
                settings(self._database, self._folder, once=True, **self._options),
                self._watched,
                engine=SequentialEngine(),
                limits=LIMITS,
            )

    def _run_with_kills(self) -> None:
        """End runs at a write, one after another."""
        with pytest.MonkeyPatch.context() as patch:
            kills = Kills(patch)
            for _ in range(_MOST_KILLS):
                kills.at(self._chance.randint(1, _LAST_KILL))
                with suppress(Killed):
                    self._run_once()

    def _run_meanwhile(self, parts: Sequence[Part]) -> None:
        refreshes, stop, query = count(1), threading.Event(), Catalog.query_tables
        seen, errors = [0], []

        def counted(catalog: Catalog) -> Any:
            answer = query(catalog)
            seen[0] = next(refreshes)
            return answer

        def run() -> None:
            try:
                replicate_with(
                    settings(self._database, self._folder, every=0.0, **self._options),
                    self._watched,
                    engine=SequentialEngine(),
                    stop=stop,
                    limits=replace(LIMITS, catalog_seconds=0.3, checkpoint_seconds=0.1),
                )
            except BaseException as error:
                errors.append(error)

        def is_up_to_date() -> bool:
            if errors:
                raise errors[0]
            state = State.read(Storage(str(self._folder)))
            return (
                state.lsn >= end
                and seen[0] > refresh_count
                and all(table.state != "loading" for table in state.tables.values())
            )

        thread = threading.Thread(target=run)
        with (
            mock.patch.object(Catalog, "query_tables", counted),
        ):
            thread.start()
            try:
                self._play(parts)
                end, refresh_count = query_wal_head(self._writer), seen[0] + 1
                eventually(is_up_to_date)
            finally:
                stop.set()
                thread.join()

    # Comparison

    def _compare(self, phase: int) -> None:
        wrong: dict[str, str] = {}
        entries = _ENTRIES.format(**_OF_MAJOR[max(major for major in _OF_MAJOR if major <= self._database.major)])
        with psycopg.connect(self._database.dsn, options=_OPTIONS) as connection:
            for schema, table, columns, where, listed in connection.execute(entries.encode(), ()).fetchall():
                condition = "" if where is None else f" WHERE {where}"
                query = sql.SQL(f"SELECT {', '.join(listed)} FROM {schema}.{table}{condition}")
                rows = query_rows(connection, query)
                if mistake := self._difference(schema, table, columns, rows, phase):
                    name = schema.removesuffix("_b")
                    wrong[name] = f"{wrong.get(name, '')}{schema}.{table} after phase {phase + 1}: {mistake}\n"
        self._outcome.wrong = wrong | self._outcome.wrong

    def _difference(self, schema: str, table: str, columns: list[str], rows: Counter[Any], phase: int) -> str:
        history, folder = self._by_name[schema.removesuffix("_b")], self._folder / schema / table
        reason = self._watched.stopped.get(f"{schema}.{table}")
        if table in history.masks and stops(history.phases[: phase + 1]):
            # Nobody knows for how long it is stopped: another statement may have exchanged the names back.
            rows_in_clear = [row for version in self._stored.versions(folder) for row in version.rows]
            return in_clear(rows_in_clear)
        if reason is not None and "OLD_ROWS_INCOMPLETE" in reason:
            # The server does not tell which rows change.
            return ""
        if reason is not None:
            return f"it is stopped: {reason}"
        kept = self._settings.of(TableName(schema, table))
        expected = Expected(*masked(columns, rows, kept), kept, history.transactions if table in history.whole else ())
        return difference(self._stored, folder, expected)


@contextmanager
def _early_refreshes(dsn: str, number: int) -> Iterator[None]:
    """Let some refreshes see the catalog as it was before; as those do that are made right after a commit was received."""
    remaining, lock, refresh = [number], threading.Lock(), Catalog.refresh
    asked = threading.local()

    with psycopg.connect(dsn) as holder:
        holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        (snapshot,) = holder.execute("SELECT pg_export_snapshot()").fetchall()[0]

        @contextmanager
        def early_state(connection: Any) -> Iterator[None]:
            with lock:
                is_early = getattr(asked, "is_for_rows", False) and remaining[0] > 0
                remaining[0] -= is_early
            if not is_early:
                with catalog_snapshot(connection):
                    yield
                return
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                connection.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'".encode())
                yield

        def early_refresh(catalog: Catalog, oids: Any) -> Any:
            asked.is_for_rows = True
            try:
                return refresh(catalog, oids)
            finally:
                asked.is_for_rows = False

        with (
            mock.patch.object(catalogs, "catalog_snapshot", early_state),
            mock.patch.object(Catalog, "refresh", early_refresh),
        ):
            yield
        holder.rollback()


__all__ = ["DOWN", "Outcome", "Schedule", "play"]
