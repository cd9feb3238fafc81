"""Random schema changes between random changes of rows, while `replicate` follows, and ends and starts again."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.table_settings import TableSettings
from tests.pipeline.catalog.random_application import SETUP, TABLES, Application
from tests.pipeline.companions import ALL_COMPANIONS, companion_differences
from tests.pipeline.replicating import replicate_meanwhile, replicate_once
from tests.postgres.servers import Database


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(2, 8))])
def test_random_schema_changes_end_with_equal_tables(db18: Database, tmp_path: Path, seed: int) -> None:
    for statement in SETUP.strip().split(";\n"):
        db18.execute(statement)
    db18.execute("CREATE PUBLICATION p FOR TABLE t, u, parts WITH (publish_via_partition_root = true)")
    copies, kept = [f"public.{table}" for table in TABLES], ALL_COMPANIONS if seed % 2 == 0 else TableSettings()
    limits = Limits(loads_at_once=1_000_000)
    options: dict[str, Any] = {"publication": "p", "table_settings": kept, "limits": limits}
    with closing(db18.writer()) as connection:
        connection.autocommit = True
        application = Application(connection, seed)
        for _ in range(3):
            with replicate_meanwhile(db18, tmp_path, **options) as caught_up:
                for _ in range(60):
                    application.act()
                caught_up()
            for _ in range(30):
                application.act()
            replicate_once(db18, tmp_path, **options)
            assert companion_differences(db18, tmp_path, copies, kept, counts_versions=False) == {}
