"""Test modules import no test module, and each module of the package has tests where its guide says."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.contracts.modules import MODULES, imported_names, imports_of

FOLDERS = ("tests", "bench", "conformance", "codegen", "website", "examples")


def _imported_tests(text: str) -> list[str]:
    """Return the test modules that a module imports."""
    names = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [name for name in names if name.startswith("tests.") and name.split(".")[-1].startswith("test_")]


@pytest.mark.slow
def test_no_test_module_is_imported() -> None:
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    assert len(paths) > 500
    imports = {str(path.relative_to(ROOT)): _imported_tests(path.read_text("utf-8")) for path in paths}
    assert {path: names for path, names in imports.items() if names} == {}, "move what it imports to another module"


def test_an_imported_test_module_is_reported() -> None:
    text = "from tests.cli.test_main import run\nfrom tests.cli import test_slot\nfrom tests.waiting import eventually"
    assert _imported_tests(text) == ["tests.cli.test_main", "tests.cli.test_slot"]


SOURCES = ROOT / "src" / "logicalrep"


def _tests_elsewhere() -> dict[Path, list[Path]]:
    """Return the tests that the guide names, by the folder or the module that they test."""
    section = (SOURCES / "README.md").read_text("utf-8").partition("## The tests")[2]
    rows = re.findall(r"^\| (`.*`) \| (.*) \|$", section, re.MULTILINE)
    return {
        (SOURCES / name).resolve(): [(SOURCES / link).resolve() for link in re.findall(r"\]\((.*?)\)", links)]
        for names, links in rows
        for name in re.findall(r"`(.*?)`", names)
    }


def _tests_of(module: Path, elsewhere: dict[Path, list[Path]]) -> list[Path]:
    """Return the folders and files with the tests of a module."""
    for path in (module, module.parent):
        if path in elsewhere:
            return elsewhere[path]
    return [ROOT / "tests" / module.parent.relative_to(SOURCES)]


@functools.cache
def _reached(tests: Path) -> frozenset[str]:
    """Return the modules that a folder of tests, or a file, names or imports, directly or by other modules."""
    waiting = sorted(tests.rglob("*.py")) if tests.is_dir() else [tests]
    names, reached, read = set[str](), set[str](), set[Path]()
    while waiting:
        path = waiting.pop()
        if path not in read:
            read.add(path)
            text = path.read_text("utf-8")
            names |= set(re.findall(r"\blogicalrep[\w.]*\w", text))
            if path.suffix == ".py":
                names |= set(imports_of(path.stem, path))
                waiting += _helpers(text)
    pending = _with_packages(names)
    while pending:
        reached |= pending
        imports = {name for module in pending for name in (*imported_names()[module], *_imported_late(module))}
        pending = _with_packages(imports) - reached
    return frozenset(reached)


def _imported_late(module: str) -> list[str]:
    """Return the modules that a module imports by their names in texts."""
    return re.findall(r'import_module\("([\w.]+)"\)', MODULES[module].read_text("utf-8"))


def _with_packages(names: set[str]) -> set[str]:
    """Return the modules of some names, and the packages that they are in."""
    parts = [name.split(".") for name in names]
    return {".".join(name[:length]) for name in parts for length in range(1, len(name) + 1)} & MODULES.keys()


def _helpers(text: str) -> Iterator[Path]:
    """Yield the modules of tests that a module of tests imports."""
    for module in re.findall(r"^ *from (tests\.[\w.]+) import", text, re.MULTILINE):
        path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
        if path.is_file():
            yield path


@pytest.mark.slow
def test_each_module_is_imported_by_the_tests_of_its_folder() -> None:
    elsewhere = _tests_elsewhere()
    modules = {name: path for name, path in MODULES.items() if path.is_relative_to(ROOT / "src")}
    assert len(modules) > 400
    missing = {
        name: [str(tests.relative_to(ROOT)) for tests in _tests_of(path, elsewhere)]
        for name, path in modules.items()
        if path.name not in ("__init__.py", "__main__.py")
        if not any(name in _reached(tests) for tests in _tests_of(path, elsewhere))
    }
    assert missing == {}, "test them there, or name their tests in the guide's table of tests"
    named = {folder for folder in elsewhere if not folder.exists()}
    assert named == set(), "the guide's table of tests names what is no folder and no module"


STARTED = {"create_database", "start_server"}
"""Functions that start a server."""


def _unmarked_starts(text: str) -> list[str]:
    """Return the tests that start a server by themselves in a module without the mark of such tests."""
    if "pytest.mark.postgres" in text:
        return []
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    return [
        function.name
        for function in functions
        if function.name.startswith("test_")
        and STARTED & {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    ]


def test_tests_that_start_a_server_are_marked() -> None:
    """`make test-quick` leaves out marked tests."""
    texts = {path.name: path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    assert {name: tests for name, text in texts.items() if (tests := _unmarked_starts(text))} == {}


def test_an_unmarked_start_is_found() -> None:
    text = "def test_rows() -> None:\n    with create_database(18) as db:\n        db.execute('SELECT 1')\n"
    assert _unmarked_starts(text) == ["test_rows"]
    assert _unmarked_starts(f"pytestmark = pytest.mark.postgres\n{text}") == []
