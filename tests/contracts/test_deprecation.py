"""A name that is to go warns first, and goes when it was said to."""

from __future__ import annotations

import ast
from importlib.metadata import version
from typing import Any

import pytest
from packaging.version import Version

from logicalrep_runtime.deprecation import deprecated
from tests.conftest import ROOT

_MARKED = """
@deprecated(name="logicalrep.read", since="0.2.0", removed_in="0.4.0", instead="logicalrep.stream")
def read(dsn: str) -> int:
    return len(dsn)
"""


def _outlived(text: str, now: Version) -> list[str]:
    """Return the names in a module that should have gone before a version."""
    calls = [
        {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords}
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "deprecated"
    ]
    return [call["name"] for call in calls if now >= Version(call["removed_in"])]


def test_a_call_warns_where_it_stands() -> None:
    names: dict[str, Any] = {"deprecated": deprecated}
    exec(_MARKED, names)
    with pytest.warns(DeprecationWarning, match="will be removed") as warned:
        assert names["read"]("host=db") == 7
    (warning,) = warned
    assert str(warning.message) == (
        "logicalrep.read is deprecated since 0.2.0, and will be removed in 0.4.0: use logicalrep.stream"
    )
    assert warning.filename == __file__


def test_a_name_that_outlives_its_version_is_found() -> None:
    assert _outlived(_MARKED, Version("0.3.9")) == []
    assert _outlived(_MARKED, Version("0.4.0")) == ["logicalrep.read"]


def test_no_name_outlives_the_version_that_it_was_to_go_with() -> None:
    now = Version(version("logicalrep"))
    found = {path.name: _outlived(path.read_text("utf-8"), now) for path in (ROOT / "src").rglob("*.py")}
    assert found
    assert {name: names for name, names in found.items() if names} == {}
