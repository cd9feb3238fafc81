"""A published partition whose table is published too for a while: its changes are then sent as the table's."""

from __future__ import annotations

from pathlib import Path

import pytest

from logicalrep.pipeline.schema.table_settings import TableSettings
from tests.pipeline.companions import companion_differences
from tests.pipeline.observed_loads import run_once
from tests.pipeline.replicating import replicate_once
from tests.postgres.servers import Database


@pytest.mark.parametrize(
    ("published", "added"),
    [
        ("TABLE m", "TABLE s.r"),
        pytest.param("TABLES IN SCHEMA public", "TABLES IN SCHEMA s", marks=pytest.mark.thorough),
    ],
)
@pytest.mark.parametrize("is_deep", [pytest.param(False, marks=pytest.mark.thorough), True])
def test_a_partition_is_reloaded_after_its_table_was_published(
    db18: Database, tmp_path: Path, published: str, added: str, is_deep: bool
) -> None:
    parts = ["CREATE TABLE m PARTITION OF s.r FOR VALUES FROM (1) TO (5)"]
    if is_deep:
        parts = [f"{parts[0]} PARTITION BY RANGE (day)", "CREATE TABLE leaf PARTITION OF m FOR VALUES FROM (1) TO (5)"]
    db18.execute(
        "CREATE SCHEMA s",
        "CREATE TABLE s.r (id int, day int, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)",
        *parts,
        "INSERT INTO s.r SELECT i, 1 FROM generate_series(1, 9) AS i",
        f"CREATE PUBLICATION p FOR {published} WITH (publish_via_partition_root = true)",
    )
    replicate_once(db18, tmp_path, publication="p")
    db18.execute(
        f"ALTER PUBLICATION p ADD {added}",
        "UPDATE s.r SET id = id + 100 WHERE id < 5",
        f"ALTER PUBLICATION p DROP {added}",
    )
    assert run_once(db18, tmp_path, publication="p").names == ["m"]
    assert companion_differences(db18, tmp_path, ["public.m"], TableSettings()) == {}
