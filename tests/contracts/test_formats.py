"""The format of tables is behind one seam: `StoredTable`, whose words are no format's."""

from __future__ import annotations

import re

from logicalrep.pipeline.schema.table_formats import FORMATS
from tests.conftest import ROOT

SOURCES = ROOT / "src" / "logicalrep"
OPENING = "pipeline/formats/opening.py"
"""The module that knows which format a destination's tables have."""
EXEMPT = {"error_codes/replicate.py", "pipeline/schema/names.py"}
"""The texts of errors, and the names that a table's folder cannot have."""


def _modules_with(pattern: str) -> set[str]:
    paths = (path for path in SOURCES.rglob("*.py") if re.search(pattern, path.read_text("utf-8")))
    return {path.relative_to(SOURCES).as_posix() for path in paths}


def test_only_one_module_outside_of_deltas_names_its_log() -> None:
    modules = _modules_with(r"delta_log|DeltaLog|formats\.delta")
    assert {name for name in modules if not name.startswith("pipeline/formats/delta/")} - EXEMPT == {OPENING}


def test_only_the_format_needs_delta_rs() -> None:
    modules = _modules_with(r"(?m)^ *(from|import) deltalake")
    # The reading of tables for Spark is for people, and of no part of replicate.
    assert {name for name in modules if not name.startswith("pipeline/formats/delta/")} == {
        "spark/frames/delta_tables.py"
    }


def test_only_one_module_outside_of_icebergs_names_it() -> None:
    modules = _modules_with(r"(?m)^ *(from|import) pyiceberg|formats\.iceberg|IcebergTable")
    assert {name for name in modules if not name.startswith("pipeline/formats/iceberg/")} == {OPENING}


def test_storage_knows_no_format() -> None:
    modules = _modules_with(r"pipeline\.formats|deltalake|delta-rs")
    assert {name for name in modules if name.startswith("pipeline/storage/")} == set()


def test_what_formats_share_knows_none_of_them() -> None:
    assert "pipeline/formats/stored_table.py" not in _modules_with("Delta|Iceberg")
    assert "pipeline/formats/removed_files.py" not in _modules_with("Delta|Iceberg")


def test_rooms_beside_formats_ask_for_an_ability_and_never_for_a_formats_name() -> None:
    names = "|".join(FORMATS)
    modules = _modules_with(rf"""["']({names})["']""")
    declared = {"pipeline/schema/table_formats.py"}
    assert {name for name in modules if not name.startswith("pipeline/formats/")} == declared
