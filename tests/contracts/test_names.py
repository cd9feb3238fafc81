"""A name tells one thing: no two classes of the packages have the same name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

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
