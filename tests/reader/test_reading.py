"""Tables are read by their names in every library, now and as of a time, and all of them as they belong together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import logicalrep
from logicalrep.options.kinds import OptionError
from logicalrep.pipeline.formats.stored_table import Position
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.table_formats import FormatName
from logicalrep.pipeline.state import past_states
from logicalrep.pipeline.state.past_states import archive_state, read_state
from logicalrep.pipeline.state.state import State, StateError, States
from logicalrep.pipeline.state.table_state import TableState
from logicalrep.pipeline.storage.data_files import read_rows, write_rows
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.reader import ReadError
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.replicating import replicate_meanwhile, replicate_once
from tests.pipeline.stored import MODES, WriteMode
from tests.postgres.servers import Database
from tests.waiting import eventually

ODD = '"Odd Schema"."Order items"'


EACH_STATE = Limits(past_state_seconds=1e-6)
"""Limits that retain each changed state."""


def now(db: Database) -> datetime:
    timestamp = db.value("SELECT clock_timestamp()")
    assert isinstance(timestamp, datetime)
    return timestamp


def numbers(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(map(int, row)) for row in rows)


@pytest.mark.parametrize(
    ("table_format", "mode"), [("delta", MODES[0]), ("delta", MODES[1]), ("iceberg", "merge-on-read")]
)
def test_each_library_has_the_rows_of_now_and_of_a_time(
    db18: Database,
    tmp_path: Path,
    spark: SparkSession,
    table_format: FormatName,
    mode: WriteMode,
) -> None:
    limits = replace(EACH_STATE, small_file_bytes=1, marked_share=1)
    db18.execute(
        'CREATE SCHEMA "Odd Schema"',
        f'CREATE TABLE {ODD} (id int PRIMARY KEY, "a `b" int, day date)',
        f"INSERT INTO {ODD} SELECT i, 2 * i, date '2026-01-01' + i % 300 FROM generate_series(1, 3000) AS i",
    )
    replicate_once(db18, tmp_path, limits=limits, write_mode=mode, history=True, format=table_format)
    start_time = now(db18)
    db18.execute(f'UPDATE {ODD} SET "a `b" = 0 WHERE id % 100 = 1', f"DELETE FROM {ODD} WHERE id % 100 = 2")
    replicate_once(db18, tmp_path, limits=limits, write_mode=mode, history=True, format=table_format)

    expected = {
        None: [(i, 0 if i % 100 == 1 else 2 * i) for i in range(1, 3001) if i % 100 != 2],
        start_time: [(i, 2 * i) for i in range(1, 3001)],
    }
    for at, rows in expected.items():
        table = logicalrep.read(tmp_path, ODD, at).select(["id", "a_`b"])
        assert table.name == ODD
        assert numbers(zip(*table.arrow().to_pydict().values(), strict=True)) == rows
        assert numbers(table.polars().rows()) == numbers(polars.DataFrame(table).rows()) == rows
        assert numbers(table.pandas().itertuples(index=False)) == rows
        assert numbers(table.spark(spark).collect()) == rows
        relation = table.duckdb(duckdb.connect())
        # A stream that is over would give no rows the second time.
        assert numbers(relation.fetchall()) == numbers(relation.project("*").fetchall()) == rows
    stored = logicalrep.read(tmp_path, ODD).tables.open(logicalrep.read(tmp_path, ODD).folder)
    assert stored is not None
    assert any(file.vector is not None for file in stored.files.values()) == (mode == "merge-on-read")
    history = logicalrep.read(tmp_path, f"{ODD}~history")
    assert history.select(where=[("_is_current", "=", True)]).arrow().num_rows == 2970
    assert history.arrow().num_rows == 3030
    assert logicalrep.read(tmp_path, f"{ODD}~history", start_time).arrow().num_rows == 3000

    # DuckDB and Arrow find the variable by its name; a condition leaves the same rows out everywhere.
    items = logicalrep.read(tmp_path, ODD).select(where=[("day", ">=", "2026-10-20"), ("id", "in", [299, 298, 599, 5])])
    relation = duckdb.connect().sql("SELECT sum(id), max(day) FROM items")
    assert relation is not None
    assert relation.fetchall() == [(299 + 298 + 599, date(2026, 10, 27))]
    assert sorted(row.id for row in items.spark(spark).collect()) == [298, 299, 599]
    assert items.select(["id"]).schema == pa.schema([("id", pa.int32())])


def test_files_without_matching_rows_are_not_opened(db18: Database, tmp_path: Path) -> None:
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY, day date, at timestamptz, price numeric(10,2), part real, name text, empty text)",
        "INSERT INTO t SELECT i, '2026-01-01', '2026-01-01 12:00Z', i, 0.1, 'a' || i, NULL FROM generate_series(1, 9) AS i",
        "INSERT INTO t SELECT i, '2026-02-01', '2026-02-01 12:00Z', i, 0.1, 'b', NULL FROM generate_series(11, 12) AS i",
    )
    replicate_once(db18, tmp_path, limits=EACH_STATE)
    storage = Storage(str(tmp_path))
    stored = logicalrep.read(tmp_path, "t").tables.open("public/t")
    assert stored is not None
    (whole,) = stored.files.values()
    rows = read_rows(storage, "public/t", whole, stored.table.stored, stored.table.stored.names).sort_by("id")
    many = [file for row in range(11) for file in write_rows(storage, "public/t", rows.schema, rows.slice(row, 1))]
    version = stored.commit(many, [whole], Position("test", Lsn(1)))
    table = replace(logicalrep.read(str(tmp_path), "t"), version=version, commit=stored.head.commit)
    # More files than are read at the same time; a stream may be left before its end.
    assert sorted(table.arrow()["id"].to_pylist()) == [*range(1, 10), 11, 12]
    assert table.batches().read_next_batch().num_rows == 1
    old, new = (write_rows(storage, "public/t", part.schema, part) for part in (rows.slice(0, 9), rows.slice(9)))
    version = stored.commit([*old, *new], many, Position("test", Lsn(2)))
    table = replace(logicalrep.read(str(tmp_path), "t"), version=version, commit=stored.head.commit)
    (tmp_path / "public/t" / old[0].path).unlink()
    zone = datetime(2026, 2, 1, 12, tzinfo=UTC)
    for condition, ids in [
        (("day", ">", date(2026, 1, 31)), [11, 12]),
        (("day", "=", "2026-02-01"), [11, 12]),
        (("at", ">=", zone), [11, 12]),
        (("at", ">=", "2026-02-01T13:00:00+01:00"), [11, 12]),
        (("at", "in", [zone, zone + timedelta(days=1)]), [11, 12]),
        (("id", ">", 11), [12]),
        (("name", ">=", "b"), [11, 12]),
        (("name", "<", "a"), []),
        (("empty", "=", "x"), []),
        (("empty", "!=", "x"), []),
    ]:
        assert sorted(table.select(["id"], [condition]).arrow()["id"].to_pylist()) == ids, condition
    # The bounds of a file do not tell of these.
    for condition in [("id", "!=", 100), ("price", ">", Decimal("10.5")), ("day", "<=", date(2026, 1, 1))]:
        with pytest.raises(ReadError, match=r"\[VERSION_GONE\] version .* can no longer be read"):
            table.select(["id"], [condition]).arrow()
    mistakes: list[tuple[tuple[Any, ...], str]] = [
        (("nothing", "=", 1), "names a column 'nothing'"),
        (("id", "like", 1), "expected .column, operator, value."),
        (("id", "="), "expected .column, operator, value."),
        (("id", "=", "x"), "compares id, of the type int32"),
        (("id", "=", 1.5), "compares id"),
        (("at", ">", datetime(2026, 1, 1)), "only one of the time and the column has a zone"),
        (("id", "in", []), "compares id with no value"),
        (("id", "=", None), "NULL equals nothing"),
    ]
    for wrong, text in mistakes:
        with pytest.raises(OptionError, match=text):
            table.select(where=[wrong])
    with pytest.raises(OptionError, match=r"names nothing: public.t has id, day"):
        table.select(["id", "nothing"])


@pytest.fixture(params=["delta", "iceberg", "catalog"])
def old_versions(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Return the options of tables whose log or metadata of old versions goes soon."""
    limits = replace(EACH_STATE, metadata_versions=1, metadata_seconds=0, upkeep_versions=2, snapshots=4)
    if request.param != "catalog":
        return {"format": request.param, "limits": limits}
    uri = f"sqlite:///{tmp_path}/catalog.db"
    return {"format": "iceberg", "catalog": uri, "limits": replace(limits, metadata_versions=2)}


def first_metadata(folder: Path) -> list[Path]:
    """Return the metadata of the first version of a table; none of a Delta table."""
    return sorted((folder / "public/moves/metadata").glob("*.metadata.json"))[:1]


def test_tables_as_of_a_time_belong_together(db18: Database, tmp_path: Path, old_versions: dict[str, Any]) -> None:
    """Each transaction moves a sum from one table to another, and is one line of a third."""
    db18.execute(
        "CREATE TABLE a (id int PRIMARY KEY, sum int)",
        "CREATE TABLE b (id int PRIMARY KEY, sum int)",
        "CREATE TABLE moves (id int PRIMARY KEY)",
        "INSERT INTO a SELECT i, 100 FROM generate_series(1, 20) AS i",
        "INSERT INTO b SELECT i, 100 FROM generate_series(1, 20) AS i",
    )
    times: list[tuple[datetime, int]] = []
    with replicate_meanwhile(db18, tmp_path, **old_versions) as caught_up:
        caught_up()
        first = first_metadata(tmp_path)
        for number in range(1, 31):
            db18.execute(
                f"""DO $$ BEGIN
                    UPDATE a SET sum = sum - {number} WHERE id = {number % 20 + 1};
                    UPDATE b SET sum = sum + {number} WHERE id = {number % 7 + 1};
                    INSERT INTO moves VALUES ({number});
                END $$"""
            )
            times.append((now(db18), number))
            if number % 5 == 0:
                caught_up()
        # The upkeep comes after batches, and removes the first version.
        eventually(lambda: not any(path.exists() for path in first))
    caught_up_at = 0
    for at, number in times:
        tables = logicalrep.at(tmp_path, at, catalog=old_versions.get("catalog"))
        assert {*tables} == {"public.a", "public.b", "public.moves"}
        sums = [sum(tables[name].arrow()["sum"].to_pylist()) for name in ("a", "b")]
        moves = sorted(tables["public.moves"].arrow()["id"].to_pylist())
        assert moves == [*range(1, len(moves) + 1)]
        assert sums == [2000 - sum(moves), 2000 + sum(moves)]
        # Nothing committed later; and all that was applied before the next commit is there.
        assert caught_up_at <= len(moves) <= number
        caught_up_at = number if number % 5 == 0 else caught_up_at
        assert tables.until is not None
        assert tables.until <= at
    last = logicalrep.at(tmp_path, datetime.now(UTC), catalog=old_versions.get("catalog"))
    assert len(last["moves"].arrow()) == 30
    assert (tmp_path / "public/moves/_versions.json").exists() == (old_versions["format"] == "iceberg")


def test_old_files_have_the_columns_of_their_version_in_spark_too(
    db18: Database, tmp_path: Path, spark: SparkSession, old_versions: dict[str, Any]
) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, x smallint, y int, gone int, m smallint[])")
    db18.execute("INSERT INTO t SELECT i, i, 10 * i, 0, '{1}' FROM generate_series(1, 3) AS i")
    times = []
    with replicate_meanwhile(db18, tmp_path, **old_versions) as caught_up:
        for statement in (
            "SELECT 1",
            "ALTER TABLE t RENAME x TO z",
            "ALTER TABLE t RENAME y TO x",
            "ALTER TABLE t DROP gone",
            "ALTER TABLE t ADD gone text DEFAULT 'new'",
            "INSERT INTO t VALUES (4, 40, 4, '{1}', 'own')",
        ):
            db18.execute(statement, "UPDATE t SET id = id WHERE id = 1")
            caught_up()
            times.append(now(db18))
    expected: list[dict[str, object]] = [
        {"id": 2, "x": 2, "y": 20, "gone": 0},
        {"id": 2, "z": 2, "y": 20, "gone": 0},
        {"id": 2, "z": 2, "x": 20, "gone": 0},
        {"id": 2, "z": 2, "x": 20},
        {"id": 2, "z": 2, "x": 20, "gone": "new"},
        {"id": 2, "z": 2, "x": 20, "gone": "new"},
    ]
    for number, (at, row) in enumerate(zip(times, expected, strict=True)):
        table = logicalrep.read(tmp_path, "t", at, catalog=old_versions.get("catalog"))
        table = table.select(where=[("id", "=", 2)])
        assert table.arrow().drop_columns(["m"]).to_pylist() == [row], number
        (stored_row,) = table.spark(spark).collect()
        assert stored_row.asDict(recursive=True) == {**row, "m": [1]}, number
    assert dict(table.spark(spark).dtypes)["z"] == "smallint"


def test_rows_that_a_load_brought_are_of_the_time_of_the_load(db18: Database, tmp_path: Path) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE late (id int PRIMARY KEY)")
    db18.execute("INSERT INTO t VALUES (1)")
    replicate_once(db18, tmp_path, limits=EACH_STATE, tables=["t"])
    start_time = now(db18)
    db18.execute("INSERT INTO late VALUES (1)")
    replicate_once(db18, tmp_path, limits=EACH_STATE, tables=["t", "late"])
    assert [*logicalrep.at(tmp_path, start_time)] == ["public.t"]
    assert [*logicalrep.at(tmp_path, datetime.now(UTC))] == ["public.late", "public.t"]


def test_unreadable_input_is_reported_with_the_reason(db18: Database, tmp_path: Path) -> None:
    db18.execute("CREATE TABLE orders (id int PRIMARY KEY, at timestamp)", "CREATE TABLE customer (id int PRIMARY KEY)")
    db18.execute("INSERT INTO orders VALUES (1, now())")
    with pytest.raises(StateError, match=r"\[DESTINATION_EMPTY\]"):
        logicalrep.read(tmp_path, "orders")
    start_time = now(db18)
    replicate_once(db18, tmp_path, limits=EACH_STATE)
    stored_time = now(db18)
    with pytest.raises(ReadError, match=r"\[TABLE_UNKNOWN\] .* no table public.order; did you mean public.orders\?"):
        logicalrep.read(tmp_path, "order")
    with pytest.raises(ReadError, match=r"has no table x.y; it has public.customer, public.orders"):
        logicalrep.read(tmp_path, "x.y")
    with pytest.raises(ReadError, match=r"has no table public.orders~history; did you mean public.orders\?"):
        logicalrep.read(tmp_path, "orders~history")
    with pytest.raises(ReadError, match=r"\[TIME_NOT_STORED\] .* or before: the earliest is 20"):
        logicalrep.read(tmp_path, "orders", start_time)
    for wrong, text in [("yesterday", "expected a time as in"), ("2026-11-26T12:00", "without a zone")]:
        with pytest.raises(OptionError, match=text):
            logicalrep.at(tmp_path, wrong)
    assert logicalrep.read(tmp_path, "orders", stored_time.isoformat()).arrow().num_rows == 1

    # A table that is stopped has other commits than the others.
    db18.execute("INSERT INTO orders VALUES (2, 'infinity')", "INSERT INTO customer VALUES (1)")
    with pytest.raises(logicalrep.LogicalRepError, match="infinity"):
        replicate_once(db18, tmp_path, limits=EACH_STATE)
    stopped = logicalrep.at(tmp_path, datetime.now(UTC))
    assert {*stopped} == {"public.customer"}
    assert {*stopped.behind} == {"public.orders"}
    with pytest.raises(ReadError, match=r"\[TABLE_NOT_CURRENT\] public.orders .* it was stopped: .*infinity"):
        _ = stopped["orders"]
    assert logicalrep.read(tmp_path, "orders").arrow()["id"].to_pylist() == [1]
    assert logicalrep.read(tmp_path, "orders", stored_time).arrow()["id"].to_pylist() == [1]

    db18.execute("DELETE FROM customer", "INSERT INTO customer VALUES (2)")
    old = logicalrep.at(tmp_path, datetime.now(UTC))["customer"]
    for file in (tmp_path / "public/customer").glob("*.parquet"):
        file.unlink()
    with pytest.raises(ReadError, match=r"\[VERSION_GONE\] version \d+ of public.customer can no longer be read"):
        old.arrow()
    with pytest.raises(ReadError, match="the table's log does not have it"):
        replace(old, version=99).arrow()
    log = tmp_path / "public/customer/_delta_log/00000000000000000000.json"
    log.write_text("{")
    with pytest.raises(logicalrep.LogicalRepError, match="TABLE_LOG_DAMAGED"):
        replace(old).arrow()


def states_of(times: Iterator[datetime] | list[datetime]) -> list[State]:
    table = TableState("public/t", 1, Lsn(1), "load", 1)
    return [
        State(Lsn(number), None, None, {"public.t": replace(table, version=number)}, at.isoformat())
        for number, at in enumerate(times, 1)
    ]


def test_the_last_state_of_each_minute_is_kept_for_the_hours_of_keep(tmp_path: Path) -> None:
    storage, end = Storage(str(tmp_path)), datetime.now(UTC).replace(second=0, microsecond=0)
    times = [end - timedelta(minutes=minutes) for minutes in (600, 500, 61.5, 61.25, 61.1, 30, 0.5)]
    states = States(storage)
    for state in states_of(times):
        archive_state(storage, states, state, 1.0)
        states.write(state)

    def version(at: datetime) -> int | None:
        past_state = read_state(storage, at)
        return None if past_state is None else past_state.tables["public.t"].version

    # What was so an hour ago can be read; of what was before, the last one says how it was then.
    assert version(end - timedelta(minutes=62)) is None
    assert version(times[4]) == 5
    assert version(times[5] - timedelta(seconds=1)) == 5
    assert version(times[5]) == 6
    assert version(end) == 7
    assert len([*(tmp_path / "_logicalrep/past").iterdir()]) == 2
    assert past_states.earliest_time(storage) == times[4]
    with pytest.raises(StateError, match="DESTINATION_HAS_WRITER"):
        archive_state(storage, late := States(storage), write_behind(late, storage, states_of([end])[0]), 1.0)


def write_behind(late: States, storage: Storage, state: State) -> State:
    """Write a state as another process does, after `late` has read the last one."""
    States(storage).write(state)
    return replace(state, until=(datetime.now(UTC) + timedelta(hours=1)).isoformat())


def test_a_state_of_a_version_that_knew_no_times_is_read(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    (state,) = states_of([datetime.now(UTC)])
    States(storage).write(replace(state, until=None))
    assert past_states.earliest_time(storage) is None
    assert read_state(storage, datetime.now(UTC)) is None
    end_time = past_states.latest_commit_time(State.read(storage), state.tables, "2026-01-01T00:00:00+00:00")
    assert datetime.fromisoformat(end_time) > datetime.now(UTC) - timedelta(minutes=5)
    assert (
        past_states.latest_commit_time(replace(state, until="2026-01-02T00:00:00+00:00"), state.tables, None)[:10]
        == "2026-01-02"
    )
