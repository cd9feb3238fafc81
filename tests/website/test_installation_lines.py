"""The programs of a page import only what the page's own `pip install` lines bring."""

from __future__ import annotations

import ast
import re
import shlex
import sys
from importlib.metadata import packages_distributions, requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.documents import ROOT, examples
from website.pages import PAGES

_INSTALL = re.compile(r"^pip install (.*)$", re.MULTILINE)
INSTALLING = [page.source for page in PAGES if _INSTALL.search((ROOT / page.source).read_text("utf-8"))]


def _installed(page: str) -> set[str]:
    """Return the names of all distributions that the install lines of a page bring."""
    lines = _INSTALL.findall((ROOT / page).read_text("utf-8"))
    waiting = [
        Requirement(re.sub(r"^\.", "logicalrep", word.replace("./native", "logicalrep-native")))
        for line in lines
        for word in shlex.split(line, comments=True)
    ]
    installed: set[tuple[str, str]] = set()
    while waiting:
        requirement = waiting.pop()
        for extra in requirement.extras or {""}:
            distribution = canonicalize_name(requirement.name), extra
            if distribution not in installed:
                installed.add(distribution)
                needed = [Requirement(text) for text in requires(requirement.name) or ()]
                waiting += [item for item in needed if item.marker is None or item.marker.evaluate({"extra": extra})]
    return {name for name, _ in installed}


def _imported(program: str) -> set[str]:
    """Return the top-level modules that a program imports."""
    modules = set()
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Import):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            modules.add(node.module.partition(".")[0])
    return (
        modules - sys.stdlib_module_names - {path.name for path in (ROOT / "src").iterdir()} - {"logicalrep_protocol"}
    )


@pytest.mark.parametrize("page", INSTALLING)
def test_the_installation_lines_bring_what_the_programs_import(page: str) -> None:
    distributions, installed = packages_distributions(), _installed(page)
    programs = examples(page, "python")
    lacking = {
        module
        for program in programs
        for module in _imported(program)
        if not {canonicalize_name(name) for name in distributions.get(module, ())} & installed
    }
    assert lacking == set()
