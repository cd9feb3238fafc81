"""The rows of a snapshot are the table's rows at the slot's start, in the form of the later changes."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import InputPartition

from logicalrep.postgres.preflight.findings import PreflightError
from logicalrep.postgres.slots.slot import query_slot
from logicalrep.postgres.snapshots import Snapshot, SnapshotError
from logicalrep.postgres.table_rows import parts as table_parts
from logicalrep.postgres.table_rows.reading import NotReadableError
from logicalrep.spark import snapshot, snapshot_reader
from logicalrep.spark.options import OptionError, read_options
from logicalrep.spark.snapshot_reader import SnapshotReader
from logicalrep.transactions.table_names import TableName
from tests.postgres.servers import Database
from tests.spark.failures import fails
from tests.spark.streams import Stream, table_schema
from tests.spark.workload import every_type
from tests.waiting import eventually

OF_THE_FEED = 5


def given(db: Database, **more: str) -> dict[str, str]:
    return {"dsn": db.dsn, "slot": "spark", "publication": "p", "table": "public.t"} | more


def reader(db: Database, name: str, **more: str) -> SnapshotReader:
    options = read_options(given(db, **more) | {"snapshot": name})
    schema = table_schema(db.connection, options.table or TableName("", ""), options.publications, options.text_columns)
    return SnapshotReader(options, Snapshot.parse(name), schema)


def rows_of(read: SnapshotReader, parts: Sequence[InputPartition]) -> list[dict[str, Any]]:
    return [row for part in parts for batch in read.read(part) for row in batch.to_pylist()]


def own(rows: Any) -> list[tuple[Any, ...]]:
    """Return the table's own columns, in the order of the first one."""
    return sorted((tuple(row)[:-OF_THE_FEED] for row in rows), key=lambda row: row[0])


def test_a_value_of_every_type(spark: Any, db: Database, tmp_path: Path) -> None:
    """The snapshot and the slot have the same rows."""
    types, rows = every_type(db)
    columns = ", ".join(f"{name} {type_}" for name, type_ in types.items())
    db.execute(f"CREATE TABLE t (id serial, {columns})", "CREATE PUBLICATION p FOR TABLE t")

    def write() -> None:
        for row in rows:
            db.connection.execute(f"INSERT INTO t VALUES (DEFAULT, {', '.join(['%s'] * len(row))})", row)

    write()
    options = given(db, text_columns=",".join(types))
    with snapshot(**options) as name:
        frame = spark.read.format("logicalrep").options(**options, snapshot=name).load()
        write()
        old_rows = frame.collect()
    stream = Stream(spark, db, tmp_path, **options)
    stream.run()
    new_rows = stream.frame().collect()
    assert len(old_rows) == len(rows) > 10
    assert [row[1:] for row in own(old_rows)] == [row[1:] for row in own(new_rows)]
    assert {(row._change_type, tuple(row._unchanged)) for row in old_rows} == {("insert", ())}
    assert len({(row._commit_version, row._commit_timestamp) for row in old_rows}) == 1
    assert old_rows[0]._commit_version < min(row._commit_version for row in new_rows)
    assert old_rows[0]._commit_timestamp < min(row._commit_timestamp for row in new_rows)


def test_values_in_their_types(spark: Any, db: Database, tmp_path: Path) -> None:
    db.execute(
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        "CREATE DOMAIN price AS numeric(8,2)",
        "CREATE TABLE t (id bigint PRIMARY KEY, m mood, p price, l int[], j jsonb, u uuid, d date, b bytea, c char(5), "
        "o bool, t timestamptz, n numeric, r int4range, g int GENERATED ALWAYS AS (1) STORED)",
        "CREATE PUBLICATION p FOR ALL TABLES",
    )

    def write(key: int) -> None:
        db.execute(
            f"""INSERT INTO t VALUES ({key}, 'glad', 2.5, '{{1,NULL}}', '{{"a": "\\\\n"}}',
            '00000000-0000-0000-0000-000000000001', '2024-01-02', '\\x00ff', 'ab', true, '2024-01-02 03:04:05.6+07',
            1e30, '[1,3)')""",
            f"INSERT INTO t VALUES ({key + 1})",
        )

    write(1)
    with snapshot(**given(db)) as name:
        old_rows = spark.read.format("logicalrep").options(**given(db), snapshot=name).load().collect()
        write(3)
    stream = Stream(spark, db, tmp_path, **given(db))
    stream.run()
    new_rows = stream.frame().collect()
    assert [row.id for row in old_rows] == [1, 2]
    assert [row[1:] for row in own(old_rows)] == [row[1:] for row in own(new_rows)]
    assert old_rows[0].asDict().keys() == new_rows[0].asDict().keys()
    assert "g" not in old_rows[0].asDict()


def test_many_parts(spark: Any, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_parts, "PART", 1 << 16)
    db.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE PUBLICATION p FOR ALL TABLES")
    db.execute("INSERT INTO t SELECT i, repeat('x', i % 300) FROM generate_series(1, 10000) AS i")
    db.execute("UPDATE t SET v = v || 'y' WHERE id % 7 = 0", "DELETE FROM t WHERE id % 5 = 0")
    rows = db.rows("SELECT id, v FROM t")
    with snapshot(**given(db)) as name:
        read = reader(db, name)
        parts = read.partitions()
        db.execute("UPDATE t SET v = 'new'", "INSERT INTO t SELECT i FROM generate_series(10001, 20000) AS i")
        read_rows = rows_of(read, parts)
    assert len(parts) > 10
    assert own(row.values() for row in read_rows) == sorted(rows)
    positions = {(row["_commit_version"], row["_ordinal"]) for row in read_rows}
    assert len(positions) == len(read_rows)
    assert max(positions)[0] < Snapshot.parse(name).lsn


def test_what_is_published(spark: Any, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is partitioned and published by its own name, with some rows and some columns."""
    db.execute(
        "CREATE TABLE t (id int, v text, secret text) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (1000) PARTITION BY RANGE (id)",
        "CREATE TABLE lowest PARTITION OF low FOR VALUES FROM (0) TO (500)",
        "CREATE TABLE lower (secret text, id int, v text)",
        "ALTER TABLE low ATTACH PARTITION lower FOR VALUES FROM (500) TO (1000)",
        "CREATE TABLE high PARTITION OF t DEFAULT",
        "INSERT INTO t SELECT i, 'v' || i, 's' FROM generate_series(1, 2000) AS i",
        "CREATE PUBLICATION p FOR TABLE t (id, v) WHERE (id % 3 = 0) WITH (publish_via_partition_root)",
        "CREATE PUBLICATION q FOR TABLE t (id, v) WHERE (v = 'v1' OR id = 2) WITH (publish_via_partition_root)",
    )
    for publications, wanted in (("p", "id % 3 = 0"), ("p,q", "id % 3 = 0 OR id IN (1, 2)")):
        with snapshot(**given(db, publication=publications)) as name:
            read = reader(db, name, publication=publications)
            parts = read.partitions()
            read_rows = rows_of(read, parts)
        db.execute("SELECT pg_drop_replication_slot('spark')")
        assert len(parts) == 3
        assert own(row.values() for row in read_rows) == sorted(db.rows(f"SELECT id, v FROM t WHERE {wanted}"))


@pytest.mark.parametrize(("table", "message"), [("t", r"public\.t"), ("u", "a table of p")])
def test_who_waits_to_alter_a_table_does_not_keep_its_reader_waiting(
    spark: Any, db18: Database, monkeypatch: pytest.MonkeyPatch, table: str, message: str
) -> None:
    monkeypatch.setattr(snapshot_reader, "PATIENCE", "100ms")
    db18.execute("CREATE TABLE t (id int)", "CREATE TABLE u (id int)", "CREATE PUBLICATION p FOR ALL TABLES")
    with db18.writer() as other:
        altering = threading.Thread(target=other.execute, args=(f"ALTER TABLE {table} ADD w int",))
        with snapshot(dsn=db18.dsn, slot="spark", publication="p") as name:
            read = reader(db18, name)
            altering.start()
            eventually(lambda: db18.value("SELECT count(*) FROM pg_locks WHERE NOT granted") == 1)
            with pytest.raises(SnapshotError, match=f"another session waits to truncate or alter {message}"):
                read.partitions()
        altering.join()


@pytest.mark.parametrize(
    ("statement", "table", "message"),
    [
        ("ALTER TABLE u ALTER v TYPE bigint", "public.u", r"public\.u was truncated or rewritten"),
        ("ALTER PUBLICATION p SET TABLE t, u, w", "public.t", "p was altered since the snapshot was made"),
    ],
)
def test_what_is_altered_meanwhile(spark: Any, db: Database, statement: str, table: str, message: str) -> None:
    """The statement alters a table that the snapshot does not hold, or the publication."""
    db.execute(*(f"CREATE TABLE {name} (id int, v int)" for name in "tuw"), "CREATE PUBLICATION p FOR TABLE t, u")
    with snapshot(**given(db)) as name:
        db.execute(statement)
        with pytest.raises(SnapshotError, match=message):
            reader(db, name, table=table).partitions()


def test_a_partition_that_is_attached_meanwhile(spark: Any, db: Database) -> None:
    db.execute(
        "CREATE TABLE t (id int, v int) PARTITION BY LIST (id)",
        "CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1)",
        "CREATE TABLE t2 (id int, v int)",
        "INSERT INTO t VALUES (1, 1)",
        "INSERT INTO t2 VALUES (2, 2)",
        "CREATE PUBLICATION p FOR TABLE t WITH (publish_via_partition_root)",
    )
    with snapshot(**given(db)) as name:
        db.execute("ALTER TABLE t ATTACH PARTITION t2 FOR VALUES IN (2)")
        read = reader(db, name)
        read_rows = rows_of(read, read.partitions())
    assert own(row.values() for row in read_rows) == [(1, 1)]


def test_a_partitioned_table_without_partitions(spark: Any, db18: Database) -> None:
    db18.execute(
        "CREATE TABLE t (id int) PARTITION BY LIST (id)",
        "CREATE PUBLICATION p FOR TABLE t WITH (publish_via_partition_root)",
    )
    with snapshot(**given(db18)) as name:
        assert spark.read.format("logicalrep").options(**given(db18), snapshot=name).load().count() == 0


def test_what_is_stored_out_of_line_counts_for_the_parts(
    spark: Any, db18: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_parts, "PART", 1 << 20)
    db18.execute("CREATE TABLE t (id int, v text)", "ALTER TABLE t ALTER v SET STORAGE EXTERNAL")
    db18.execute("INSERT INTO t SELECT i, repeat('x', 4000) FROM generate_series(1, 1000) AS i")
    db18.execute("CREATE PUBLICATION p FOR TABLE t")
    with snapshot(**given(db18)) as name:
        read = reader(db18, name)
        parts = read.partitions()
        read_rows = rows_of(read, parts)
    assert len(parts) > 2
    assert [row[0] for row in own(row.values() for row in read_rows)] == list(range(1, 1001))


def test_rows_that_a_policy_hides_are_an_error(spark: Any, db18: Database) -> None:
    role = f"reader_of_{db18.name}"
    db18.execute(
        "CREATE TABLE t (id int)",
        "INSERT INTO t VALUES (1)",
        "CREATE PUBLICATION p FOR TABLE t",
        f"CREATE ROLE {role} LOGIN REPLICATION",
        f"GRANT SELECT ON t TO {role}",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
    )
    dsn = db18.server.dsn_as(role, db18.name)
    with snapshot(**given(db18, dsn=dsn)) as name:
        read = reader(db18, name, dsn=dsn)
        (part,) = read.partitions()
        with pytest.raises(NotReadableError, match="row-level security"):
            list(read.read(part))


def test_a_table_that_is_not_published(spark: Any, db18: Database) -> None:
    """Its changes would not be sent."""
    db18.execute("CREATE TABLE t (id int)", "CREATE TABLE u (id int)", "CREATE PUBLICATION p FOR TABLE u")
    with snapshot(**given(db18, table="u")) as name, pytest.raises(PreflightError, match=r"public\.t is not published"):
        reader(db18, name).partitions()


def test_after_its_end(spark: Any, db18: Database) -> None:
    db18.execute("CREATE TABLE t (id int)", "CREATE PUBLICATION p FOR TABLE t")
    with snapshot(**given(db18)) as name:
        frame = spark.read.format("logicalrep").options(**given(db18), snapshot=name).load()
    with fails("SNAPSHOT_GONE", r"the snapshot .* has ended"):
        frame.collect()
    assert query_slot(db18.connection, "spark").active_pid is None


def test_a_snapshot_of_another_slot(spark: Any, db18: Database) -> None:
    db18.execute("CREATE TABLE t (id int)", "CREATE PUBLICATION p FOR TABLE t")
    with snapshot(**given(db18, slot="other")) as name, pytest.raises(OptionError, match="belongs to the slot 'other'"):
        reader(db18, name).partitions()


def test_a_snapshot_of_files(db18: Database) -> None:
    with pytest.raises(OptionError, match=r"are for spark\.read"), snapshot(**given(db18, path="x")):
        pass


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"snapshot": "a@s@1/2@3", "slot": "s"}, "'snapshot' reads the rows of one table"),
        ({"snapshot": "a@s@1/2@3", "table": "t", "path": "x"}, "remove one"),
        (
            {"snapshot": "00000003-0000001B-1@1/2", "table": "t"},
            r"expected the text from logicalrep\.spark\.snapshot\(\.\.\.\)",
        ),
    ],
)
def test_options_that_do_not_fit(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        read_options(options)


def test_a_stream_takes_no_snapshot(spark: Any, db18: Database) -> None:
    db18.execute("CREATE TABLE t (id int)", "CREATE PUBLICATION p FOR TABLE t")
    with fails("OPTION_INVALID", r"option 'snapshot' is for spark.read"):
        spark.readStream.format("logicalrep").options(**given(db18), snapshot="a@s@1/2@3").load().writeStream.format(
            "noop"
        ).start().awaitTermination()
