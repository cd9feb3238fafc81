"""Pages, and programs within strings, import names that are there: no type checker reads them."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.contracts.modules import MODULES

_IMPORT = re.compile(r"^[ \t>.]*from (logicalrep\w*(?:\.\w+)*) import (?:\(([^)]*)\)|([\w, ]+))", re.MULTILINE)


def _texts() -> Iterator[tuple[Path, str]]:
    for pattern in ("tests/**/*.py", "bench/**/*.py", "docs/**/*.md", "src/**/*.md", "*.md"):
        for path in sorted(ROOT.glob(pattern)):
            if "releases" not in path.parts and path.name != "CHANGELOG.md":
                yield path, path.read_text("utf-8")


@functools.cache
def _bound(module: str) -> set[str] | None:
    """Return the names that a module binds anywhere; None if its `__getattr__` may have any."""
    text = MODULES[module].read_text("utf-8")
    if "def __getattr__" in text:
        return None
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom | ast.Import):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def _has(module: str, name: str) -> bool:
    """Whether a module binds a name, or a package has such a module."""
    bound = _bound(module)
    return f"{module}.{name}" in MODULES or bound is None or name in bound


def _missing(text: str) -> Iterator[str]:
    for module, many, few in _IMPORT.findall(text):
        for name in re.findall(r"(\w+)(?: as \w+)?", many or few):
            if module in MODULES and not _has(module, name):
                yield f"{module}.{name}"
            elif module not in MODULES:
                yield module


def test_imported_names_are_there() -> None:
    # The page and the test of a new version make it first.
    assert [(str(path), name) for path, text in _texts() for name in _missing(text) if "v5" not in name] == []


def test_a_missing_name_is_found() -> None:
    text = (
        '    PROGRAM = """\nfrom logicalrep.postgres.retries import Absent, Retries\nfrom logicalrep.absent import x\n'
    )
    assert list(_missing(text)) == ["logicalrep.postgres.retries.Absent", "logicalrep.absent"]


def _without_safe_path(tree: ast.AST) -> Iterator[int]:
    """Yield the lines of commands that start this Python without `-P`, which keeps the current folder off `sys.path`."""
    for node in ast.walk(tree):
        items = node.elts if isinstance(node, ast.List | ast.Tuple) else []
        texts = [*map(ast.unparse, items), ""]
        for item, text, following in zip(items, texts, texts[1:], strict=False):
            if text == "sys.executable" and following != "'-P'":
                yield item.lineno


@pytest.mark.slow
def test_no_program_is_started_that_imports_modules_of_the_current_folder() -> None:
    paths = [
        path
        for folder in ("src", "website", "bench", "conformance", "codegen", "examples")
        for path in (ROOT / folder).rglob("*.py")
    ]
    assert len(paths) > 100
    starts = [(str(path), line) for path in paths for line in _without_safe_path(ast.parse(path.read_text("utf-8")))]
    assert starts == []
    texts = [(str(path), text) for path in paths if "multiprocessing" in (text := path.read_text("utf-8"))]
    assert {path.removeprefix(f"{ROOT}/") for path, _ in texts} <= {
        "src/logicalrep/pipeline/engines/local.py",  # its connections alone
        "bench/spark/masters.py",
    }
