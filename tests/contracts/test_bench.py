"""The benchmarks name things of the package that are there: they run seldom, and no type checker reads them."""

from __future__ import annotations

import ast
import importlib

import pytest

from tests.conftest import ROOT

IMPORTS = sorted(
    {
        (node.module, alias.name)
        for path in (ROOT / "bench").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("logicalrep")
        for alias in node.names
    }
)


def test_imports_of_benchmarks_exist() -> None:
    pytest.importorskip("pyspark")
    assert len(IMPORTS) > 20
    for module, name in IMPORTS:
        assert hasattr(importlib.import_module(module), name), f"{module} has no {name}"
