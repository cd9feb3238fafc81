"""A commit that a table does not take: it is kept, with all changes after it, and can be left out."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from logicalrep.cli.main import main
from logicalrep.observe.events import ErrorCounted, RunEvent, WarningIssued
from logicalrep.observe.observer import Observer
from logicalrep.pipeline.buffer.change_buffer import ChangeBuffer
from logicalrep.pipeline.buffer.pending_loads import HeldCommit
from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.operate.resync import resync
from logicalrep.pipeline.operate.skip import SkipError, skip
from logicalrep.pipeline.run.loop import TablesStoppedError
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.comparison import delta_rows, find_differences
from tests.pipeline.reading import open_stored, read_properties, read_table
from tests.pipeline.replicating import replicate_meanwhile, replicate_once
from tests.postgres.servers import Database
from tests.waiting import eventually

T = TableName("public", "t")
ALL = TableSettings(history=True, append=True)


class RecordedEvents(Observer):
    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.failures: Counter[str] = Counter()

    def on_event(self, event: RunEvent) -> None:
        match event:
            case WarningIssued(text):
                self.warnings.append(text)
            case ErrorCounted(kind):
                self.failures[kind] += 1


@pytest.fixture
def db(db18: Database) -> Database:
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY, at date)",
        "CREATE TABLE other (id int PRIMARY KEY)",
        "INSERT INTO t VALUES (1, '2020-01-01')",
    )
    return db18


def refused(storage: Path) -> Lsn:
    """Return the commit at which the table is stopped."""
    state = State.read(Storage(str(storage))).tables["public.t"]
    assert state.state == "stopped"
    assert state.refused is not None
    return Lsn(state.refused)


def stopped(db: Database, storage: Path, **options: TableSettings) -> str:
    """Run until all is there that can be; return why the table is stopped."""
    with pytest.raises(TablesStoppedError) as raised:
        replicate_once(db, storage, **options)
    return str(raised.value)


def make_bad_commit(db: Database) -> None:
    """Commit rows that a date column rejects and a row that it accepts, between other commits."""
    db.execute(
        "INSERT INTO t VALUES (2, '2020-01-02')",
        "BEGIN",
        "INSERT INTO t VALUES (3, '2020-01-03'), (4, 'infinity')",
        "INSERT INTO other VALUES (3)",
        "COMMIT",
        "INSERT INTO t VALUES (5, '2020-01-05')",
        "UPDATE t SET id = id + 10 WHERE id < 3",
        "INSERT INTO other VALUES (5)",
    )


def lacking(db: Database) -> Counter[tuple[object, ...]]:
    """Return the rows of the server without those that the commit brought."""
    return Counter(db.rows("SELECT * FROM t WHERE id NOT IN (3, 4)"))


@pytest.mark.parametrize(
    "settings", [pytest.param(TableSettings(), marks=pytest.mark.thorough), ALL], ids=["", "all is kept"]
)
def test_it_is_skipped_while_it_runs(
    db: Database, tmp_path: Path, settings: TableSettings, caplog: pytest.LogCaptureFixture
) -> None:
    storage, events = Storage(str(tmp_path)), RecordedEvents()
    with replicate_meanwhile(db, tmp_path, events, table_settings=settings) as caught_up:
        caught_up()
        make_bad_commit(db)
        eventually(lambda: State.read(storage).tables["public.t"].state == "stopped")
        lsn = refused(tmp_path)
        db.execute("INSERT INTO t VALUES (6, '2020-01-06')")
        for wrong, text in (
            ((T, Lsn(lsn + 1)), f"is stopped at the commit {lsn}, not at "),
            ((TableName("public", "other"), lsn), "public.other is not stopped"),
        ):
            with pytest.raises(SkipError, match=rf"\[SKIP_REFUSED\] .*{text}"):
                skip(db.settings, storage, *wrong)
        # What was committed before it in the same batch is there.
        assert (2, None) not in delta_rows(f"{tmp_path}/public/t")
        assert len(delta_rows(f"{tmp_path}/public/t")) == 2
        assert skip(db.settings, storage, T, lsn)
        eventually(lambda: State.read(storage).tables["public.t"].state == "following")
        db.execute("INSERT INTO t VALUES (7, '2020-01-07')")
        caught_up()
    assert delta_rows(f"{tmp_path}/public/t") == lacking(db)
    assert find_differences(db.dsn, str(tmp_path), ["public.other"]) == {}
    assert f"the commit {lsn} of public.t was skipped, as requested: the table lacks its 2 changes" in "; ".join(
        events.warnings
    )
    assert "the table lacks its 2 changes" in caplog.text
    assert events.failures == {"changes": 1}
    assert "logicalrep.stopped" not in read_properties(str(tmp_path / "public/t"))
    if settings.history:
        changes = read_table(f"{tmp_path}/public/t~changes")
        assert not {3, 4} & set(changes["id"].to_pylist())
        versions = read_table(f"{tmp_path}/public/t~history")
        assert not {3, 4} & set(versions["id"].to_pylist())
    # It stays visible, also in later runs, until the table is loaded again.
    replicate_once(db, tmp_path, table_settings=settings)
    (shown,) = State.read(storage).tables["public.t"].skipped
    assert (shown["lsn"], shown["changes"]) == (str(lsn), 2)
    db.execute("DELETE FROM t WHERE id = 4")
    resync(db.settings, storage, [T])
    replicate_once(db, tmp_path, table_settings=settings)
    assert find_differences(db.dsn, str(tmp_path), ["public.t"]) == {}
    skipped = State.read(storage).tables["public.t"].skipped
    assert [commit["folders"] for commit in skipped] == (
        [["public/t~changes", "public/t~history"]] if settings.history else []
    )


def test_held_changes_survive_runs_and_status_shows_them(
    db: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replicate_once(db, tmp_path)
    make_bad_commit(db)
    text = stopped(db, tmp_path)
    lsn = refused(tmp_path)
    assert re.search(rf"\[COLUMN_VALUE\] .*; in the commit {lsn}; .* or logicalrep skip public\.t {lsn}, ", text)
    db.execute("INSERT INTO t VALUES (6, '2020-01-06')", "DELETE FROM t WHERE id = 5")
    # Each run tries again what it has kept.
    assert str(lsn) in stopped(db, tmp_path)
    arguments = ["--dsn", db.dsn, "--to", str(tmp_path)]
    assert main(["skip", "t", "0/1", *arguments]) != 0
    assert main(["skip", "t", "what", *arguments]) != 0
    assert Storage(str(tmp_path)).list("_logicalrep/requests") == []
    assert main(["status", *arguments]) == 0
    assert "public.t      stopped: held" in capsys.readouterr().out
    assert main(["skip", "t", str(lsn), *arguments]) == 0
    assert "replicate is not running: the next run skips commit" in capsys.readouterr().err
    replicate_once(db, tmp_path)
    assert Storage(str(tmp_path)).list("_logicalrep/requests") == []
    assert delta_rows(f"{tmp_path}/public/t") == lacking(db)
    assert main(["status", *arguments]) == 0
    assert re.search(rf"skipped the commit {lsn} at \S+, 2 changes: public/t\n", capsys.readouterr().out)
    assert main(["status", "--json", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["tables"]["public.t"]["skipped"][0]["lsn"] == str(lsn)


def test_each_commit_is_skipped_by_itself(db: Database, tmp_path: Path) -> None:
    replicate_once(db, tmp_path)
    for number in range(2, 20):
        db.execute(f"INSERT INTO t VALUES ({number}, '{'infinity' if number in (7, 8, 15) else '2020-01-01'}')")
    seen = []
    for _ in range(3):
        stopped(db, tmp_path)
        seen.append(refused(tmp_path))
        assert len(delta_rows(f"{tmp_path}/public/t")) == (6, 6, 12)[len(seen) - 1]
        skip(db.settings, Storage(str(tmp_path)), T, seen[-1])
    replicate_once(db, tmp_path)
    assert sorted(set(seen)) == seen
    assert delta_rows(f"{tmp_path}/public/t") == Counter(db.rows("SELECT * FROM t WHERE at < 'infinity'"))
    # A later change of a row that it lacks brings it, or the table is loaded again.
    db.execute("UPDATE t SET at = '2021-01-01' WHERE id = 7", "DELETE FROM t WHERE id IN (8, 15)")
    replicate_once(db, tmp_path)
    assert find_differences(db.dsn, str(tmp_path), ["public.t"]) == {}


@pytest.mark.thorough
def test_a_load_replaces_the_held_changes(db: Database, tmp_path: Path) -> None:
    replicate_once(db, tmp_path, table_settings=ALL)
    make_bad_commit(db)
    stopped(db, tmp_path, table_settings=ALL)
    db.execute("DELETE FROM t WHERE id = 4")
    resync(db.settings, Storage(str(tmp_path)), [T])
    replicate_once(db, tmp_path, table_settings=ALL)
    assert find_differences(db.dsn, str(tmp_path), ["public.t"]) == {}
    bad_commit_again = "INSERT INTO t VALUES (100, '-infinity')"
    db.execute(bad_commit_again)
    stopped(db, tmp_path, table_settings=ALL)
    # Other settings are what helps here.
    replicate_once(db, tmp_path, table_settings=TableSettings(unrepresentable="null"))
    assert delta_rows(f"{tmp_path}/public/t")[100, None] == 1
    assert ChangeBuffer(Storage(str(tmp_path))).pending_loads() == {}


def test_a_held_commit_that_nobody_skips_expires(db: Database, tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    replicate_once(db, tmp_path)
    make_bad_commit(db)
    stopped(db, tmp_path)
    lsn = refused(tmp_path)
    (mark,) = ChangeBuffer(storage).pending_loads().values()
    assert isinstance(mark, HeldCommit)
    ChangeBuffer(storage).save_pending_load(replace(mark, since=mark.since - 25 * 3600))
    assert re.search("was refused 24 hours ago; its changes are not buffered", stopped(db, tmp_path))
    with pytest.raises(SkipError, match="no longer buffered"):
        skip(db.settings, storage, T, lsn)
    db.execute("DELETE FROM t WHERE id = 4")
    # It does not go on with a gap, whatever the table would take now.
    stopped(db, tmp_path)
    resync(db.settings, storage, [T])
    replicate_once(db, tmp_path)
    assert find_differences(db.dsn, str(tmp_path), ["public.t"]) == {}
    assert list(ChangeBuffer(storage).changes("public/t")) == []


def test_a_skip_that_was_cut_off_reloads_the_table(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicate_once(db, tmp_path, table_settings=ALL)
    make_bad_commit(db)
    stopped(db, tmp_path, table_settings=ALL)
    skip(db.settings, Storage(str(tmp_path)), T, refused(tmp_path))
    with monkeypatch.context() as patch:
        done: list[str] = []

        def cut_off(log: StoredTable, *arguments: object) -> None:
            if done:
                raise KeyboardInterrupt
            done.append(log.folder)
            original(log, *arguments)  # type: ignore[arg-type]

        stored = type(open_stored(tmp_path, "public/t"))
        original = stored.skip
        patch.setattr(stored, "skip", cut_off)
        with pytest.raises(KeyboardInterrupt):
            replicate_once(db, tmp_path, table_settings=ALL)
    db.execute("DELETE FROM t WHERE id = 4")
    replicate_once(db, tmp_path, table_settings=ALL)
    assert find_differences(db.dsn, str(tmp_path), ["public.t"]) == {}


@pytest.mark.thorough
def test_a_dropped_table_leaves_nothing_to_the_next_of_its_name(db: Database, tmp_path: Path) -> None:
    replicate_once(db, tmp_path)
    make_bad_commit(db)
    stopped(db, tmp_path)
    db.execute("DROP TABLE t", "CREATE TABLE t (id int PRIMARY KEY, at date)", "INSERT INTO t VALUES (1, '2022-01-01')")
    replicate_once(db, tmp_path)
    assert find_differences(db.dsn, str(tmp_path), ["public.t"]) == {}
    assert ChangeBuffer(Storage(str(tmp_path))).pending_loads() == {}
