"""`--origin none`: what a server has replayed from another one is left out of what it is followed for."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.postgres.publications import query_foreign_rows, query_listed_tables
from logicalrep.postgres.slots.errors import SlotError
from tests.pipeline.comparison import find_differences
from tests.pipeline.reading import read_table
from tests.pipeline.replicating import replicate_once
from tests.postgres.servers import Database

NONE = TableSettings(origin="none")


def ids(storage: Path) -> list[int]:
    return sorted(read_table(str(storage / "public/t"))["id"].to_pylist())


def test_changes_of_other_origins_are_left_out_and_loads_copy_all(db16_and_18: Database, tmp_path: Path) -> None:
    db = db16_and_18
    if db.major < 16:
        with pytest.raises(SlotError, match=r"The option origin needs PostgreSQL 16, this is 15"):
            replicate_once(db, tmp_path, table_settings=NONE)
        return
    origin = f"other_{db.name}"
    db.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", f"SELECT pg_replication_origin_create('{origin}')")
    try:
        with closing(db.writer()) as replaying:
            replaying.execute(f"SELECT pg_replication_origin_session_setup('{origin}')".encode())
            replaying.execute("INSERT INTO t VALUES (1, 'from the other')")
            db.execute("INSERT INTO t VALUES (2, 'local')")
            replicate_once(db, tmp_path, table_settings=NONE)
            assert ids(tmp_path) == [1, 2]
            replaying.execute("INSERT INTO t VALUES (3, 'from the other'), (4, 'from the other')")
            db.execute("INSERT INTO t VALUES (5, 'local')", "UPDATE t SET v = 'local' WHERE id = 1")
            replicate_once(db, tmp_path, table_settings=NONE)
            assert ids(tmp_path) == [1, 2, 5]
            # The row to change is missing.
            db.execute("UPDATE t SET v = 'local' WHERE id = 3")
            replicate_once(db, tmp_path, table_settings=NONE)
            assert find_differences(db.dsn, str(tmp_path), ["public.t"]) == {}
            replaying.execute("INSERT INTO t VALUES (6, 'from the other')")
            replicate_once(db, tmp_path, table_settings=NONE)
            assert ids(tmp_path) == [1, 2, 3, 4, 5]
            replicate_once(db, tmp_path)
            assert find_differences(db.dsn, str(tmp_path), ["public.t"]) == {}
            replaying.execute("SELECT pg_replication_origin_session_reset()")
    finally:
        db.execute(f"SELECT pg_replication_origin_drop('{origin}')")


def test_tables_with_rows_of_another_server_are_named(db18: Database) -> None:
    db18.execute(
        "CREATE TABLE root (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE leaf PARTITION OF root FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE t (id int PRIMARY KEY)",
        "CREATE TABLE own (id int PRIMARY KEY)",
        "CREATE PUBLICATION p FOR TABLE root, t, own WITH (publish_via_partition_root = true)",
    )
    assert query_foreign_rows(db18.connection, query_listed_tables(db18.connection, ("p",))) is None
    # A subscription would need another server, and its tables are these rows of the catalog.
    db18.execute(
        "SET allow_system_table_mods = on",
        "INSERT INTO pg_subscription_rel SELECT 1, oid, 'r', NULL FROM pg_class WHERE relname IN ('leaf', 't')",
    )
    warning = query_foreign_rows(db18.connection, query_listed_tables(db18.connection, ("p",)))
    assert warning is not None
    assert warning.startswith("this server subscribes to public.root, public.t at another server")
