"""`replicate` with Delta tables that are registered in Unity Catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars
import pytest

from logicalrep.options.kinds import OptionError
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.operate.dropping import drop
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.tables.registrations import NotRegisteredError
from logicalrep.pipeline.verify.verifying import verify
from logicalrep.postgres.connection import ConnectionSettings
from tests.pipeline.formats.delta.unity_server import REAL, Unity, UnityServer, start_unity
from tests.pipeline.replicating import Warnings, replicate_meanwhile, replicate_once, settings
from tests.postgres.servers import Database
from tests.waiting import eventually

DELTA: dict[str, Any] = {"format": "delta", "format_version": 2}


def uri_of(server: UnityServer) -> str:
    return f"unity+{server.url}/lake"


def columns(unity: Unity, table: str) -> list[str]:
    return [column["name"] for column in unity.tables()[table]["columns"]]


def is_equal(db: Database, to: Path) -> bool:
    results = {verdict.result for verdict in verify(ConnectionSettings(db.dsn), Storage(str(to)))}
    return results == {"equal"}


def test_entries_follow_tables_through_runs_and_commands(db18: Database, unity: Unity, tmp_path: Path) -> None:
    db18.execute('CREATE TABLE "Order lines" (id int PRIMARY KEY, a text)')
    db18.execute('INSERT INTO "Order lines" VALUES (1, $$one$$)')
    to = tmp_path / "lake"
    # The destination exists before it gets a catalog.
    replicate_once(db18, to, **DELTA)
    replicate_once(db18, to, **DELTA, catalog=unity.uri, history=True)
    tables = unity.tables()
    assert {name: table["storage_location"] for name, table in tables.items()} == {
        "public.order_lines": f"file://{to}/public/Order%20lines",
        "public.order_lines_history": f"file://{to}/public/Order%20lines~history",
    }
    db18.execute('ALTER TABLE "Order lines" ADD COLUMN b numeric(5, 2) DEFAULT 1.5')
    db18.execute('INSERT INTO "Order lines" VALUES (2, $$two$$)')
    replicate_once(db18, to, **DELTA, catalog=unity.uri, history=True)
    assert columns(unity, "public.order_lines") == ["id", "a", "b"]
    assert unity.tables()["public.order_lines"]["table_id"] == tables["public.order_lines"]["table_id"]
    # Another program loses the entry, and the table is renamed: the old folder stays, and so does its entry.
    unity.remove("public.order_lines_history")
    db18.execute('ALTER TABLE "Order lines" RENAME TO lines')
    replicate_once(db18, to, **DELTA, catalog=unity.uri, history=True)
    assert unity.tables().keys() == {"public.order_lines", "public.lines", "public.lines_history"}
    assert is_equal(db18, to)
    connection, storage = ConnectionSettings(db18.dsn), Storage(str(to))
    drop(connection, storage, deletes_tables=True, catalog=unity.settings())
    assert unity.tables() == {}


def test_a_name_of_another_table_concerns_this_table_alone(db18: Database, unity: Unity, tmp_path: Path) -> None:
    db18.execute("CREATE TABLE a (id int PRIMARY KEY)")
    db18.execute("CREATE TABLE b (id int PRIMARY KEY)")
    unity.create("a", storage_location="s3://lake/elsewhere")
    with pytest.raises(NotRegisteredError, match=r"\[DESTINATION_DIFFERS\] .* has another table public\.a") as refused:
        replicate_once(db18, tmp_path, **DELTA, catalog=unity.uri)
    assert refused.value.code == "TABLES_NOT_REGISTERED"
    assert unity.tables()["public.a"]["storage_location"] == "s3://lake/elsewhere"
    assert unity.tables()["public.b"]["storage_location"] == f"file://{tmp_path}/public/b"
    db18.execute("INSERT INTO a VALUES (1)")
    unity.remove("public.a")
    replicate_once(db18, tmp_path, **DELTA, catalog=unity.uri)
    assert unity.tables()["public.a"]["storage_location"] == f"file://{tmp_path}/public/a"
    assert is_equal(db18, tmp_path)


def test_rows_do_not_wait_for_a_server_that_is_away(db18: Database, server: UnityServer, tmp_path: Path) -> None:
    db18.execute("CREATE TABLE a (id int PRIMARY KEY)")
    server.fault, watched = "503", Warnings()
    limits = Limits(registration_seconds=0.1)
    with replicate_meanwhile(db18, tmp_path, watched, limits=limits, **DELTA, catalog=uri_of(server)) as caught_up:
        for number in range(3):
            db18.execute(f"INSERT INTO a VALUES ({number})")
            caught_up()
        # Once more than the warning, which is issued for the first failure alone.
        eventually(lambda: len(server.requests) > 2 and bool(watched.texts))
        assert is_equal(db18, tmp_path)
        server.fault = None
        eventually(lambda: bool(watched.solved))
        db18.execute("ALTER TABLE a ADD COLUMN b int")
        db18.execute("INSERT INTO a VALUES (4, 4)")
        unity = Unity(server.url, "lake")
        eventually(lambda: columns(unity, "public.a") == ["id", "b"])
    (warning,) = watched.texts
    assert warning.startswith(f"[CATALOG_NOT_REACHED] the catalog {uri_of(server)}: Service Unavailable (HTTP 503); ")
    assert watched.solved == [warning]


def test_a_run_with_once_says_that_a_table_is_not_registered(
    db18: Database, server: UnityServer, tmp_path: Path
) -> None:
    db18.execute("CREATE TABLE a (id int PRIMARY KEY)")
    server.fault = "503"
    with pytest.raises(NotRegisteredError, match="CATALOG_NOT_REACHED"):
        replicate_once(db18, tmp_path, **DELTA, catalog=uri_of(server), retry_timeout=0)
    assert is_equal(db18, tmp_path)
    server.fault = None
    replicate_once(db18, tmp_path, **DELTA, catalog=uri_of(server), retry_timeout=0)
    assert [*server.catalogs["lake"]["public"]] == ["a"]


def test_drop_deletes_no_file_while_the_server_is_away(db18: Database, server: UnityServer, tmp_path: Path) -> None:
    db18.execute("CREATE TABLE a (id int PRIMARY KEY)")
    replicate_once(db18, tmp_path, **DELTA, catalog=uri_of(server))
    connection, storage = ConnectionSettings(db18.dsn), Storage(str(tmp_path))
    catalog = settings(db18, tmp_path, **DELTA, catalog=uri_of(server)).table_catalog
    server.fault, files = "503", storage.list("")
    with pytest.raises(Exception, match="CATALOG_NOT_REACHED"):
        drop(connection, storage, deletes_tables=True, catalog=catalog)
    assert storage.list("") == files
    server.fault = None
    drop(connection, storage, deletes_tables=True, catalog=catalog)
    assert (storage.list(""), server.catalogs["lake"]["public"]) == ([], {})


@pytest.mark.skipif(not REAL, reason="UNITY_SERVER names no server")
@pytest.mark.parametrize("write_mode", ["copy-on-write", "merge-on-read"])
def test_polars_reads_a_table_by_its_name(db18: Database, tmp_path: Path, write_mode: str) -> None:
    db18.execute("CREATE TABLE a (id int PRIMARY KEY, b text)")
    db18.execute("INSERT INTO a SELECT i, 'text ' || i FROM generate_series(1, 100) AS i")
    with start_unity("real") as unity:
        for statement in ("DELETE FROM a WHERE id > 2", "ALTER TABLE a ADD COLUMN c int DEFAULT 7", "SELECT"):
            replicate_once(db18, tmp_path, **DELTA, catalog=unity.uri, write_mode=write_mode)
            db18.execute(statement)
        rows = polars.Catalog(unity.url, require_https=False).scan_table(unity.name, "public", "a").collect()
    assert sorted(rows.rows()) == [(1, "text 1", 7), (2, "text 2", 7)]


def test_upkeep_of_a_service_is_refused(db18: Database, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"'upkeep' is none, but the catalog .* does no upkeep"):
        settings(db18, tmp_path, **DELTA, catalog="unity+https://unity.example.org/lake", upkeep="none")
