"""A name tells one thing: no two classes of the packages have the same name. Tests use names that are public."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT


def _same_names(folder: Path) -> dict[str, list[str]]:
    """Return the places of classes that have a name in common, by that name; a leading underscore is none of it."""
    classes = defaultdict(list)
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                classes[node.name.lstrip("_")].append(f"{path.relative_to(folder)}:{node.lineno}")
    return {name: lines for name, lines in classes.items() if len(lines) > 1}


def test_class_names_are_unique() -> None:
    assert _same_names(ROOT / "src") == {}


def test_a_second_class_of_a_name_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class Reader: ...\nclass Writer: ...\n")
    (tmp_path / "b.py").write_text("def read():\n    class _Reader: ...\n")
    assert _same_names(tmp_path) == {"Reader": ["a.py:1", "b.py:2"]}


OF_OTHERS = {"builder._options", "construct._validate", "os._exit", "spark._jvm"}
"""Private names of other projects that tests use."""
COLUMNS = {"_change_type", "_commit_timestamp", "_commit_version", "_ordinal", "_unchanged"}
"""Columns of change feeds, which Spark makes attributes of rows."""


def _private(path: Path) -> Iterator[str]:
    """Yield the private names that a test imports, asks for or patches, but for its own."""
    nodes = [*ast.walk(ast.parse(path.read_text("utf-8")))]
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    own |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"}
    own |= COLUMNS | {"_replace", "_asdict", "_fields"}

    def is_private(name: str) -> bool:
        return name.startswith("_") and not name.startswith("__") and name not in own

    for node in nodes:
        match node:
            case ast.ImportFrom(names=names):
                yield from (f"import {alias.name}" for alias in names if is_private(alias.name))
            case ast.Attribute(attr=name) if is_private(name) and ast.unparse(node) not in OF_OTHERS:
                yield ast.unparse(node)
            case ast.Call(func=ast.Attribute(attr=called) | ast.Name(id=called), args=args) if called.endswith("attr"):
                texts = [arg.value for arg in args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
                yield from (f"{called} {text}" for text in texts if is_private(text.rpartition(".")[2]))


@pytest.mark.slow
def test_tests_use_public_names() -> None:
    private_names = {
        path.relative_to(ROOT).as_posix(): names
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if (names := list(_private(path)))
    }
    assert private_names == {}


@pytest.mark.parametrize(
    "line",
    ["from a import _b", "a._b", "setattr(a, '_b', 1)", "monkeypatch.setattr('a._b', 1)", "getattr(a, '_b')"],
)
def test_a_private_name_is_found(tmp_path: Path, line: str) -> None:
    (tmp_path / "test.py").write_text(line)
    assert len(list(_private(tmp_path / "test.py"))) == 1
    (tmp_path / "test.py").write_text(f"class A:\n    def _b(self): ...\n{line}")
    assert list(_private(tmp_path / "test.py")) == []
