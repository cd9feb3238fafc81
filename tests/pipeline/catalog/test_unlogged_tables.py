"""Tables that are unlogged for a while between two refreshes: the server sends none of the changes meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from logicalrep.pipeline.schema.table_settings import TableSettings
from tests.pipeline.companions import companion_differences
from tests.pipeline.comparison import find_differences
from tests.pipeline.observed_loads import run_once, split_statements
from tests.pipeline.replicating import Warnings, replicate_meanwhile, replicate_once
from tests.postgres.servers import Database
from tests.waiting import eventually

_WIDE = (
    "CREATE TABLE {t} (id int PRIMARY KEY, v text); INSERT INTO {t} SELECT i, 'v' || i FROM generate_series(1, 9) AS i"
)
_NARROW = "CREATE TABLE {t} (id int PRIMARY KEY, v int); INSERT INTO {t} SELECT i, i FROM generate_series(1, 9) AS i"
_ROOT = (
    "CREATE TABLE {t} (id int, day int, PRIMARY KEY (id, day)) PARTITION BY RANGE (day); "
    "CREATE TABLE {t}_1 PARTITION OF {t} FOR VALUES FROM (1) TO (2); INSERT INTO {t} SELECT i, 1 FROM generate_series(1, 9) AS i"
)
_WRITTEN = "UPDATE {t} SET id = id + 100 WHERE id < 5; DELETE FROM {t} WHERE id = 9"
_UNLOGGED = f"ALTER TABLE {{t}} SET UNLOGGED; {_WRITTEN}; ALTER TABLE {{t}} SET LOGGED"


@dataclass(frozen=True)
class Case:
    """A table, what happens to it between two refreshes, and whether it is loaded again."""

    setup: str
    changed: str
    is_loaded: bool


CASES = {
    "a table with a TOAST table": Case(_WIDE, _UNLOGGED, True),
    "a table without one": Case(_NARROW, _UNLOGGED, True),
    "in one transaction": Case(_WIDE, f"BEGIN; {_UNLOGGED}; COMMIT", True),
    "in one transaction, without a TOAST table": Case(_NARROW, f"BEGIN; {_UNLOGGED}; COMMIT", True),
    "with changes before and after": Case(_WIDE, f"{_WRITTEN}; {_UNLOGGED}; UPDATE {{t}} SET id = id + 1000", True),
    "truncated first": Case(
        _WIDE,
        "BEGIN; TRUNCATE {t}; ALTER TABLE {t} SET UNLOGGED; INSERT INTO {t} VALUES (50, 1); ALTER TABLE {t} SET LOGGED; COMMIT",
        True,
    ),
    "vacuumed afterwards": Case(_WIDE, f"{_UNLOGGED}; VACUUM FULL {{t}}", True),
    "truncated and vacuumed afterwards": Case(
        _NARROW, f"{_UNLOGGED}; TRUNCATE {{t}}; INSERT INTO {{t}} VALUES (50, 1); VACUUM FULL {{t}}", True
    ),
    "emptied, as by a crash": Case(_WIDE, "ALTER TABLE {t} SET UNLOGGED; TRUNCATE {t}; ALTER TABLE {t} SET LOGGED", True),
    "a partition": Case(_ROOT, _UNLOGGED.replace("TABLE {t}", "TABLE {t}_1"), True),
    "a partition made unlogged": Case(
        _ROOT,
        "CREATE UNLOGGED TABLE {t}_2 PARTITION OF {t} FOR VALUES FROM (2) TO (3); INSERT INTO {t} VALUES (1, 2); "
        "ALTER TABLE {t}_2 SET LOGGED",
        True,
    ),
    "a partition attached unlogged": Case(
        _ROOT,
        "CREATE UNLOGGED TABLE {t}_2 (LIKE {t} INCLUDING ALL); "
        "ALTER TABLE {t} ATTACH PARTITION {t}_2 FOR VALUES FROM (2) TO (3); INSERT INTO {t} VALUES (1, 2); "
        "ALTER TABLE {t}_2 SET LOGGED",
        True,
    ),
    "VACUUM FULL": Case(_WIDE, f"{_WRITTEN}; VACUUM FULL {{t}}; UPDATE {{t}} SET id = id + 1000", False),
    "CLUSTER": Case(_WIDE, "CLUSTER {t} USING {t}_pkey", False),
    "TRUNCATE": Case(_WIDE, "TRUNCATE {t}; INSERT INTO {t} VALUES (50, 1)", False),
    "indexes and statistics": Case(_NARROW, "REINDEX TABLE {t}; CREATE INDEX ON {t} (v); ANALYZE {t}; VACUUM {t}", False),
    "VACUUM FULL without a TOAST table": Case(_NARROW, "VACUUM FULL {t}", True),
    "TRUNCATE without a TOAST table": Case(_NARROW, "TRUNCATE {t}; INSERT INTO {t} VALUES (50, 1)", True),
    "TRUNCATE and VACUUM FULL of a table that a publication names": Case(
        f"{_NARROW}; CREATE PUBLICATION named_{{t}} FOR TABLE {{t}}",
        "TRUNCATE {t}; INSERT INTO {t} VALUES (50, 1); VACUUM FULL {t}",
        False,
    ),
    "a table that a publication names for a while": Case(
        f"{_NARROW}; CREATE PUBLICATION named_{{t}} FOR TABLE {{t}}",
        f"DROP PUBLICATION named_{{t}}; {_UNLOGGED}; CREATE PUBLICATION named_{{t}} FOR TABLE {{t}}",
        True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("is_running", [False, pytest.param(True, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(
    "published", ["ALL TABLES", pytest.param("TABLES IN SCHEMA public", marks=pytest.mark.thorough)]
)
def test_tables_that_were_unlogged_for_a_while_end_with_equal_rows(
    db16_and_18: Database, tmp_path: Path, published: str, is_running: bool
) -> None:
    db = db16_and_18
    cases = {f"t{number}": case for number, case in enumerate(CASES.items())}
    for table, (_, case) in cases.items():
        db.execute(*split_statements(case.setup, table))
    db.execute(f"CREATE PUBLICATION p FOR {published} WITH (publish_via_partition_root = true)")
    replicate_once(db, tmp_path, publication="p")

    def change() -> None:
        for table, (_, case) in cases.items():
            db.execute(*split_statements(case.changed, table))

    if is_running:
        with replicate_meanwhile(db, tmp_path, publication="p", look_again=0.3) as caught_up:
            caught_up()
            change()
            caught_up()
    else:
        change()
    loaded = run_once(db, tmp_path, publication="p").names
    differences = companion_differences(db, tmp_path, [f"public.{table}" for table in cases], TableSettings())
    assert {cases[copy.partition(".")[2]][0]: why for copy, why in differences.items()} == {}
    if not is_running:
        names = {name for table, (name, _) in cases.items() if table in loaded}
        assert names == {name for name, case in CASES.items() if case.is_loaded}


@pytest.mark.parametrize("published", [None, "p"])
def test_a_table_is_not_replicated_while_a_partition_is_unlogged(
    db18: Database, tmp_path: Path, published: str | None
) -> None:
    db18.execute(*split_statements(_ROOT, "t"), "CREATE TABLE other (id int PRIMARY KEY)")
    if published is not None:
        db18.execute("CREATE PUBLICATION p FOR ALL TABLES WITH (publish_via_partition_root = true)")
    replicate_once(db18, tmp_path, publication=published)
    warned = Warnings()
    with replicate_meanwhile(db18, tmp_path, warned, publication=published, look_again=0.3) as caught_up:
        caught_up()
        db18.execute("ALTER TABLE t_1 SET UNLOGGED", *split_statements(_WRITTEN, "t"))
        eventually(lambda: any("public.t is not replicated, as its partition" in text for text in warned.texts))
        caught_up()
        db18.execute("ALTER TABLE t_1 SET LOGGED")
        eventually(lambda: find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {})
    # A name at the destination tells nothing of the rows that were not sent.
    db18.execute("ALTER TABLE t_1 SET UNLOGGED", "INSERT INTO t VALUES (77, 1)")
    replicate_once(db18, tmp_path, publication=published)
    db18.execute("ALTER TABLE t_1 SET LOGGED")
    replicate_once(db18, tmp_path, publication=published)
    assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}
