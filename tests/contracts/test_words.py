"""Names are nouns, and docstrings and pages repeat the noun."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT
from tests.contracts.pages import PAGES

FOLDERS = ("src", "codegen", "bench", "conformance", "tests")

PRONOUNS = {
    "again", "before", "each", "found", "gone", "its", "known", "later", "left", "made", "now", "one", "others", "said",
    "some", "there", "these", "those",
}  # fmt: skip
"""Words that name nothing: a variable has the noun of its type or its meaning."""
PUBLIC = {
    "src/logicalrep/transactions/change_feed.py": {"before"},  # a column of the change feed
    "src/logicalrep/transactions/changes.py": {"before"},
    "src/logicalrep/transactions/transaction.py": {"known"},
    "src/logicalrep_runtime/columnar/batches.py": {"found"},  # "expected …, found …"
    "src/logicalrep_runtime/errors.py": {"found"},
}
"""Attributes of public classes, by module."""
PHRASES = re.compile(
    r"\b(those of|that of|ones? that|the same of|by which|in which|as far as|(?:is|are) told|goe?s? on|what becomes|any more)\b",
    re.IGNORECASE,
)
"""Phrases that docstrings and pages replace by the noun, the actor, or the field's verb."""


def _targets(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement, a loop or a parameter binds."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
            yield name


def _pronouns(tree: ast.Module) -> set[str]:
    return {name for node in ast.walk(tree) for name in _targets(node) if name.strip("_") in PRONOUNS}


def _docstrings(tree: ast.Module) -> Iterator[str]:
    """Yield the docstrings of modules, classes, functions, constants and attributes."""
    for node in ast.walk(tree):
        for statement in getattr(node, "body", []) if not isinstance(node, ast.Lambda | ast.IfExp) else []:
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield text


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_names_are_nouns(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    names = {file.relative_to(ROOT).as_posix(): _pronouns(ast.parse(file.read_text("utf-8"))) for file in files}
    assert {
        file: unexpected for file, pronouns in names.items() if (unexpected := pronouns - PUBLIC.get(file, set()))
    } == {}


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_repeat_the_noun(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    phrases = {
        file.relative_to(ROOT).as_posix(): [
            phrase[0] for text in _docstrings(ast.parse(file.read_text("utf-8"))) for phrase in PHRASES.finditer(text)
        ]
        for file in files
    }
    assert {file: texts for file, texts in phrases.items() if texts} == {}


@pytest.mark.parametrize("page", PAGES)
def test_pages_repeat_the_noun(page: str) -> None:
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", (ROOT / page).read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert PHRASES.findall(prose) == []


def test_each_term_of_the_glossary_is_used() -> None:
    rows = re.findall(r"(?m)^\| ([a-zA-Z ]+) \| ", (ROOT / "docs" / "glossary.md").read_text("utf-8"))
    terms = [row for row in rows if row not in ("word", "term")]
    assert len(terms) > 15
    assert terms == sorted(terms, key=str.lower)
    texts = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "src" / "logicalrep").rglob("*.py")))
    assert [term for term in terms if not re.search(r"\b" + term.replace(" ", " ?"), texts, re.IGNORECASE)] == []
