"""`logicalrep verify`: equal tables are equal, and each kind of difference is found."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from logicalrep.arrow.feed.texts import Texts
from logicalrep.cli.main import main
from logicalrep.observe.observer import Observers
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.schema.table_formats import FormatName
from logicalrep.pipeline.state.state import StateError
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.verify.verifying import VerifyError, verify
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.publications import query_published_relation
from logicalrep.transactions.table_names import TableName
from logicalrep.values import ColumnValueError, TypeCatalog, arrow_value
from tests.pipeline.replicating import replicate_meanwhile, replicate_once
from tests.pipeline.verify.verdicts import raise_values, rewrite, verdict_texts, verify_tables
from tests.postgres.servers import Database
from tests.spark.workload import every_type

pytestmark = pytest.mark.postgres


def test_equal_tables(shop: Database, tmp_path: Path) -> None:
    replicate_once(shop, tmp_path)
    verdicts = verify_tables(shop, tmp_path)
    assert {name: (verdict.result, verdict.rows) for name, verdict in verdicts.items()} == {
        "audit": ("equal", 10),
        "customer": ("equal", 1000),
        "orders": ("equal", 5000),
    }


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_rows_that_are_missing_surplus_and_changed(shop: Database, tmp_path: Path, table_format: FormatName) -> None:
    replicate_once(shop, tmp_path, format=table_format)

    def change(rows: pa.Table) -> pa.Table:
        ids = rows.column("id")
        name = pc.if_else(pc.equal(ids, 7), "wrong", rows.column("name"))
        rows = rows.set_column(rows.schema.get_field_index("name"), rows.schema.field("name"), name)
        surplus = rows.filter(pc.equal(ids, 3))
        surplus = surplus.set_column(0, rows.schema.field(0), pa.array([5000], pa.int32()))
        return pa.concat_tables([rows.filter(pc.not_equal(ids, 1)), surplus])

    rewrite(tmp_path, "customer", change)
    verdicts = verify_tables(shop, tmp_path)
    assert verdict_texts(verdicts) == {"audit": "equal", "customer": "different", "orders": "equal"}
    customer = verdicts["customer"]
    assert (customer.differing, customer.is_least) == (3, False)
    shown = {(example.kind, example.key["id"]) for example in customer.examples}
    assert shown == {("missing", "1"), ("surplus", "5000"), ("changed", "7")}
    assert all(example.server is None and example.destination is None for example in customer.examples)
    with_values = verify_tables(shop, tmp_path, "customer", with_values=True)["customer"].examples
    by_key = {example.key["id"]: example for example in with_values}
    assert by_key["7"].server == {"id": "7", "name": "name 7", "city": None}
    assert by_key["7"].destination == {"id": "7", "name": "wrong", "city": None}
    assert by_key["1"].destination is None
    assert by_key["5000"].server is None


def test_equal_rows_are_counted_in_a_table_without_a_key(shop: Database, tmp_path: Path) -> None:
    replicate_once(shop, tmp_path)
    rewrite(tmp_path, "audit", lambda rows: pa.concat_tables([rows, rows.slice(0, 2)]))
    audit = verify_tables(shop, tmp_path, "audit")["audit"]
    assert (audit.result, audit.differing, audit.rows, audit.examples) == ("different", 2, 10, ())


def test_many_differing_rows_are_counted_as_far_as_they_are_looked_at(shop: Database, tmp_path: Path) -> None:
    replicate_once(shop, tmp_path)
    rewrite(tmp_path, "orders", lambda rows: rows.slice(0, 10))
    storage = Storage(str(tmp_path), limits=Limits(compared_rows=700, compared_keys=50))
    (orders,) = verify(shop.settings, storage, [TableName("public", "orders")])
    assert (orders.result, orders.differing, orders.is_least) == ("different", 50, True)
    assert len(orders.examples) == 10


def test_changes_that_nobody_applies_are_undecided(shop: Database, tmp_path: Path) -> None:
    replicate_once(shop, tmp_path)
    shop.execute("UPDATE customer SET city = 'Fürth' WHERE id = 4")
    verdicts = verify_tables(shop, tmp_path)
    assert (verdicts["audit"].result, verdicts["orders"].result) == ("equal", "equal")
    assert verdicts["customer"].result == "undecided"
    assert "replicate --once" in verdicts["customer"].reason
    replicate_once(shop, tmp_path)
    assert verify_tables(shop, tmp_path, "customer")["customer"].result == "equal"


def test_tables_that_change_meanwhile(shop: Database, tmp_path: Path) -> None:
    """Rows at rest are equal, or proven to differ, while others come, go, and come again all the time."""
    with replicate_meanwhile(shop, tmp_path) as caught_up, closing(shop.writer()) as writer:
        caught_up()
        ending = threading.Event()

        def write() -> None:
            number = 0
            while not ending.is_set():
                number += 1
                with writer.transaction():
                    writer.execute("UPDATE customer SET city = %s WHERE id = %s", (str(number), number % 900 + 1))
                    writer.execute("UPDATE customer SET city = %s WHERE id = 950", (str(number),))
                    writer.execute("DELETE FROM orders WHERE id = %s", (number % 1000,))
                    writer.execute("INSERT INTO orders VALUES (%s, 1, 1, NULL, NULL)", ((number + 500) % 1000 - 1000,))
                    writer.execute("DELETE FROM orders WHERE id = %s", (number % 1000 - 1000,))
                    writer.execute("INSERT INTO audit VALUES (now(), 'new')")
                    writer.execute("DELETE FROM audit WHERE at < now() - interval '2 seconds'")
                time.sleep(0.005)

        thread = threading.Thread(target=write)
        thread.start()
        try:
            verdicts = verify_tables(shop, tmp_path, patience=30)
            assert set(verdict_texts(verdicts).values()) == {"equal"}, verdicts
            # A table that is altered is loaded again meanwhile.
            shop.execute("ALTER TABLE customer ADD COLUMN more int")
            verdicts = verify_tables(shop, tmp_path, "customer", patience=30)
            assert set(verdict_texts(verdicts).values()) == {"equal"}, verdicts
        finally:
            ending.set()
            thread.join()
        caught_up()
    rewrite(tmp_path, "customer", lambda rows: rows.filter(pc.not_equal(rows.column("id"), 1000)))
    rewrite(tmp_path, "audit", lambda rows: pa.concat_tables([rows, rows]))
    # Others commit meanwhile, but nothing of these tables.
    with busy(shop):
        verdicts = verify_tables(shop, tmp_path)
    assert {name: entry.result for name, entry in verdicts.items()} == {
        "audit": "different",
        "customer": "different",
        "orders": "equal",
    }
    assert [entry.key for entry in verdicts["customer"].examples] == [{"id": "1000"}]
    assert verdicts["audit"].differing == verdicts["audit"].rows


@contextmanager
def busy(db: Database) -> Iterator[None]:
    """Commit all the time to a table that is not replicated."""
    ending = threading.Event()

    def write() -> None:
        with closing(db.writer()) as writer:
            while not ending.is_set():
                writer.execute("INSERT INTO bare VALUES (1)")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


KEYS = """
CREATE TYPE mood AS ENUM ('low', 'it''s "high"');
CREATE DOMAIN small AS int CHECK (VALUE < 100000);
CREATE TABLE by_text (k text COLLATE "C", d varchar(9), v int, PRIMARY KEY (k, d));
INSERT INTO by_text SELECT format(E'\\%s"''{,} ä\n', i), i, i FROM generate_series(1, 20) AS i;
CREATE TABLE by_char (k char(5) PRIMARY KEY, v int);
INSERT INTO by_char SELECT 'a' || i, i FROM generate_series(1, 20) AS i;
CREATE TABLE by_time (d date, t timestamp, z timestamptz, v int, PRIMARY KEY (d, t, z));
INSERT INTO by_time SELECT '0044-03-15 BC'::date + i, '20000-01-01 00:00:00.123456'::timestamp - i * interval '1 day',
    '1999-12-31 23:59:59.999999+05:30'::timestamptz + i * interval '1 hour', i FROM generate_series(1, 20) AS i;
CREATE TABLE by_number (n numeric, m numeric(10,2), f float8, b boolean, v int, PRIMARY KEY (n, m, f, b));
INSERT INTO by_number SELECT i + 0.10, i, i / 3.0, i % 2 = 0, i FROM generate_series(1, 20) AS i;
INSERT INTO by_number VALUES ('NaN', 0, 'NaN', true, 0), (1e30, 0, '-Infinity', true, 0);
CREATE TABLE by_other (u uuid, y bytea, e mood, s small, a int[], i inet, r int4range, v int,
    PRIMARY KEY (u, y, e, s, a, i, r));
INSERT INTO by_other SELECT md5(i::text)::uuid, decode(md5(i::text), 'hex'), 'it''s "high"', i, ARRAY[i, NULL],
    '10.0.0.0/8', int4range(i, NULL), i FROM generate_series(1, 20) AS i;
CREATE TABLE parted (id int PRIMARY KEY, v int) PARTITION BY HASH (id);
CREATE TABLE parted_0 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO parted SELECT i, i FROM generate_series(1, 20) AS i;
CREATE TABLE above (id int PRIMARY KEY, v int);
CREATE TABLE below (PRIMARY KEY (id)) INHERITS (above);
INSERT INTO above SELECT i, i FROM generate_series(1, 20) AS i;
INSERT INTO below SELECT i, i FROM generate_series(1, 20) AS i;
CREATE TABLE "; DROP TABLE parted; --" ("%s ""k" int PRIMARY KEY, v int);
INSERT INTO "; DROP TABLE parted; --" SELECT i, i FROM generate_series(1, 20) AS i
"""


def test_rows_are_found_by_keys_of_any_type(db: Database, tmp_path: Path) -> None:
    for statement in KEYS.strip().split(";\n"):
        db.execute(statement)
    replicate_once(db, tmp_path)
    verdicts = verify_tables(db, tmp_path)
    assert set(verdict_texts(verdicts).values()) == {"equal"}, verdict_texts(verdicts)
    for name, verdict in verdicts.items():
        is_last = pa.array([False] * (verdict.rows - 1) + [True])
        rewrite(tmp_path, name, lambda rows, is_last=is_last: raise_values(rows, is_last).slice(1))
    after = verify_tables(db, tmp_path)
    assert after.keys() == verdicts.keys() == {
        "; DROP TABLE parted; --", "above", "below", "by_char", "by_number", "by_other", "by_text", "by_time", "parted",
    }  # fmt: skip
    for verdict in after.values():
        kinds = sorted(example.kind for example in verdict.examples)
        assert (verdict.result, verdict.differing, kinds) == ("different", 2, ["changed", "missing"]), verdict
    # The changed rows are those whose values the examples name as the server writes them.
    (changed,) = (difference for difference in after["by_time"].examples if difference.kind == "changed")
    condition = " AND ".join(f"{name} = '{value}'" for name, value in changed.key.items())
    assert db.value(f"SELECT count(*) FROM by_time WHERE {condition}") == 1


def test_what_is_not_published_is_not_compared(db: Database, tmp_path: Path) -> None:
    if db.major < 15:
        pytest.skip("PostgreSQL 15 publishes parts of tables")
    db.execute(
        "CREATE TABLE part (id int PRIMARY KEY, v text, hidden text, made int GENERATED ALWAYS AS (id * 2) STORED)",
        "CREATE TABLE queue (v int, hidden text)",
        "ALTER TABLE queue REPLICA IDENTITY FULL",
        "INSERT INTO part SELECT i, 'v' || i, 'hidden' FROM generate_series(1, 100) AS i",
        "INSERT INTO queue SELECT i % 10, 'x' FROM generate_series(1, 100) AS i",
        "CREATE PUBLICATION mine FOR TABLE part (id, v) WHERE (id <= 50), queue WHERE (v <> 3)",
    )
    replicate_once(db, tmp_path, publication="mine")
    verdicts = verify_tables(db, tmp_path)
    assert {name: (verdict.result, verdict.rows) for name, verdict in verdicts.items()} == {
        "part": ("equal", 50),
        "queue": ("equal", 90),
    }
    rewrite(tmp_path, "part", lambda rows: rows.slice(2))
    rewrite(tmp_path, "queue", lambda rows: rows.slice(2))
    assert {(verdict.result, verdict.differing) for verdict in verify_tables(db, tmp_path).values()} == {
        ("different", 2)
    }


def test_rows_that_the_role_may_not_read_are_an_error(shop: Database, tmp_path: Path) -> None:
    replicate_once(shop, tmp_path)
    shop.execute(
        "DROP ROLE IF EXISTS verifier",
        "CREATE ROLE verifier LOGIN REPLICATION",
        "GRANT SELECT ON customer, orders TO verifier",
        "ALTER TABLE customer ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY few ON customer USING (id < 10)",
    )
    settings = ConnectionSettings(shop.dsn, user="verifier")
    storage = Storage(str(tmp_path))
    with pytest.raises(VerifyError, match=r"TABLE_NOT_READABLE.*customer.*row-level security"):
        list(verify(settings, storage, [TableName("public", "customer")]))
    with pytest.raises(VerifyError, match=r"TABLE_NOT_READABLE.*audit"):
        list(verify(settings, storage, [TableName("public", "audit")]))
    assert [verdict.result for verdict in verify(settings, storage, [TableName("public", "orders")])] == ["equal"]


def test_another_place_database_or_table_is_refused(shop: Database, tmp_path: Path) -> None:
    replicate_once(shop, tmp_path)
    with pytest.raises(VerifyError, match="no replicated tables"):
        verify_tables(shop, tmp_path / "other")
    with pytest.raises(VerifyError, match=r"no table public\.bare"):
        verify_tables(shop, tmp_path, "bare")
    with pytest.raises(StateError, match="database"):
        list(verify(ConnectionSettings(shop.dsn, dbname="postgres"), Storage(str(tmp_path))))


def test_altered_and_dropped_tables_are_undecided(shop: Database, tmp_path: Path) -> None:
    replicate_once(shop, tmp_path)
    shop.execute(
        "ALTER TABLE customer ADD COLUMN more int",
        "DROP TABLE orders",
        "ALTER TABLE audit RENAME TO audited",
        "CREATE TABLE audit (at timestamp, what text)",
    )
    verdicts = verify_tables(shop, tmp_path)
    assert verdict_texts(verdicts) == {
        "audit": "undecided the server has another table of this name: logicalrep replicate reloads it",
        "customer": "undecided its columns differ from the server's columns: logicalrep replicate reloads it",
        "orders": "undecided the server no longer has the table",
    }


def test_the_command(shop: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replicate_once(shop, tmp_path)
    shown = ["verify", "--dsn", shop.dsn, "--to", str(tmp_path)]
    assert main(shown) == 0
    assert capsys.readouterr().out.splitlines() == [
        "public.audit: equal, 10 rows",
        "public.customer: equal, 1,000 rows",
        "public.orders: equal, 5,000 rows",
        "3 tables, 6,010 rows: 3 equal",
    ]
    # A file of replicate that has settings by table alone.
    config = tmp_path / "shop.yaml"
    config.write_text("tables:\n  public.orders:\n    numeric: double\n")
    assert main([*shown, "--config", str(config)]) == 0
    assert main(["status", *shown[1:], "--config", str(config)]) == 0
    capsys.readouterr()
    shop.execute("INSERT INTO orders VALUES (9999, 1, 1, now(), 'secret note')")
    assert main([*shown, "--tables", "orders,audit"]) == 5
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("public.orders: undecided: changes are not applied yet and no replicate runs")
    assert lines[2] == "2 tables, 10 rows: 1 equal, 1 undecided"
    rewrite(tmp_path, "customer", lambda rows: rows.slice(1))
    assert main([*shown, "--json"]) == 4
    audit, customer, orders, total = map(json.loads, capsys.readouterr().out.splitlines())
    assert (audit["table"], audit["result"], audit["rows"]) == ("public.audit", "equal", 10)
    assert (customer["result"], customer["differing"]) == ("different", 1)
    assert customer["examples"] == [{"kind": "missing", "key": {"id": "1"}, "server": None, "destination": None}]
    assert orders["result"] == "undecided"
    assert total == {"tables": 3, "rows": 1010, "equal": 1, "different": 1, "undecided": 1}
    assert main([*shown, "--tables", "customer"]) == 4
    assert capsys.readouterr().out.splitlines()[1] == "  missing id=1"
    assert main([*shown, "--tables", "customer", "-v"]) == 4
    assert '{"id": "1", "name": "name 1", "city": null}' in capsys.readouterr().out
    assert main([*shown[:3], "--to", str(tmp_path / "nothing")]) == 1
    assert "[VERIFY_IMPOSSIBLE]" in capsys.readouterr().err
    assert main(["verify", "--to", str(tmp_path)]) == 2
    assert "--dsn or --dsn-file" in capsys.readouterr().err


def test_a_password_in_a_file_is_in_nothing_that_is_written(
    shop: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, file = tmp_path / "lake", tmp_path / "dsn"
    settings = ReplicateSettings(dsn=ConnectionSettings(f"{shop.dsn} password=s3cretword"), to=str(lake), once=True)
    replicate_with(settings, Observers(), engine=SequentialEngine())
    file.write_text(f"{shop.dsn} password=s3cretword\n")
    monkeypatch.setenv("PGPASSWORD", "other-s3cretword")
    assert main(["verify", "--dsn-file", str(file), "--to", str(lake), "--json"]) == 0
    file.write_text(f"{shop.dsn} password=s3cretword host=/nowhere connect_timeout=2\n")
    assert main(["verify", "--dsn-file", str(file), "--to", str(lake)]) == 1
    captured = capsys.readouterr()
    assert "[SERVER_AWAY]" in captured.err
    stored = [path.read_bytes() for path in lake.rglob("*") if path.is_file()]
    assert len(stored) > 5
    assert not [text for text in (captured.out, captured.err, repr(settings)) if "s3cretword" in text]
    assert not [content for content in stored if b"s3cretword" in content]


def test_every_type_is_equal_and_a_difference_in_each_is_found(db: Database, tmp_path: Path) -> None:
    types, rows = every_type(db)
    for number, (name, type_) in enumerate(types.items()):
        db.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v {type_})", f"INSERT INTO {name} VALUES (-1, NULL)")
        relation = query_published_relation(db.connection, TableName("public", name), ())
        assert relation is not None
        column = Texts("utf-8", (), TypeCatalog()).columns(relation)[1]
        for at, row in enumerate(rows):
            if row[number] is not None:
                sent = db.connection.execute(f"SELECT format('%%s', %s::{type_})", (row[number],)).fetchone()
                assert sent is not None
                with suppress(ColumnValueError):
                    arrow_value(column, column.load("t", sent[0].encode()), for_spark=True)
                    db.connection.execute(f"INSERT INTO {name} VALUES (%s, %s::{type_})", (at, row[number]))
        if type_ == "numeric(10,2)[]":
            db.execute(f"INSERT INTO {name} VALUES (1, '{{1.10,NULL}}')")
    # Some servers are built without xml, whose values they refuse then.
    types = {name: type_ for name, type_ in types.items() if db.value(f"SELECT count(*) FROM {name}") != 1}
    replicate_once(db, tmp_path)
    verdicts = verify_tables(db, tmp_path, *types)
    assert set(verdict_texts(verdicts).values()) == {"equal"}, verdict_texts(verdicts)
    assert len(verdicts) > 70
    for name in types:
        rewrite(tmp_path, name, lambda rows: pa.concat_tables([rows.slice(1), _turned(rows)]))
    verdicts = verify_tables(db, tmp_path, *types)
    assert set(verdict_texts(verdicts).values()) == {"different"}, verdict_texts(verdicts)
    assert {example.kind for verdict in verdicts.values() for example in verdict.examples} == {"changed"}


def _turned(rows: pa.Table) -> pa.Table:
    """Return the first row with the value of the last, which is NULL, or the other way round."""
    first, last = rows.slice(0, 1), rows.slice(rows.num_rows - 1)
    return pa.table({"id": first.column("id"), "v": last.column("v")}, schema=rows.schema)
