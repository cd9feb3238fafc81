"""A first day, walked whole: a role that owns nothing, tables of every kind, a cluster of Spark, and an object store."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("moto")
pytest.importorskip("pyspark")
pytest.importorskip("duckdb")

import logicalrep
from logicalrep.cli.main import main
from logicalrep.pipeline.state.state import State, StateError
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.reader import ReadError
from tests.cli.commands import processes
from tests.pipeline.comparison import find_differences
from tests.pipeline.storage.stores import Store, start_object_store
from tests.pipeline.unprivileged import ROLE, DatabaseAsReader, run_script
from tests.postgres.servers import Database, start_as_it_comes
from tests.spark.cluster import OF_DRIVER, cluster, submission
from tests.waiting import eventually

pytestmark = [pytest.mark.postgres, pytest.mark.spark, pytest.mark.thorough]

LAKE = "s3://lake/shop"
TABLES = r"""
CREATE EXTENSION vector
CREATE SCHEMA sales
CREATE SCHEMA "Odd Schema"
CREATE TYPE mood AS ENUM ('sad', 'so so', 'happy')
CREATE DOMAIN positive AS numeric CHECK (VALUE > 0)
CREATE TYPE address AS (street text, number int)
CREATE TABLE orders (id bigint PRIMARY KEY, customer_id int, price numeric, placed timestamptz NOT NULL, note text)
CREATE TABLE customer (id int PRIMARY KEY, name text NOT NULL, mood mood, home address)
CREATE TABLE sales.lines (order_id bigint, line int, price numeric(12, 4), PRIMARY KEY (order_id, line))
CREATE TABLE sales.empty (id int PRIMARY KEY, v text)
CREATE TABLE sales."Case" (id int PRIMARY KEY, v text)
CREATE TABLE sales."case" (id int PRIMARY KEY, w text)
CREATE TABLE "Odd Schema"."a table, of ""names"" / größe" (id int PRIMARY KEY, "Some Column; = {}" text, "some column; = {}" text)
CREATE TABLE "Odd Schema"."%2F ~ .." (id int PRIMARY KEY, "select" int)
CREATE TABLE numbers (id int PRIMARY KEY, i2 smallint, i8 bigint, f4 real, f8 double precision, n numeric, m money)
CREATE TABLE wide_numbers (id int PRIMARY KEY, n numeric(38, 10), w numeric(60, 20), s numeric(3, -2))
CREATE TABLE times (id int PRIMARY KEY, d date, t time, tz timetz, ts timestamp, tstz timestamptz, i interval)
CREATE TABLE texts (id int PRIMARY KEY, c char(5), v varchar(20), t text, b bytea, bits bit(4), vb varbit)
CREATE TABLE documents (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), j json, b jsonb)
CREATE TABLE addresses (id inet PRIMARY KEY, c cidr, m macaddr)
CREATE TABLE arrays (id int PRIMARY KEY, i int[], t text[], n numeric[], moods mood[])
CREATE TABLE ranges (id int4range PRIMARY KEY, n numrange, t tstzrange, m int4multirange)
CREATE TABLE shapes (id int PRIMARY KEY, p point, l lseg, b box, c circle)
CREATE TABLE searches (id int PRIMARY KEY, v tsvector, q tsquery)
CREATE TABLE domains (id int PRIMARY KEY, amount positive, amounts positive[])
CREATE TABLE enums (mood mood PRIMARY KEY, note text)
CREATE TABLE composites (id int PRIMARY KEY, a address, many address[])
CREATE TABLE vectors (id int PRIMARY KEY, v vector(3), h halfvec(2))
CREATE TABLE toasted (id int PRIMARY KEY, large text, counter int DEFAULT 0)
CREATE TABLE generated (a int PRIMARY KEY, twice int GENERATED ALWAYS AS (2 * a) STORED)
CREATE TABLE generated_key (a int, g int GENERATED ALWAYS AS (a + 1) STORED, PRIMARY KEY (a, g))
CREATE TABLE counted (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text)
CREATE TABLE by_index (a int NOT NULL, v text)
CREATE UNIQUE INDEX by_index_a ON by_index (a)
ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_index_a
CREATE TABLE heap (v int, w text)
ALTER TABLE heap REPLICA IDENTITY FULL
CREATE TABLE bare (v int)
CREATE TABLE mute (id int PRIMARY KEY)
ALTER TABLE mute REPLICA IDENTITY NOTHING
CREATE TABLE hidden (id int PRIMARY KEY, owner text)
ALTER TABLE hidden ENABLE ROW LEVEL SECURITY
CREATE TABLE events (id int, day date, v text, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)
CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2026-07-01')
CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM ('2026-07-01') TO ('2027-01-01') PARTITION BY LIST (day)
CREATE TABLE events_2_other PARTITION OF events_2 DEFAULT
CREATE TABLE measured (at int, v text) PARTITION BY RANGE (at)
CREATE TABLE measured_1 PARTITION OF measured FOR VALUES FROM (0) TO (1000)
CREATE TABLE parent (id int PRIMARY KEY, v text)
CREATE TABLE child (more text, PRIMARY KEY (id)) INHERITS (parent)
CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY)
CREATE TABLE columnless ()
CREATE TABLE many_columns (id int PRIMARY KEY, MANY_COLUMNS)
CREATE TABLE large_1 (id int PRIMARY KEY, v text)
CREATE TABLE large_2 (id int PRIMARY KEY, v text)
"""
ROWS = r"""
INSERT INTO orders SELECT i, i % 100, i / 7.0, timestamptz '2026-11-01Z' + i * interval '3 minutes', 'n' FROM generate_series(1, 10000) AS i
INSERT INTO customer SELECT i, 'name ' || i, 'so so', ROW('a street', i)::address FROM generate_series(0, 99) AS i
INSERT INTO sales.lines SELECT i, l, i / 3.0 FROM generate_series(1, 10000) AS i, generate_series(1, 3) AS l
INSERT INTO sales."Case" VALUES (1, 'upper')
INSERT INTO sales."case" VALUES (1, 'lower')
INSERT INTO "Odd Schema"."a table, of ""names"" / größe" VALUES (1, 'one', 'two')
INSERT INTO "Odd Schema"."%2F ~ .." VALUES (1, 1)
INSERT INTO numbers VALUES (1, 32767, -9223372036854775808, 'NaN', '-Infinity', 1e100, 12.5), (2, 0, 0, 0, -0.0, 'NaN', NULL)
INSERT INTO wide_numbers VALUES (1, 1234567890123456789012345678.0123456789, 1e39, 12345)
INSERT INTO times VALUES (1, '2026-11-26', '24:00', '12:00+02', '0044-03-15 BC', now(), '1 mon -3 days 04:05:06.7')
INSERT INTO texts VALUES (1, 'ab', E'\u202e', E'a\nb\\', '\x00ff', '1010', '1')
INSERT INTO documents VALUES (DEFAULT, '{"a":  1, "a": 2}', '{"a": [1, null]}')
INSERT INTO addresses VALUES ('10.0.0.1/8', '10.0.0.0/8', '08:00:2b:01:02:03')
INSERT INTO arrays VALUES (1, '{1,NULL,3}', '{"a,b",NULL,""}', '{1.50}', '{sad,happy}')
INSERT INTO ranges VALUES ('[1,5)', '(,1.5]', 'empty', '{[1,3),[5,6)}')
INSERT INTO shapes VALUES (1, '(1,2)', '((0,0),(1,1))', '((0,0),(1,1))', '<(0,0),1>')
INSERT INTO searches VALUES (1, 'a fat cat', 'fat & cat')
INSERT INTO domains VALUES (1, 1.50, '{2,3}')
INSERT INTO enums VALUES ('sad', 'x')
INSERT INTO composites VALUES (1, ROW('a "street", long', 1), ARRAY[ROW('b', NULL)::address])
INSERT INTO vectors VALUES (1, '[1,2.5,-3]', '[1,2]')
INSERT INTO toasted SELECT i, (SELECT string_agg(md5((i * n)::text), '') FROM generate_series(1, 400) AS n) FROM generate_series(1, 20) AS i
INSERT INTO generated SELECT generate_series(1, 10)
INSERT INTO generated_key SELECT generate_series(1, 10)
INSERT INTO counted (v) SELECT 'v' FROM generate_series(1, 10)
INSERT INTO by_index VALUES (1, 'one')
INSERT INTO heap VALUES (1, 'same'), (1, 'same'), (NULL, NULL)
INSERT INTO bare SELECT generate_series(1, 10)
INSERT INTO hidden VALUES (1, 'shop')
INSERT INTO events SELECT i, date '2026-01-01' + i % 360, 'v' FROM generate_series(1, 3000) AS i
INSERT INTO measured SELECT generate_series(1, 900), 'v'
INSERT INTO parent VALUES (1, 'of the parent')
INSERT INTO child VALUES (2, 'of the child', 'more')
INSERT INTO unlogged VALUES (1)
INSERT INTO many_columns (id) SELECT generate_series(1, 100)
INSERT INTO large_1 SELECT i, repeat(md5(i::text), 20) FROM generate_series(1, 15000) AS i
INSERT INTO large_2 SELECT i, repeat(md5(i::text), 20) FROM generate_series(1, 15000) AS i
"""

PROGRAM = """
import sys
from logicalrep.cli.main import main
sys.exit(main(["replicate", *sys.argv[1:]]))
"""
SETTINGS = """
tables:
  public.orders:
    numeric: double
    partition_by: day(placed)
"""
COMPARED = [
    *(
        "addresses",
        "bare",
        "child",
        "customer",
        "documents",
        "enums",
        "events",
        "generated",
        "heap",
        "hidden",
        "large_1",
    ),
    *("large_2", "many_columns", "measured", "texts", "toasted", "vectors"),
]
"""The tables whose values Python compares as they are."""


@pytest.fixture
def shop() -> Iterator[Database]:
    """A server that is not set up for it, with 44 tables and a role that owns nothing."""
    with start_as_it_comes() as db:
        many = ", ".join(f"c{number} int" for number in range(300))
        db.execute(f"CREATE ROLE {ROLE} LOGIN", *TABLES.replace("MANY_COLUMNS", many).strip().splitlines())
        db.execute(*ROWS.strip().splitlines())
        yield db
        db.connection.close()


@contextmanager
def replicate_on(master: str, arguments: list[str], folder: Path, environment: dict[str, str]) -> Iterator[Path]:
    """Yield the output of the command on a cluster; a signal to spark-submit alone ends all of its processes."""
    program, output = folder / "program.py", folder / "output"
    program.write_text(PROGRAM)
    submit = submission(master, program, *arguments, settings={"spark.executor.memory": "512m"})
    with output.open("wb") as log:
        process = subprocess.Popen(
            submit, env=os.environ | OF_DRIVER | environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield output
        assert process.poll() is None, output.read_text()
        process.send_signal(signal.SIGTERM)
        process.wait(120)
        eventually(lambda: not processes(process))
    finally:
        for pid in processes(process):
            os.kill(pid, signal.SIGKILL)
        process.wait()


def query_tables(store: Store) -> dict[str, str]:
    """Return the states of the tables at the destination."""
    try:
        state = State.read(Storage(LAKE, store.options))
    except StateError:
        return {}
    return {str(name): table.state for name, table in state.tables.items()}


def this_minute() -> datetime:
    """Return the beginning of this minute: of each minute before it the last versions stay."""
    return datetime.now(UTC).replace(second=0, microsecond=0)


def are_stored(time: datetime) -> bool:
    """Return whether the versions of the tables are stored that belong together at a time."""
    try:
        logicalrep.at(LAKE, time)
    except ReadError:
        return False
    return True


def test_a_first_day(shop: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reader = DatabaseAsReader(shop.server, "postgres", 18, shop.connection)
    called, config = tmp_path / "called", tmp_path / "shop.yaml"
    config.write_text(SETTINGS)
    call = f"cat >> {shlex.quote(str(called))}"
    with start_object_store() as store, pytest.MonkeyPatch.context() as patch:
        for name, value in store.environment.items():
            patch.setenv(name, value)
        connection_options = ["--dsn", reader.dsn, "--to", LAKE]

        # The person who sets it up: one script.
        assert main(["check", "--print-sql", "--config", str(config), *connection_options]) == 3
        run_script(shop, capsys.readouterr().out)
        assert main(["check", "--config", str(config), *connection_options]) == 0
        arguments = [*connection_options, "--every", "0", "--config", str(config), "--call-on-stop", call]
        first, second = tmp_path / "first", tmp_path / "second"
        first.mkdir()
        second.mkdir()

        def has(expected: int, table: str = "public.orders") -> bool:
            return bool(logicalrep.read(LAKE, table).arrow().num_rows == expected)

        with cluster(first, 1) as master, replicate_on(master, arguments, first, store.environment) as output:
            eventually(
                lambda: len(states := query_tables(store)) == 38 and {*states.values()} == {"following"}, seconds=600
            )
            assert find_differences(shop.dsn, LAKE, [f"public.{name}" for name in COMPARED], store.options) == {}

            # The analyst: sums of prices, one day, and three tables as they were.
            orders, lines = logicalrep.read(LAKE, "public.orders"), logicalrep.read(LAKE, "sales.lines")
            assert lines.duckdb().sum("price").fetchall() == shop.rows("SELECT sum(price) FROM sales.lines")
            ((total,),) = orders.duckdb().sum("price").fetchall()
            assert total == pytest.approx(float(str(shop.value("SELECT sum(price) FROM orders"))))
            of_day = orders.select(
                ["id"], where=[("placed", ">=", "2026-11-07T00:00Z"), ("placed", "<", "2026-11-08T00:00Z")]
            ).arrow()
            assert of_day.num_rows == shop.value(
                "SELECT count(*) FROM orders WHERE (placed AT TIME ZONE 'UTC')::date = '2026-11-07'"
            )
            assert of_day.num_rows == 480
            eventually(lambda: are_stored(this_minute()))
            yesterday = this_minute()
            shop.execute("DELETE FROM orders WHERE id > 100", "DELETE FROM customer", "TRUNCATE sales.lines")
            eventually(lambda: has(100) and has(0, "public.customer") and has(0, "sales.lines"))
            then = logicalrep.at(LAKE, yesterday)
            names = ("public.orders", "public.customer", "sales.lines")
            assert [then[name].arrow().num_rows for name in names] == [10000, 100, 30000]

            # The operator: the server is away for a while, and somebody is called when a table stops.
            shop.connection.close()
            shop.server.stop("fast")
            eventually(lambda: "the server cannot be reached" in output.read_text())
            shop.server.start()
            shop.reconnect()
            shop.execute("INSERT INTO orders VALUES (20001, 1, 1.5, '2026-11-26Z', 'late')")
            eventually(lambda: has(101))
            shop.execute("INSERT INTO times (id, ts) VALUES (2, 'infinity')")
            eventually(called.exists)
            eventually(lambda: called.read_text().endswith("}"))
            event = json.loads(called.read_text())
            assert (event["event"], event["table"]) == ("table_stopped", "public.times")

        # All of it is started again: the master, its worker, and the command.
        shop.execute("DELETE FROM orders WHERE id < 51")
        with cluster(second, 1) as master, replicate_on(master, arguments, second, store.environment) as second_output:
            eventually(lambda: has(51))
            assert "resuming 38 tables from " in second_output.read_text()
        for path in (output, second_output):
            assert "Traceback" not in path.read_text()
