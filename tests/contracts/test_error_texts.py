"""Code tells errors apart by class or code, and never by their texts, which are for people."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT

_QUESTIONS = {"startswith", "endswith", "find", "index", "count", "match", "search", "fullmatch", "findall"}
# An error of Spark carries ours as text alone.
_OF_SPARK = {"src/logicalrep/spark/quiet.py"}


def _is_text(node: ast.expr, errors: set[str]) -> bool:
    """Whether an expression is the text of an error: `str(error)` or `error.description`."""
    match node:
        case ast.Call(func=ast.Name(id="str"), args=[ast.Name(id=name)]):
            return name in errors
        case ast.Attribute(value=ast.Name(id=name), attr="description" | "args" | "message_primary"):
            return name in errors
    return False


def _questions(code: str) -> Iterator[int]:
    """Yield the lines that decide something by an error's text."""
    tree = ast.parse(code)
    caught = {node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name}
    errors = caught | {"error", "exception"}
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=comparators):
                asked = [left, *comparators]
            case ast.Call(func=ast.Attribute(value=value, attr=attr), args=args) if attr in _QUESTIONS:
                asked = [value, *args]
            case _:
                continue
        if any(_is_text(operand, errors) for operand in asked):
            yield node.lineno


def test_no_error_is_told_by_its_text() -> None:
    comparisons = {
        f"{name}:{line}"
        for path in (ROOT / "src").rglob("*.py")
        if (name := path.relative_to(ROOT).as_posix()) not in _OF_SPARK
        for line in _questions(path.read_text("utf-8"))
    }
    assert comparisons == set()


@pytest.mark.parametrize(
    "question",
    [
        'if "[SLOT_LOST]" not in str(error): raise',
        'if error.description == "lost": raise',
        'if str(error).startswith("lost"): raise',
        "if re.search(LOST, str(error)): raise",
    ],
)
def test_a_question_to_a_text_is_found(question: str) -> None:
    assert list(_questions(question)) == [1]
