"""The examples of the pages about tables, run one after another as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from logicalrep.pipeline.config.reading import read_config
from logicalrep.pipeline.schema.table_settings import TableSettings
from tests.documents import examples
from tests.pipeline.replicating import SHOP, replicate_once
from tests.postgres.servers import Database

pytestmark = pytest.mark.spark


def test_the_tables_are_read_as_the_page_says(db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGICALREP_MASK_KEY", "a key for tests, and for them alone")
    for statement in SHOP.strip().split(";\n"):
        db18.execute(statement.rstrip(";\n"))
    db18.execute("ALTER TABLE customer ADD balance numeric")
    (config,) = examples("docs/how-to/table-settings.md", "yaml")
    (tmp_path / "shop.yaml").write_text(config)
    replicate_once(db18, tmp_path / "lake", config=read_config(tmp_path / "shop.yaml", TableSettings()))
    program = "\n".join(
        text for page in ("reading", "history") for text in examples(f"docs/how-to/{page}.md", "python")
    )
    # Python may abort as it ends, where delta-rs gave files to pyarrow: https://github.com/apache/arrow/issues/34314
    program += "\nimport os, sys\nsys.stdout.flush()\nos._exit(0)\n"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "public.orders had 5000 rows at 20" in done.stdout
    assert done.stdout.count("customer_id") == 7
    assert "5000 of 5000 orders; 5000 versions; 0 changes" in done.stdout
