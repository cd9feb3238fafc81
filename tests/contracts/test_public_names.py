"""Every public name explains itself: what it is, how it is used, which errors it raises; what holds resources closes."""

from __future__ import annotations

import ast
import doctest
import functools
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.conftest import ROOT

PACKAGES = [
    "logicalrep",
    "logicalrep.arrow",
    "logicalrep.captures",
    "logicalrep.metrics",
    "logicalrep.postgres",
    "logicalrep.reader",
    "logicalrep.spark",
    "logicalrep.spark.frames",
    "logicalrep.transactions",
    "logicalrep.values",
    "logicalrep_protocol",
    "logicalrep_protocol.columnar",
]

EXEMPLIFIED = ["logicalrep", "logicalrep.arrow", "logicalrep.spark", "logicalrep_protocol"]
"""The packages whose names all have an example that a test runs."""
TESTED_BY = {
    "logicalrep.spark.acknowledge": "tests/spark/test_acknowledge.py",
    "logicalrep.spark.snapshot": "tests/spark/test_snapshot.py",
}
"""The tests of names whose examples need Spark and a server."""


def _public(package: str) -> Iterator[tuple[str, Any]]:
    """Yield the public classes and functions of a package by their names."""
    module = importlib.import_module(package)
    assert module.__all__
    for name in module.__all__:
        member = getattr(module, name)
        if not isinstance(member, ModuleType) and (inspect.isclass(member) or inspect.isfunction(member)):
            yield name, member


def _own_methods(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties that a class defines or inherits from classes of ours."""
    for owner in cls.__mro__:
        if owner.__module__.startswith("logicalrep"):
            fields = getattr(owner, "__dataclass_fields__", {})
            for name, member in vars(owner).items():
                is_code = isinstance(member, property | classmethod | staticmethod) or inspect.isfunction(member)
                if is_code and not name.startswith("_") and name not in fields:
                    yield name, getattr(cls, name)


def _raises(function: Any) -> bool:
    """Return whether a function itself raises an error."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return any(isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) for node in ast.walk(tree))


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_public_is_explained(package: str) -> None:
    pytest.importorskip("pyspark")
    lacking = []
    for name, member in _public(package):
        text = member.__doc__ or ""
        # A dataclass without a docstring gets its signature as one.
        if not text or text.startswith(f"{name}("):
            lacking.append(f"{name}: a docstring")
        if (inspect.isfunction(member) or hasattr(member, "__enter__")) and ">>> " not in text:
            lacking.append(f"{name}: an example")
        if inspect.isfunction(member) and _raises(member) and "Raises" not in text:
            lacking.append(f"{name}: its errors")
        if inspect.isclass(member):
            lacking += [
                f"{name}.{method_name}: a docstring"
                for method_name, code in _own_methods(member)
                if not inspect.getdoc(code)
            ]
    assert lacking == []


@functools.cache
def _names_in_examples() -> frozenset[str]:
    """Return the words of the programs that tests run: blocks of pages with the path of their test, and examples."""
    pages = [ROOT / "README.md", ROOT / "codegen" / "README.md", *(ROOT / "docs").rglob("*.md")]
    block = re.compile(r"^<!-- test: .* -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    texts = [text for page in pages for text in block.findall(page.read_text("utf-8"))]
    texts += [path.read_text("utf-8") for path in (ROOT / "examples").rglob("*.py")]
    return frozenset(re.findall(r"\w+", "\n".join(texts)))


@pytest.mark.parametrize("package", EXEMPLIFIED)
def test_a_test_runs_an_example_of_each_name(package: str) -> None:
    """A name without a program that uses it runs the example of its docstring here."""
    pytest.importorskip("pyspark")
    module, runner = importlib.import_module(package), doctest.DocTestRunner(verbose=False)
    names = {name: getattr(module, name) for name in module.__all__}
    lacking = []
    for name, member in _public(package):
        if name in _names_in_examples():
            continue
        if path := TESTED_BY.get(f"{package}.{name}"):
            assert f"{name}(" in (ROOT / path).read_text("utf-8"), path
            continue
        own = vars(importlib.import_module(member.__module__))
        tests = doctest.DocTestFinder(recurse=False).find(member, name, globs={**own, **names})
        results = [runner.run(test) for test in tests if test.examples]
        if not results or any(result.failed for result in results):
            lacking.append(name)
    assert lacking == [], "give each an example in its docstring, or use it in a program of a page"


@pytest.mark.parametrize("package", PACKAGES)
def test_completion_lists_each_name(package: str) -> None:
    pytest.importorskip("pyspark")
    module = importlib.import_module(package)
    assert {*module.__all__} <= {*dir(module)}, "names that are imported late need __dir__"
    if "__dir__" in vars(module):
        assert dir(module) == sorted(module.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_what_can_be_closed_is_a_context_manager(package: str) -> None:
    pytest.importorskip("pyspark")
    for name, member in _public(package):
        if inspect.isclass(member) and hasattr(member, "close"):
            assert hasattr(member, "__enter__"), name
            assert hasattr(member, "__exit__"), name
