"""A first start by a role that owns nothing: replicate lists every unmet requirement, and one SQL script meets them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from logicalrep.cli.main import main
from logicalrep.pipeline.config.nodes import ConfigError
from logicalrep.pipeline.requirements.requirements import UnmetError
from logicalrep.pipeline.run.setup import query_unmet
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.errors import LogicalRepError
from tests.pipeline.comparison import find_differences
from tests.pipeline.reading import read_table
from tests.pipeline.replicating import replicate_once, settings
from tests.pipeline.unprivileged import ROLE, DatabaseAsReader, run_script
from tests.postgres.servers import Database, start_as_it_comes

pytestmark = pytest.mark.postgres

SCHEMAS = ("public", "sales", '"Odd Schema"')
TABLES = [
    *(f"CREATE TABLE {schema}.t{number} (id int PRIMARY KEY, v text)" for schema in SCHEMAS for number in range(10)),
    'CREATE TABLE sales."T 1" (id int PRIMARY KEY, "Some Column" int)',
    'CREATE TABLE sales."größe" (id int PRIMARY KEY)',
    'CREATE TABLE sales."of\ntwo \\ lines, a "" and \x1b" (id int PRIMARY KEY)',
    "CREATE TABLE sales.bare (v int)",
    "CREATE TABLE sales.heap (v int)",
    "ALTER TABLE sales.heap REPLICA IDENTITY FULL",
    "CREATE TABLE sales.hidden (id int PRIMARY KEY)",
    "ALTER TABLE sales.hidden ENABLE ROW LEVEL SECURITY",
    "CREATE TABLE public.root (at int, v text) PARTITION BY RANGE (at)",
    "CREATE TABLE public.root_1 PARTITION OF public.root FOR VALUES FROM (0) TO (10)",
    "CREATE TABLE public.root_2 PARTITION OF public.root FOR VALUES FROM (10) TO (20) PARTITION BY RANGE (at)",
    "CREATE TABLE public.root_2_1 PARTITION OF public.root_2 FOR VALUES FROM (10) TO (20)",
    "CREATE TABLE public.keyed (id int PRIMARY KEY) PARTITION BY RANGE (id)",
    "CREATE TABLE public.keyed_1 PARTITION OF public.keyed FOR VALUES FROM (0) TO (10)",
    "CREATE TABLE public.parent (id int PRIMARY KEY)",
    "CREATE TABLE public.child () INHERITS (public.parent)",
    "CREATE TABLE public.generated (a int, g int GENERATED ALWAYS AS (a + 1) STORED, PRIMARY KEY (a, g))",
    "CREATE UNLOGGED TABLE public.unlogged (id int PRIMARY KEY)",
    "CREATE VIEW public.seen AS SELECT 1 AS one",
    "CREATE MATERIALIZED VIEW public.stored AS SELECT 1 AS one",
    "CREATE SEQUENCE public.counted",
]
PUBLISHED = 41
KEYLESS = ("public.child", "public.root", "sales.bare")


@pytest.fixture
def shop() -> Iterator[Database]:
    """A server that is not set up for it, with 45 tables of every kind and a role that owns nothing."""
    with start_as_it_comes() as db:
        db.execute('CREATE SCHEMA sales; CREATE SCHEMA "Odd Schema"', f"CREATE ROLE {ROLE} LOGIN", *TABLES)
        db.execute("INSERT INTO sales.t1 VALUES (1, 'one')", "INSERT INTO public.root VALUES (1, 'one'), (11, 'two')")
        db.execute("INSERT INTO sales.hidden VALUES (1)", "INSERT INTO public.generated VALUES (1)")
        yield db
        db.connection.close()


@pytest.fixture
def reader(shop: Database) -> Database:
    return DatabaseAsReader(shop.server, "postgres", 18, shop.connection)


def test_one_start_after_one_script(
    shop: Database, reader: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--dsn", reader.dsn, "--to", str(tmp_path)]
    assert main(["check", *arguments]) == 3
    output = capsys.readouterr().out
    findings = [line.split("]")[0][1:] for line in output.splitlines() if line.startswith("[")]
    assert findings == [
        "WAL_LEVEL",
        "ROLE_CANNOT_REPLICATE",
        "TABLE_NOT_READABLE",
        "TABLE_NOT_READABLE",
        "TABLE_NOT_READABLE",
        "PUBLICATION_NEEDED",
    ]
    assert output.count("GRANT USAGE ON SCHEMA") == 1, output
    # One line for all tables without a key; a partitioned table is named, and not its partitions.
    assert (
        "warning: 3 tables are not replicated, as nothing identifies their rows in updates and deletes: "
        f"{', '.join(KEYLESS)}. Give each a primary key, or run ALTER TABLE … REPLICA IDENTITY FULL"
    ) in output
    assert output.count("nothing identifies") == 1
    assert main(["check", "--print-sql", *arguments]) == 3
    script = capsys.readouterr().out
    assert output.endswith("\nTo print all statements as one SQL script, add --print-sql.\n")
    assert script.count("GRANT USAGE ON SCHEMA") == 1, script
    assert max(map(len, script.splitlines())) <= 120, "a person reads it before a superuser runs it"
    assert 'U&"of\\+00000Atwo \\\\ lines, a "" and \\+00001B"' in script
    assert "publish_generated_columns = stored" in script
    # The run itself refuses the same, and has made nothing.
    with pytest.raises(UnmetError) as refused:
        replicate_once(reader, tmp_path)
    assert refused.value.script == script
    assert [finding.code for finding in refused.value.findings] == findings
    assert shop.rows("SELECT FROM pg_publication") == shop.rows("SELECT FROM pg_replication_slots") == []
    run_script(shop, script)
    assert main(["check", *arguments]) == 0
    output = capsys.readouterr().out
    assert output.splitlines()[-1] == "ready"
    replicate_once(reader, tmp_path)
    state = State.read(Storage(str(tmp_path)))
    assert {table.state for table in state.tables.values()} == {"following"}
    assert {*KEYLESS, "public.generated", "sales.hidden"} <= set(state.tables)
    assert len(state.tables) == PUBLISHED
    assert find_differences(shop.dsn, str(tmp_path), ["sales.t1", "public.root", "sales.hidden"]) == {}
    # The application writes as before, also to the tables that had no key.
    shop.execute("UPDATE public.root SET v = 'three'", "DELETE FROM sales.bare", "UPDATE public.generated SET a = 2")


def test_mistakes_of_the_settings_are_reported_before_anything_is_created(
    db18: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db18.execute(
        "CREATE TABLE orders (id int, twice int GENERATED ALWAYS AS (2 * id) STORED)",
        "ALTER TABLE orders REPLICA IDENTITY FULL",
        "INSERT INTO orders VALUES (1)",
    )
    config = tmp_path / "shop.yaml"
    config.write_text("tables:\n  order:\n    history: true\n  orders:\n    masked:\n      twic: nulled\n")
    lines = [
        f"{config}:2: no table public.order is replicated, and it is not optional; did you mean orders?",
        f"{config}:6: public.orders has no published column twic; did you mean twice?",
    ]
    arguments = ["--dsn", db18.dsn, "--to", str(tmp_path / "lake"), "--config", str(config)]
    assert main(["check", *arguments]) == 3
    assert capsys.readouterr().out.splitlines() == [f"[CONFIG_INVALID] {line}" for line in lines]
    with pytest.raises(ConfigError) as refused:
        replicate_once(db18, tmp_path / "lake", config=config)
    assert str(refused.value).splitlines()[1:] == lines
    of_database = "SELECT FROM pg_replication_slots WHERE database = current_database()"
    assert db18.rows("SELECT FROM pg_publication") == db18.rows(of_database) == []
    # A column that is sent only once the publication is made is there.
    config.write_text("tables:\n  orders:\n    masked:\n      twice: nulled\n")
    assert main(["check", *arguments]) == 0
    replicate_once(db18, tmp_path / "lake", config=config)
    rows = read_table(str(tmp_path / "lake/public/orders")).to_pylist()
    assert rows == [{"id": 1, "twice": None}]


def test_what_stays_out_is_left_out_of_the_script_line_by_line(
    shop: Database, reader: Database, tmp_path: Path
) -> None:
    """A person who takes the lines of a table out has a publication that refuses no update of it."""
    script = query_unmet(settings(reader, tmp_path)).script
    lines = script.splitlines()
    at = next(
        number for number, line in enumerate(lines) if line.startswith("-- If you do not run") and "sales.bare" in line
    )
    assert lines[at + 1] == "ALTER TABLE sales.bare REPLICA IDENTITY FULL;"
    assert lines[at + 2].startswith('GRANT SELECT ON "sales"."bare" TO')
    assert lines[at + 3].startswith("ALTER PUBLICATION")
    run_script(shop, "\n".join(lines[:at] + lines[at + 4 :]) + "\n")
    shop.execute("INSERT INTO sales.bare VALUES (1)", "UPDATE sales.bare SET v = 2")
    assert query_unmet(settings(reader, tmp_path)).findings == ()


def test_upkeep_by_the_service_is_proposed_for_a_catalog_that_owns_its_tables(db18: Database, tmp_path: Path) -> None:
    uri = "https://catalog.example.org"
    named = [
        {"catalog": uri},
        {"catalog": uri, "upkeep": "none"},
        {"catalog": uri, "catalog_options": {"access-delegation": "none"}},
    ]
    warned = [
        any(
            "--upkeep none" in line
            for line in query_unmet(settings(db18, tmp_path, format="iceberg", **entry)).warnings
        )
        for entry in named
    ]
    assert warned == [True, False, False]


def test_a_table_that_cannot_be_read_later_stops_alone(
    shop: Database, reader: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = settings(reader, tmp_path)
    run_script(shop, query_unmet(given).script)
    replicate_once(reader, tmp_path)
    shop.execute(f"REVOKE SELECT ON sales.t1 FROM {ROLE}", "INSERT INTO sales.t2 VALUES (1, 'one')")
    assert query_unmet(given).findings == ()
    assert main(["check", "--dsn", reader.dsn, "--to", str(tmp_path)]) == 3
    output = capsys.readouterr().out
    assert 'may not read sales.t1: run GRANT SELECT ON "sales"."t1" TO' in output.splitlines()[0]
    assert "ready" not in output.splitlines()
    replicate_once(reader, tmp_path)
    assert find_differences(shop.dsn, str(tmp_path), ["sales.t1", "sales.t2"]) == {}
    shop.execute("CREATE TABLE later (id int PRIMARY KEY)")
    # Only its owner can publish the new table, so that nobody needs to read it.
    script = query_unmet(given).script
    needed, _, choices = script.partition("-- Your choice")
    assert '"sales"."t1"' in needed
    assert "later" not in needed
    assert 'GRANT SELECT ON "public"."later"' in choices
    run_script(shop, script)
    assert main(["check", "--dsn", reader.dsn, "--to", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "ready"
    replicate_once(reader, tmp_path)
    assert find_differences(shop.dsn, str(tmp_path), ["sales.t1", "public.later"]) == {}


def test_a_table_that_would_stop_is_reported_before_the_first_start(
    db18: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db18.execute(
        "CREATE TABLE reserved (id int PRIMARY KEY, _valid_from int)",
        "CREATE TABLE named (id int PRIMARY KEY, of regclass)",
        "CREATE TABLE calling (id int PRIMARY KEY, v int)",
        "CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 2 * $1'",
        "CREATE INDEX ON calling (twice(v))",
        "CREATE ROLE intruder",
        "ALTER FUNCTION twice OWNER TO intruder",
        "CREATE PUBLICATION shop FOR TABLE reserved, named, calling WHERE (v > 0)",
        "CREATE TABLE fine (id int PRIMARY KEY)",
    )
    db18.execute("ALTER PUBLICATION shop ADD TABLE fine", "ALTER PUBLICATION shop SET (publish_via_partition_root)")
    arguments = ["--dsn", db18.dsn, "--to", str(tmp_path), "--publication", "shop", "--history"]
    assert main(["check", *arguments]) == 3
    codes = {"reserved": "COLUMN_RESERVED", "named": "COLUMN_OF_NAMES", "calling": "TABLE_UNSAFE"}
    lines = capsys.readouterr().out.splitlines()
    assert sorted(line.split("]")[0][1:] for line in lines) == sorted(codes.values()), lines
    assert all(any(f"[{code}] " in line and f"public.{name}" in line for line in lines) for name, code in codes.items())
    # The same tables stop, with the same codes; a table that is stopped already is reported once.
    with pytest.raises(LogicalRepError):
        replicate_once(db18, tmp_path, publication="shop", history=True)
    stopped = {name: table.error or "" for name, table in State.read(Storage(str(tmp_path))).tables.items()}
    assert {name: error.split("]")[0][1:] for name, error in stopped.items() if error} == {
        f"public.{name}": code for name, code in codes.items()
    }
    assert main(["check", *arguments]) == 3
    assert [line.split("]")[0] for line in capsys.readouterr().out.splitlines()] == ["[TABLES_STOPPED"] * len(codes)
    db18.execute("ALTER FUNCTION twice OWNER TO postgres", "DROP ROLE intruder")


def test_the_script_takes_a_unique_index_as_replica_identity(
    db18: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db18.execute(
        *(f"CREATE TABLE {name} (a int NOT NULL, b int NOT NULL, c int)" for name in "tuvwxyz"),
        "CREATE UNIQUE INDEX t_two ON t (a, b) INCLUDE (c)",
        'CREATE UNIQUE INDEX "t One" ON t (b) INCLUDE (c)',
        "CREATE UNIQUE INDEX ON u (a) WHERE b > 0",
        "CREATE UNIQUE INDEX ON v (a, c)",
        "CREATE UNIQUE INDEX ON w ((a + 1))",
        "ALTER TABLE x ADD UNIQUE (a) DEFERRABLE",
        "CREATE INDEX ON y (a)",
        "ALTER TABLE z REPLICA IDENTITY FULL",
        "CREATE UNIQUE INDEX ON z (a)",
    )
    assert main(["check", "--print-sql", "--dsn", db18.dsn, "--to", str(tmp_path)]) == 0
    script = capsys.readouterr().out
    assert [line for line in script.splitlines() if line.startswith("ALTER")] == [
        'ALTER TABLE public.t REPLICA IDENTITY USING INDEX "t One";',
        *(f"ALTER TABLE public.{name} REPLICA IDENTITY FULL;" for name in "uvwxy"),
    ]
    run_script(db18, script)
    replicate_once(db18, tmp_path)
    db18.execute("INSERT INTO t VALUES (1, 2, 3)", "UPDATE t SET a = 4")
    replicate_once(db18, tmp_path)
    assert find_differences(db18.dsn, str(tmp_path), ["public.t", "public.z"]) == {}
    assert len(State.read(Storage(str(tmp_path))).tables) == len("tuvwxyz")


def test_the_script_takes_the_index_of_each_partition(
    db18: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """PostgreSQL uses each partition's own replica identity, and a new partition has none."""
    db18.execute(
        "CREATE TABLE sales (at int NOT NULL, id int NOT NULL, v text) PARTITION BY RANGE (at)",
        "CREATE UNIQUE INDEX sales_key ON sales (id, at)",
        "CREATE TABLE sales_1 PARTITION OF sales FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE sales_2 PARTITION OF sales FOR VALUES FROM (10) TO (20) PARTITION BY RANGE (id)",
        'CREATE TABLE "Sales 2 1" PARTITION OF sales_2 FOR VALUES FROM (0) TO (100)',
        "INSERT INTO sales VALUES (1, 1, 'one'), (11, 2, 'two'), (12, 3, 'three')",
        # Its index is not valid as long as a partition lacks it.
        "CREATE TABLE part (at int NOT NULL) PARTITION BY RANGE (at)",
        "CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (10)",
        "CREATE UNIQUE INDEX ON ONLY part (at)",
    )

    def checked() -> list[str]:
        assert main(["check", "--print-sql", "--dsn", db18.dsn, "--to", str(tmp_path)]) == 0
        script = capsys.readouterr().out
        run_script(db18, script)
        replicate_once(db18, tmp_path)
        return [line for line in script.splitlines() if line.startswith("ALTER TABLE")]

    assert checked() == [
        "ALTER TABLE public.part REPLICA IDENTITY FULL;",
        "ALTER TABLE public.part_1 REPLICA IDENTITY FULL;",
        'ALTER TABLE public.sales REPLICA IDENTITY USING INDEX "sales_key";',
        'ALTER TABLE public.sales_1 REPLICA IDENTITY USING INDEX "sales_1_id_at_idx";',
        'ALTER TABLE public.sales_2 REPLICA IDENTITY USING INDEX "sales_2_id_at_idx";',
        'ALTER TABLE public."Sales 2 1" REPLICA IDENTITY USING INDEX "Sales 2 1_id_at_idx";',
    ]
    db18.execute("UPDATE sales SET v = 'changed' WHERE id > 1", "DELETE FROM sales WHERE id = 1")
    replicate_once(db18, tmp_path)
    assert find_differences(db18.dsn, str(tmp_path), ["public.sales"]) == {}
    db18.execute("CREATE TABLE sales_3 PARTITION OF sales FOR VALUES FROM (20) TO (30)")
    assert checked() == ['ALTER TABLE public.sales_3 REPLICA IDENTITY USING INDEX "sales_3_id_at_idx";']
    db18.execute("INSERT INTO sales VALUES (21, 4, 'four')", "UPDATE sales SET v = 'other' WHERE id = 4")
    replicate_once(db18, tmp_path)
    assert find_differences(db18.dsn, str(tmp_path), ["public.sales"]) == {}


def test_a_check_of_an_address_without_a_server_gives_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    arguments = ["--dsn", f"host=127.0.0.1 port={port} dbname=shop user=shop", "--to", str(tmp_path)]
    assert main(["check", *arguments]) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: [SERVER_AWAY]")
    assert f"port {port}" in error
    assert main(["check", *arguments, "--retry-timeout", "0"]) == 1
    assert "[SERVER_AWAY]" in capsys.readouterr().err
