"""Tests stand alone: helpers that two test modules need are in a module that is none."""

from __future__ import annotations

import ast

from tests.conftest import ROOT

FOLDERS = ("tests", "bench", "codegen", "website", "examples")


def _imported_tests(text: str) -> list[str]:
    """Return the test modules that a module imports."""
    names = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [name for name in names if name.startswith("tests.") and name.split(".")[-1].startswith("test_")]


def test_no_test_module_is_imported() -> None:
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    assert len(paths) > 500
    imports = {str(path.relative_to(ROOT)): _imported_tests(path.read_text("utf-8")) for path in paths}
    assert {path: names for path, names in imports.items() if names} == {}, "move what it imports to another module"


def test_an_imported_test_module_is_reported() -> None:
    text = "from tests.cli.test_main import run\nfrom tests.cli import test_slot\nfrom tests.waiting import eventually"
    assert _imported_tests(text) == ["tests.cli.test_main", "tests.cli.test_slot"]
