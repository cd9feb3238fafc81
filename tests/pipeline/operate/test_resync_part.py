"""`logicalrep resync --where`, and of one partition: these rows are mended, and no others."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from logicalrep.cli.main import main
from logicalrep.observe.figures import Phase
from logicalrep.observe.observer import Observer, Observers
from logicalrep.pipeline.apply.rewriting import write_versions
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.engines.spark.engine import SparkEngine
from logicalrep.pipeline.engines.spark.jobs import ClassicJobs
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import Position, application_id
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.operate.resync import resync, resync_part
from logicalrep.pipeline.run.loop import TablesStoppedError
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.state.requests import PartError, RequestedPart, request_part, request_resync, request_skip
from logicalrep.pipeline.state.state import Identity, State, States
from logicalrep.pipeline.storage.data_files import read_rows
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.tables.buffers import TableBuffers
from logicalrep.pipeline.tables.writer import TableWriter
from logicalrep.postgres.table_rows.conditions import ColumnComparison, ConditionError, parse_condition
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.companions import ALL_COMPANIONS, companion_differences
from tests.pipeline.comparison import find_differences
from tests.pipeline.kills import Killed, Kills
from tests.pipeline.observed_loads import RowCounter
from tests.pipeline.reading import load_name, read_table
from tests.pipeline.replicating import Warnings, replicate_meanwhile, replicate_once, settings
from tests.postgres.servers import Database
from tests.waiting import eventually

T = TableName("public", "t")
TABLE = (
    "CREATE TABLE t (id int PRIMARY KEY, v text)",
    "INSERT INTO t SELECT i, 'old' FROM generate_series(1, 1000) AS i",
)


def damage(storage: Path | str, folder: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Change the rows of a stored table behind the back of all, in a commit of ours."""
    place, identity = Storage(str(storage)), Identity.read(Storage(str(storage)))
    assert identity is not None
    stored = table_format(place, identity.table_format).open(folder)
    assert stored is not None
    schema, timeline = stored.table.stored, State.read(place).position(identity.system_identifier).timeline
    rows = [read_rows(place, folder, file, schema, schema.names) for file in stored.files.values()]
    application = application_id(identity.system_identifier, 0 if timeline is None else timeline.id, stored.load)
    lsn = stored.applied(application)
    assert lsn is not None
    added = write_versions(place, folder, stored.table, change(pa.concat_tables(rows)).cast(schema))
    stored.commit(added, list(stored.files.values()), Position(application, lsn))


def requests_at(storage: Storage) -> list[str]:
    return storage.list("_logicalrep/requests")


def without(condition: pc.Expression, rows: pa.Table) -> pa.Table:
    return rows.filter(~condition)


def with_changed(column: str, condition: pc.Expression, rows: pa.Table) -> pa.Table:
    """Return rows with another text in a column where a condition holds."""
    rest, matching = rows.filter(~condition), rows.filter(condition)
    number = rows.schema.get_field_index(column)
    return pa.concat_tables(
        [rest, matching.set_column(number, rows.field(number), pa.repeat("damaged", len(matching)))]
    )


def with_copies(key: str, condition: pc.Expression, add: int, rows: pa.Table) -> pa.Table:
    """Return rows and copies of those for which a condition holds, with other keys."""
    matching = rows.filter(condition)
    number = rows.schema.get_field_index(key)
    keys = pc.add(matching[key], add).cast(rows.schema.field(key).type)
    return pa.concat_tables([rows, matching.set_column(number, rows.field(number), keys)])


def damaged_in_all_ways(rows: pa.Table) -> pa.Table:
    """Return the rows with some missing, changed, stale and duplicate rows: below 100, and likewise from 500 on."""
    key = pc.field("id")
    rows = without(pc.is_in(key, pa.array([10, 11, 510])), rows)
    rows = with_changed("v", pc.is_in(key, pa.array([20, 21, 520])), rows)
    rows = with_copies("id", pc.is_in(key, pa.array([30, 530])), 0, rows)
    # Of 540 - 100 there are two rows then; -60 and -440 are none on the server.
    return with_copies("id", pc.is_in(key, pa.array([40, 540])), -100, with_copies("id", key == 560, -1000, rows))


def run(db: Database, storage: Path | str, observer: Observer | None = None, **options: Any) -> Observer:
    observer = observer or Observers()
    replicate_with(settings(db, storage, once=True, **options), observer, engine=SequentialEngine())
    return observer


def rows_now(storage: Path | str, folder: str = "public/t") -> list[tuple[int, str]]:
    rows = read_table(f"{storage}/{folder}").to_pylist()
    return sorted((row["id"], row["v"]) for row in rows if not row.get("_is_deleted") and row.get("_is_current", True))


def is_kept(row: dict[str, Any]) -> bool:
    return not row.get("_is_deleted") and bool(row.get("_is_current", True))


class Pickling(SequentialEngine):
    """An engine that pickles and unpickles its items and results, as for another process."""

    def run(self, function: Callable[[Any], Any], items: Sequence[Any], nbytes: int) -> list[Any]:
        function, items = pickle.loads(pickle.dumps((function, list(items))))
        return list(pickle.loads(pickle.dumps([function(item) for item in items])))


OPTIONS: dict[str, dict[str, Any]] = {
    "rows": {},
    "all is kept": {"table_settings": ALL_COMPANIONS},
    "rows are marked in files": {"write_mode": "merge-on-read"},
    "iceberg": {"format": "iceberg", "history": True},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_rows_of_a_condition_are_mended_and_no_others(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    db18.execute(*TABLE)
    replicate_once(db18, tmp_path, **options)
    load = load_name(tmp_path, "public/t")
    damage(tmp_path, "public/t", damaged_in_all_ways)
    has_history = (tmp_path / "public/t~history").exists()
    if has_history:
        damage(tmp_path, "public/t~history", damaged_in_all_ways)
    rows_before = rows_now(tmp_path)
    assert not resync_part(db18.settings, Storage(str(tmp_path)), T, parse_condition("id < 500"))
    db18.execute("UPDATE t SET v = 'new' WHERE id IN (9, 20, 509, 999)", "DELETE FROM t WHERE id IN (50, 998)")
    observer = RowCounter()
    replicate_with(
        settings(db18, tmp_path, once=True, **options), observer, engine=Pickling(), limits=Limits(statement_keys=300)
    )
    assert observer.rows == 498
    assert load_name(tmp_path, "public/t") == load
    assert requests_at(Storage(str(tmp_path))) == []
    right = [(i, "new" if i in (9, 20) else "old") for i in range(1, 500) if i != 50]
    other_rows = [(i, "new" if i in (509, 999) else v) for i, v in rows_before if i >= 500 and i != 998]
    assert len(set(other_rows)) < len(other_rows)
    assert rows_now(tmp_path) == sorted([*right, *other_rows])
    assert rows_now(tmp_path, "public/t~history" if has_history else "public/t") == sorted([*right, *other_rows])
    if options.get("table_settings") is ALL_COMPANIONS:
        marked = {row["id"] for row in read_table(str(tmp_path / "public/t")).to_pylist() if row["_is_deleted"]}
        assert marked == {-440, -60, 50, 998}
        assert read_table(str(tmp_path / "public/t~changes")).num_rows == 6
    # Later changes find the rows that they change.
    db18.execute("UPDATE t SET v = 'later' WHERE id IN (10, 20, 30)", "DELETE FROM t WHERE id = 11")
    run(db18, tmp_path, **options)
    updated = [(i, "later" if i in (10, 20, 30) else v) for i, v in right if i != 11]
    assert rows_now(tmp_path) == sorted([*updated, *other_rows])
    assert load_name(tmp_path, "public/t") == load


@pytest.mark.spark
def test_spark_does_it_too(spark: Any, db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db18.execute(*TABLE)
    replicate_once(db18, tmp_path)
    damage(tmp_path, "public/t", damaged_in_all_ways)
    resync_part(db18.settings, Storage(str(tmp_path)), T)
    replicate_with(settings(db18, tmp_path, once=True), Observers(), engine=SparkEngine(ClassicJobs(spark)))
    assert rows_now(tmp_path) == [(i, "old") for i in range(1, 1001)]


CHANGES = (
    "UPDATE t SET v = 'changed {0}' WHERE id % 17 = {0} % 17 AND id > 60",
    "DELETE FROM t WHERE id = 100 + {0}",
    "INSERT INTO t VALUES (5000 + {0}, 'new'), (-5000 - {0}, 'new')",
    # The key of a row that was stale, and a key that is inserted again.
    "INSERT INTO t VALUES (-60, 'here now') ON CONFLICT (id) DO UPDATE SET v = 'here again'",
    "DELETE FROM t WHERE id = 50",
    "INSERT INTO t VALUES (50, 'again {0}')",
    "DELETE FROM t WHERE id = -60 AND {0} % 2 = 0",
)


def change(db: Database, number: int) -> None:
    db.execute(*(statement.format(number) for statement in CHANGES))


def stale_and_missing(rows: pa.Table) -> pa.Table:
    """Return the rows with some missing or stale; no change of `CHANGES` needs these."""
    key = pc.field("id")
    return with_copies("id", key == 41, -100, without(pc.is_in(key, pa.array([10, 11])), rows))


@pytest.mark.parametrize("kept", [TableSettings(), ALL_COMPANIONS], ids=["rows", "all is kept"])
def test_changes_continue_meanwhile(db18: Database, tmp_path: Path, kept: TableSettings) -> None:
    db18.execute(*TABLE)
    replicate_once(db18, tmp_path, table_settings=kept)
    load, storage = load_name(tmp_path, "public/t"), Storage(str(tmp_path))
    damage(tmp_path, "public/t", stale_and_missing)
    observer = RowCounter(before=lambda: change(db18, 1), meanwhile=lambda: change(db18, 2))
    with replicate_meanwhile(db18, tmp_path, observer, table_settings=kept) as caught_up:
        change(db18, 3)
        caught_up()
        assert resync_part(db18.settings, storage, T, parse_condition("id < 60 OR id > 4000"))
        eventually(lambda: requests_at(storage) == [])
        change(db18, 4)
        caught_up()
    assert companion_differences(db18, tmp_path, ["public.t"], kept, counts_versions=False) == {}
    assert load_name(tmp_path, "public/t") == load


@pytest.mark.parametrize("step", ["replace_rows_by_key", "end_request"])
def test_a_process_that_is_killed_leaves_it_to_the_next(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A kill before the commit, and one between the commit and the end of the request."""
    db18.execute(*TABLE)
    replicate_once(db18, tmp_path, table_settings=ALL_COMPANIONS)
    damage(tmp_path, "public/t", stale_and_missing)
    resync_part(db18.settings, Storage(str(tmp_path)), T, parse_condition("id < 60"))
    with monkeypatch.context() as patch:

        def kill(*_: object) -> None:
            raise Killed

        patch.setattr(TableWriter if step == "replace_rows_by_key" else TableBuffers, step, kill)
        with pytest.raises(Killed):
            run(db18, tmp_path, RowCounter(meanwhile=lambda: change(db18, 1)), table_settings=ALL_COMPANIONS)
    change(db18, 2)
    observer = RowCounter(meanwhile=lambda: change(db18, 3))
    run(db18, tmp_path, observer, table_settings=ALL_COMPANIONS)
    assert 0 < observer.rows <= 80
    run(db18, tmp_path, table_settings=ALL_COMPANIONS)
    assert companion_differences(db18, tmp_path, ["public.t"], ALL_COMPANIONS, counts_versions=False) == {}
    assert requests_at(Storage(str(tmp_path))) == []


@pytest.mark.thorough
@pytest.mark.parametrize("kept", [TableSettings(), ALL_COMPANIONS], ids=["rows", "all is kept"])
def test_kills_at_each_write(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: TableSettings
) -> None:
    """One process after another is killed at its first write, then at its second, and so on; rows change meanwhile."""
    db18.execute(*TABLE)
    replicate_once(db18, tmp_path, table_settings=kept)
    load = load_name(tmp_path, "public/t")
    damage(tmp_path, "public/t", stale_and_missing)
    resync_part(db18.settings, Storage(str(tmp_path)), T, parse_condition("id < 60"))
    observers = []
    with monkeypatch.context() as patch:
        kills = Kills(patch)
        for write in count(1):
            kills.at(write)
            if write % 3 == 0:
                change(db18, write)
            observers.append(RowCounter(meanwhile=partial(change, db18, write + 100)))
            try:
                run(db18, tmp_path, observers[-1], table_settings=kept)
                break
            except Killed:
                pass
    assert sum(observer.rows > 0 for observer in observers) > 3
    run(db18, tmp_path, table_settings=kept)
    assert companion_differences(db18, tmp_path, ["public.t"], kept, counts_versions=False) == {}
    assert requests_at(Storage(str(tmp_path))) == []
    assert load_name(tmp_path, "public/t") == load


PARTITIONED = """
CREATE TABLE root (id int, kind text, v text, PRIMARY KEY (id, kind)) PARTITION BY {by};
{partitions};
INSERT INTO root SELECT i, chr(97 + i / 2 % 5), 'old' FROM generate_series(2, 800, 2) AS i;
CREATE PUBLICATION p FOR TABLE root WITH (publish_via_partition_root = true)
"""
PARTITIONS = {
    "range": (
        "RANGE (id)",
        "CREATE TABLE leaf PARTITION OF root FOR VALUES FROM (1) TO (200); "
        "CREATE TABLE other PARTITION OF root FOR VALUES FROM (200) TO (900)",
    ),
    "list": (
        "LIST (kind)",
        "CREATE TABLE leaf PARTITION OF root FOR VALUES IN ('a', 'c'); "
        "CREATE TABLE other PARTITION OF root FOR VALUES IN ('b', 'd', 'e')",
    ),
    "hash": (
        "HASH (id)",
        "CREATE TABLE leaf PARTITION OF root FOR VALUES WITH (MODULUS 2, REMAINDER 0); "
        "CREATE TABLE other PARTITION OF root FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
    ),
    "default": (
        "LIST (kind)",
        "CREATE TABLE other PARTITION OF root FOR VALUES IN ('a', 'c'); CREATE TABLE leaf PARTITION OF root DEFAULT",
    ),
    "within another": (
        "LIST (kind)",
        "CREATE TABLE other PARTITION OF root DEFAULT; "
        "CREATE TABLE above PARTITION OF root FOR VALUES IN ('a', 'c') PARTITION BY RANGE (id); "
        "CREATE TABLE leaf PARTITION OF above FOR VALUES FROM (1) TO (200); "
        "CREATE TABLE beside PARTITION OF above DEFAULT",
    ),
}


@pytest.mark.parametrize(
    ("by", "partitions"),
    [
        pytest.param(*case, id=name, marks=pytest.mark.thorough if name == "list" else ())
        for name, case in PARTITIONS.items()
    ],
)
def test_a_partition_of_a_table_is_mended_alone(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str, partitions: str
) -> None:
    monkeypatch.setattr("logicalrep.pipeline.run.run.start_engine", lambda *_: nullcontext(SequentialEngine()))
    db18.execute(*PARTITIONED.format(by=by, partitions=partitions).strip().split(";\n"))
    replicate_once(db18, tmp_path, publication="p")
    # A third of the rows are damaged, and each has a stale one beside it.
    third = pc.is_in(pc.field("id"), pa.array(range(0, 800, 6)))
    damage(tmp_path, "public/root", lambda rows: with_copies("id", pc.scalar(True), 1, with_changed("v", third, rows)))
    rows_before = keyed_rows(tmp_path)
    leaf_keys = db18.rows("SELECT id, kind FROM leaf")
    where = ["--dsn", db18.dsn, "--to", str(tmp_path), "--publication", "p"]
    assert main(["resync", "leaf", *where]) == 0
    # Keys that the server has in no partition go with them.
    root_keys = {*db18.rows("SELECT id, kind FROM root")}
    expected = {key: v for key, v in rows_before.items() if key in root_keys} | dict.fromkeys(leaf_keys, "old")
    assert expected != rows_before
    assert keyed_rows(tmp_path) == expected
    # A condition tells a part of a partition.
    of_other = db18.rows("SELECT id, kind FROM other WHERE id < 400")
    assert main(["resync", "other", "--where", "id < 400", *where]) == 0
    of_both = expected | dict.fromkeys(of_other, "old")
    assert of_both != expected
    assert keyed_rows(tmp_path) == of_both


def keyed_rows(storage: Path) -> dict[tuple[object, ...], str]:
    rows = read_table(str(storage / "public/root")).to_pylist()
    texts: dict[tuple[object, ...], str] = {(row["id"], row["kind"]): row["v"] for row in rows}
    assert len(texts) == len(rows)
    return texts


UNKNOWN = {
    "another column": ("v = 'old'", "names v, but may only name columns of the key: id"),
    "a place of a row": ("ctid = '(0,1)'", "names ctid, but may only name columns of the key"),
    "no value of the type": ("id = 'x'", "the server does not accept the condition .* invalid input syntax"),
    "a large value": ("id = 99999999999999999999", "out of range"),
}


def test_conditions_that_are_refused(db18: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    db18.execute(
        *TABLE, "CREATE TABLE u (a int[] PRIMARY KEY)", "CREATE TABLE w (id int)",
        "ALTER TABLE w REPLICA IDENTITY FULL",
        "CREATE TYPE pair AS (a int, b int)", "CREATE TABLE c (id pair PRIMARY KEY)",
    )  # fmt: skip
    replicate_once(db18, tmp_path)
    storage, equal = Storage(str(tmp_path)), parse_condition("id = 1")
    for where, reason in UNKNOWN.values():
        with pytest.raises(ConditionError, match=reason):
            resync_part(db18.settings, storage, T, parse_condition(where))
    with pytest.raises(ConditionError, match="it has no key"):
        resync_part(db18.settings, storage, TableName("public", "w"), equal)
    with pytest.raises(ConditionError, match="column a cannot be sent"):
        resync_part(db18.settings, storage, TableName("public", "u"), ColumnComparison("a", "=", "{1}"))
    with pytest.raises(ConditionError, match="column id cannot be sent"):
        resync_part(db18.settings, storage, TableName("public", "c"), ColumnComparison("id", "=", "(1,2)"))
    place = ["--dsn", db18.dsn, "--to", str(tmp_path)]
    assert main(["resync", "--all", "--where", "id = 1", *place]) == 2
    assert main(["resync", "nope", "--where", "id = 1", *place]) == 1
    capsys.readouterr()
    assert main(["resync", "t", "--where", "id = (SELECT 1)", *place]) == 1
    assert "[CONDITION_REFUSED] the condition id = (SELECT 1) is not accepted at (: write" in capsys.readouterr().err
    assert requests_at(storage) == []


def test_a_condition_that_fails_leaves_the_table_as_it_was(db18: Database, tmp_path: Path) -> None:
    db18.execute(*TABLE)
    replicate_once(db18, tmp_path)
    load, storage = load_name(tmp_path, "public/t"), Storage(str(tmp_path))
    request_part(storage, RequestedPart(T, ColumnComparison("id", "<", "x")))
    db18.execute("UPDATE t SET v = 'new' WHERE id < 10")
    with pytest.raises(PartError, match=r"the rows where id < 'x' of public\.t are not reloaded.*invalid input"):
        run(db18, tmp_path, RowCounter(meanwhile=lambda: db18.execute("DELETE FROM t WHERE id < 5")))
    assert (requests_at(storage), load_name(tmp_path, "public/t")) == ([], load)
    run(db18, tmp_path)
    assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}


CAST = (
    "CREATE TYPE {schema}.en AS ENUM ('a', 'b', 'c')",
    "CREATE DOMAIN {schema}.checked AS int CHECK ({schema}.trap(VALUE::text) IS NOT NULL)",
    "CREATE FUNCTION {schema}.cast_en({schema}.en) RETURNS text LANGUAGE sql AS "
    "$$ SELECT {schema}.trap(enum_out($1)::text) $$",
    "CREATE CAST ({schema}.en AS text) WITH FUNCTION {schema}.cast_en({schema}.en) AS IMPLICIT",
    "CREATE FUNCTION {schema}.less({schema}.en, {schema}.en) RETURNS boolean LANGUAGE sql AS "
    "$$ SELECT {schema}.trap('x') IS NOT NULL $$",
    "CREATE OPERATOR {schema}.= (LEFTARG = {schema}.en, RIGHTARG = {schema}.en, FUNCTION = {schema}.less)",
    "CREATE OPERATOR {schema}.< (LEFTARG = {schema}.en, RIGHTARG = {schema}.en, FUNCTION = {schema}.less)",
    "CREATE TABLE {schema}.t (e {schema}.en, n {schema}.checked, v text, PRIMARY KEY (e, n))",
)
"""Types whose cast, CHECK and operators call a function that records its role."""


def test_no_code_of_the_owner_of_a_keys_types_runs(db18: Database, tmp_path: Path) -> None:
    owner = f"owner_{db18.name}"
    db18.execute(f"CREATE ROLE {owner} LOGIN", f"CREATE SCHEMA m AUTHORIZATION {owner}", "CREATE SEQUENCE ran")
    db18.execute("GRANT ALL ON SEQUENCE ran TO PUBLIC")
    try:
        db18.execute(
            "CREATE FUNCTION m.trap(text) RETURNS text LANGUAGE sql AS "
            f"$$ SELECT CASE WHEN current_user <> '{owner}' THEN nextval('public.ran')::text ELSE $1 END $$",
            f"ALTER FUNCTION m.trap(text) OWNER TO {owner}",
            f"SET ROLE {owner}",
            *(statement.format(schema="m") for statement in CAST),
            "INSERT INTO m.t SELECT e, n, 'old' FROM unnest(enum_range(NULL::m.en)) AS e, generate_series(1, 9) AS n",
            "RESET ROLE",
        )
        replicate_once(db18, tmp_path)
        damage(tmp_path, "m/t", partial(with_changed, "v", pc.field("n") < 5))
        where = parse_condition("e = 'a' OR e >= 'b' AND e IN ('b', 'c') AND n BETWEEN 1 AND 7")
        resync_part(db18.settings, Storage(str(tmp_path)), TableName("m", "t"), where)
        run(db18, tmp_path)
        assert main(["verify", "--dsn", db18.dsn, "--to", str(tmp_path)]) == 0
        assert db18.value("SELECT is_called FROM ran") is False
    finally:
        db18.execute("RESET ROLE", "DROP SCHEMA m CASCADE", f"DROP ROLE {owner}")


HOSTILE: dict[str, str] = {
    "SQL": '{"part": {"table": ["public", "t"], "where": "pg_drop_replication_slot(\'other\') IS NULL"}}',
    "SQL as a value": '{"part": {"table": ["public", "t"], "condition": "id = 1"}}',
    "SQL as an operator": '{"part": {"table": ["public", "t"], "condition": '
    '{"column": "id", "operator": "= 1 OR 1 =", "value": "1"}}}',
    "a number": "1",
    "a part that is a number": '{"part": 1}',
    "a list": "[]",
    "two keys": '{"resync": [], "skip": ["public", "t", "0/1"]}',
    "an unknown key": '{"drop": ["public", "t"]}',
    "no pair": '{"resync": [["public", "t", "x"]]}',
    "a name that is a number": '{"resync": [["public", 7]]}',
    "a condition in depth": '{"part": {"table": ["public", "t"], "condition": %s}}' % ('{"all": [' * 200 + "]}" * 200),
    "no OID": '{"part": {"table": ["public", "t"], "partition": {"oid": "1; DROP TABLE t", "name": ["public", "t"]}}}',
    "a character that no server takes": '{"part": {"table": ["public", "t"], "condition": '
    '{"column": "id", "operator": "=", "value": "\\u0000"}}}',
    "a commit that is a number": '{"skip": ["public", "t", 5]}',
    "a commit that is none": '{"skip": ["public", "t", "x"]}',
    "large": '"' + "x" * (5 << 20) + '"',
}
"""Requests that no command writes."""


def test_requests_that_no_command_writes_are_refused_each_with_a_line(db18: Database, tmp_path: Path) -> None:
    db18.execute(*TABLE, "SELECT pg_create_physical_replication_slot('other_' || current_database())")
    replicate_once(db18, tmp_path)
    folder, warnings = tmp_path / "_logicalrep/requests", []
    folder.mkdir()
    for number, (name, content) in enumerate(HOSTILE.items()):
        (folder / f"{number}.json").write_text(content.replace("other", f"other_{db18.name}"))
        warned = Warnings()
        run(db18, tmp_path, warned)
        assert [*folder.iterdir()] == [], name
        assert len(warned.texts) == 1, name
        warnings += warned.texts
    assert all("a request was invalid, and was deleted" in text and "object has no" not in text for text in warnings)
    # Valid requests: for a table that is not stopped, with a new slot, and for a table that is not replicated.
    request_skip(Storage(str(tmp_path)), T, Lsn(5))
    resync(db18.settings, Storage(str(tmp_path)), [], new_slot=True)
    warned = Warnings()
    run(db18, tmp_path, warned)
    assert warned.texts == ["public.t is not stopped at the commit 0/5: the request to skip it is ignored"]
    request_resync(Storage(str(tmp_path)), [TableName("public", "nope")])
    warned = Warnings()
    run(db18, tmp_path, warned)
    assert warned.texts == ["public.nope is not replicated: the request to reload it is ignored"]
    slots = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'other_' || current_database()"
    assert db18.value(slots) == 1
    db18.execute("SELECT pg_drop_replication_slot('other_' || current_database())")
    assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}


KEYS = r"""
CREATE TYPE mood AS ENUM ('so', 'la "la", \ { NULL');
CREATE DOMAIN price AS numeric CHECK (VALUE >= 0);
CREATE TABLE k (a text COLLATE "C", b mood, c price, d timestamptz, e uuid, f bytea, g date, h "char", v text,
    PRIMARY KEY (a, b, c, d, e, f, g, h));
INSERT INTO k SELECT 'A' || i || '\"{,} ', (enum_range(NULL::mood))[1 + i % 2], i / 8.0,
    '2026-01-01 12:00:00.5+02'::timestamptz + i * interval '1 h', md5(i::text)::uuid, decode(md5(i::text), 'hex'),
    '2026-01-01'::date + i, 'x', 'old' FROM generate_series(1, 40) AS i
"""


def test_keys_of_many_types(db18: Database, tmp_path: Path) -> None:
    db18.execute(*KEYS.strip().split(";\n"))
    replicate_once(db18, tmp_path)
    damage(
        tmp_path,
        "public/k",
        lambda rows: pa.concat_tables(
            [rows.slice(5), rows.slice(0, 20).set_column(0, rows.field(0), pa.array([f"B{i}" for i in range(20)]))]
        ),
    )
    where = (
        "a >= 'A' AND a < 'C' AND b >= 'so' AND c > 0.01 AND d > '2020-01-01' AND "
        "e <> '00000000-0000-0000-0000-000000000000' AND f >= '\\x00' AND g BETWEEN '2020-01-01' AND '2030-01-01' "
        "AND h IN ('x', 'y')"
    )
    resync_part(db18.settings, Storage(str(tmp_path)), TableName("public", "k"), parse_condition(where))
    run(db18, tmp_path)
    assert find_differences(db18.dsn, str(tmp_path), ["public.k"]) == {}


def test_rows_that_are_not_published_go(db18: Database, tmp_path: Path) -> None:
    db18.execute(*TABLE, "CREATE PUBLICATION p FOR TABLE t WHERE (id < 900)")
    replicate_once(db18, tmp_path, publication="p")
    damage(tmp_path, "public/t", lambda rows: with_copies("id", pc.field("id") == 50, 900, rows))
    assert (950, "old") in rows_now(tmp_path)
    resync_part(db18.settings, Storage(str(tmp_path)), T, parse_condition("id > 890"))
    run(db18, tmp_path, publication="p")
    assert rows_now(tmp_path) == [(i, "old") for i in range(1, 900)]


@pytest.mark.parametrize(
    "statements",
    [
        ("ALTER TABLE t ADD more int DEFAULT 7", "UPDATE t SET more = 8 WHERE id < 20"),
        ("ALTER TABLE t RENAME v TO w", "UPDATE t SET w = 'renamed' WHERE id < 20"),
        ("TRUNCATE t", "INSERT INTO t SELECT i, 'after' FROM generate_series(1, 30) AS i"),
    ],
    ids=["a column", "another name", "other rows"],
)
@pytest.mark.parametrize("moment", [pytest.param("before", marks=pytest.mark.thorough), "meanwhile"])
def test_what_is_altered_meanwhile(db18: Database, tmp_path: Path, statements: tuple[str, ...], moment: str) -> None:
    db18.execute(*TABLE)
    replicate_once(db18, tmp_path)
    damage(tmp_path, "public/t", stale_and_missing)
    resync_part(db18.settings, Storage(str(tmp_path)), T, parse_condition("id < 60"))
    run(db18, tmp_path, RowCounter(**{moment: lambda: db18.execute(*statements)}))
    run(db18, tmp_path)
    assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}


def test_another_key_is_followed_first(db18: Database, tmp_path: Path) -> None:
    """The condition is of the key that was: the part is refused, and nothing else happens."""
    db18.execute(*TABLE)
    replicate_once(db18, tmp_path)
    load = load_name(tmp_path, "public/t")
    resync_part(db18.settings, Storage(str(tmp_path)), T, parse_condition("id < 60"))
    renamed = ("ALTER TABLE t RENAME id TO number", "UPDATE t SET v = 'renamed' WHERE number < 20")
    with pytest.raises(PartError, match="names id, but may only name columns of the key"):
        run(db18, tmp_path, RowCounter(before=lambda: db18.execute(*renamed)))
    run(db18, tmp_path)
    assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}
    assert load_name(tmp_path, "public/t") == load


def test_a_table_that_is_stopped_is_loaded_as_a_whole_only(db18: Database, tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    db18.execute(*TABLE)
    replicate_once(db18, tmp_path)
    state = State.read(storage)
    part = RequestedPart(T, parse_condition("id < 60"))
    request_part(storage, part)
    stopped = replace(state.tables["public.t"], phase=Phase.STOPPED, error="a reason")
    States(storage).write(replace(state, tables={"public.t": stopped}))
    with pytest.raises(PartError, match=r"is stopped: run logicalrep resync public\.t, which reloads the whole table"):
        resync_part(db18.settings, storage, T, parse_condition("id < 60"))
    with pytest.raises(TablesStoppedError):
        run(db18, tmp_path)
    assert requests_at(storage) == []
