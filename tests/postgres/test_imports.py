"""What may import what: PySpark is for `spark` and `tables` alone."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "pipeline" / "logicalrep_pipeline"


def imports(path: Path) -> set[str]:
    """The modules that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found.add(node.module)
    return found


def test_only_spark_and_tables_import_pyspark() -> None:
    others = [path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] not in ("spark", "tables")]
    assert len(others) > 20
    for path in others:
        used = imports(path)
        assert not any(name.split(".")[0] == "pyspark" for name in used), path
        if path.name != "cli.py":
            assert not any(name.startswith("logicalrep_pipeline.spark") for name in used), path
