"""Servers of old minor versions, whose walsenders send wrong rows: a table that they would make wrong is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from logicalrep.pipeline.catalog.definitions import CatalogTable
from logicalrep.pipeline.errors import MissingRows
from logicalrep.pipeline.operate.resync import resync
from logicalrep.pipeline.run.loop import TablesStoppedError
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.tables.failures import TableFailures
from logicalrep.postgres.preflight.checks import check
from logicalrep.postgres.preflight.findings import Needs, PreflightError
from logicalrep.postgres.server_faults import sends_defaults_as_null, sends_unlisted_columns
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.transactions.table_names import TableName
from tests.pipeline.comparison import find_differences
from tests.pipeline.replicating import replicate_meanwhile, replicate_once
from tests.postgres.servers import Database, create_database

pytestmark = pytest.mark.postgres

# A row from before the column has its default in no file, and another row has the NULL that the server sends for it.
ADDED = (
    "INSERT INTO t VALUES (1, 'x')",
    "ALTER TABLE t ADD w int DEFAULT 7",
    "INSERT INTO t VALUES (1, 'x', NULL)",
)
DELETED = "DELETE FROM t WHERE w = 7"


@pytest.fixture(params=["15.0", pytest.param("16.1", marks=pytest.mark.thorough)])
def old(request: pytest.FixtureRequest) -> Iterator[Database]:
    with create_database(request.param) as database:
        yield database


def replicate(db: Database, folder: Path) -> dict[str, str]:
    replicate_once(db, folder, publication="p")
    return find_differences(db.dsn, str(folder), ["public.t"])


def create_table(db: Database, columns: str, published: str = "") -> None:
    db.execute(f"CREATE TABLE t ({columns})", "ALTER TABLE t REPLICA IDENTITY FULL")
    db.execute(f"CREATE PUBLICATION p FOR TABLE t {published} WITH (publish_via_partition_root = true)")


def test_a_table_without_a_key_is_refused_at_its_load_until_its_file_has_the_default(
    old: Database, tmp_path: Path
) -> None:
    create_table(old, "id int, v text")
    old.execute(*ADDED)
    with pytest.raises(TablesStoppedError, match=r"OLD_ROWS_INCOMPLETE.*gave w, .*15\.6, 16\.2.*VACUUM FULL"):
        replicate(old, tmp_path)
    old.execute("VACUUM FULL t")
    resync(old.settings, Storage(str(tmp_path)), [TableName("public", "t")])
    assert replicate(old, tmp_path) == {}
    old.execute(DELETED)
    assert replicate(old, tmp_path) == {}


def test_a_table_without_a_key_is_stopped_before_a_wrong_row_is_deleted(old: Database, tmp_path: Path) -> None:
    create_table(old, "id int, v text")
    assert replicate(old, tmp_path) == {}
    old.execute(*ADDED, DELETED)
    with pytest.raises(TablesStoppedError, match="OLD_ROWS_INCOMPLETE"):
        replicate(old, tmp_path)


def test_a_stream_warns_of_old_rows_without_defaults(old: Database) -> None:
    create_table(old, "id int PRIMARY KEY, v text")
    slot = f"stream_{old.name}"
    create_slot(old.connection, slot)
    assert not any("NULL in old rows" in text for text in check(old.connection, Needs(slot=slot, publications=("p",))))
    old.execute("INSERT INTO t VALUES (1, 'x')", "ALTER TABLE t ADD w int DEFAULT 7")
    warnings = check(old.connection, Needs(slot=slot, publications=("p",)))
    assert any("NULL in old rows instead of the default that ADD COLUMN gave public.t.w" in text for text in warnings)


def test_partitions_are_refused_by_their_own_replica_identity(old: Database, tmp_path: Path) -> None:
    old.execute(
        "CREATE TABLE t (id int, v text) PARTITION BY LIST (id)", "CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1)"
    )
    old.execute("ALTER TABLE t1 REPLICA IDENTITY FULL", "ALTER TABLE t REPLICA IDENTITY FULL")
    old.execute("CREATE PUBLICATION p FOR TABLE t WITH (publish_via_partition_root = true)")
    assert replicate(old, tmp_path) == {}
    old.execute(*ADDED, DELETED)
    with pytest.raises(TablesStoppedError, match="OLD_ROWS_INCOMPLETE"):
        replicate(old, tmp_path)


def test_rows_that_a_filter_hides_are_refused(old: Database, tmp_path: Path) -> None:
    """The server compares the filter with the NULL, and does not send that the row is gone."""
    create_table(old, "id int PRIMARY KEY, v text")
    old.execute("INSERT INTO t VALUES (1, 'x')", "ALTER TABLE t ADD w int DEFAULT 7")
    old.execute("ALTER PUBLICATION p SET TABLE t WHERE (w = 7)")
    with pytest.raises(TablesStoppedError, match="OLD_ROWS_INCOMPLETE"):
        replicate(old, tmp_path)


def test_a_column_of_the_key_is_refused_and_others_are_followed(old: Database, tmp_path: Path) -> None:
    create_table(old, "id int PRIMARY KEY, v text")
    old.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z')")
    assert replicate(old, tmp_path) == {}
    for number in range(4):
        old.execute(
            f"ALTER TABLE t ADD c{number} int DEFAULT {number}", "UPDATE t SET id = id + 10, v = 'z' WHERE id % 2 = 1"
        )
    old.execute("DELETE FROM t WHERE id = 2")
    with replicate_meanwhile(old, tmp_path, publication="p") as caught_up:
        caught_up()
        assert find_differences(old.dsn, str(tmp_path), ["public.t"]) == {}
    old.execute("ALTER TABLE t ALTER c1 SET NOT NULL, DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id, c1)")
    with pytest.raises(TablesStoppedError, match=r"OLD_ROWS_INCOMPLETE.*gave c1"):
        replicate(old, tmp_path)


def test_a_key_that_is_sent_alone_has_the_default(old: Database, tmp_path: Path) -> None:
    old.execute("CREATE TABLE t (id int, v text)", "INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z')")
    old.execute("ALTER TABLE t ADD w int NOT NULL DEFAULT 7", "ALTER TABLE t ADD PRIMARY KEY (id, w)")
    old.execute("CREATE PUBLICATION p FOR TABLE t")
    assert replicate(old, tmp_path) == {}
    old.execute("UPDATE t SET id = 10 WHERE id = 1", "DELETE FROM t WHERE id = 2", "UPDATE t SET v = 'w' WHERE id = 3")
    assert replicate(old, tmp_path) == {}
    # No load made it right.
    assert not (tmp_path / "_logicalrep" / "reloads" / "public" / "t.json").exists()


def test_a_column_that_was_added_and_dropped_leaves_equal_rows(old: Database, tmp_path: Path) -> None:
    create_table(old, "id int, v text")
    old.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    assert replicate(old, tmp_path) == {}
    old.execute(*ADDED, "INSERT INTO t VALUES (2, 'y', NULL)", DELETED, "ALTER TABLE t DROP w")
    assert replicate(old, tmp_path) == {}
    old.execute(*ADDED, DELETED, "VACUUM FULL t")
    assert replicate(old, tmp_path) == {}


def test_column_lists_are_refused_where_old_rows_have_all_columns(tmp_path: Path) -> None:
    with create_database("15.0") as db:
        create_table(db, "other int, v text, id int PRIMARY KEY", "(id, v)")
        with pytest.raises(
            PreflightError, match=r"PostgreSQL 15\.0 sends old rows with columns .* of public\.t: upgrade to 15\.2"
        ):
            replicate(db, tmp_path)


VERSIONS = {
    "14.23": (False, False), "15.0": (True, True), "15.1": (True, True), "15.2": (True, False), "15.5": (True, False),
    "15.6": (False, False), "16.0": (True, False), "16.1": (True, False), "16.2": (False, False), "17.0": (False, False),
}  # fmt: skip


@pytest.mark.parametrize(("version", "expected"), VERSIONS.items())
def test_which_servers_send_wrong_old_rows(version: str, expected: tuple[bool, bool]) -> None:
    major, minor = map(int, version.split("."))
    connection: Any = SimpleNamespace(info=SimpleNamespace(server_version=major * 10000 + minor))
    assert (sends_defaults_as_null(connection), sends_unlisted_columns(connection)) == expected


@pytest.mark.parametrize(
    ("version", "text"), [(160001, ": PostgreSQL 16.1 may have sent old rows with NULL"), (160002, "")]
)
def test_missing_rows_are_explained_by_the_minor_version(version: int, text: str) -> None:
    connection: Any = SimpleNamespace(info=SimpleNamespace(server_version=version))
    table: Any = SimpleNamespace(
        copy=SimpleNamespace(stored=SimpleNamespace(table=SimpleNamespace(has_whole_old=True))), oid=1
    )
    catalog: Any = SimpleNamespace(
        run=lambda query: query(connection), refresh=lambda oids: SimpleNamespace(tables=dict[int, CatalogTable]())
    )
    reasons: list[str] = []
    loads: Any = SimpleNamespace(load=lambda table, reason, partitions: reasons.append(reason))
    unused: Any = None

    def refuse() -> None:
        raise MissingRows("1 of 1 updated or deleted rows are missing")

    TableFailures(unused, loads, unused, catalog).run(table, refuse)
    assert len(reasons) == 1
    assert reasons[0].startswith(f"1 of 1 updated or deleted rows are missing{text}")
