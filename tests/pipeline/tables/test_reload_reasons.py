"""The page of reloads has each reason of the code, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.conftest import ROOT

PIPELINE = ROOT / "src/logicalrep/pipeline"
ERRORS = {"NeedsResync", "MissingRows"}
FUNCTIONS = {
    "reason_to_load",
    "_partition_reason",
    "_file_reason",
    "_column_reason",
    "_reason_to_load",
    "_lost_changes",
    "_query_change",
}
"""The functions that return the reason of a reload, or None."""
CONSTANTS = {
    "ASKED_FOR",
    "NEW",
    "OTHER_SETTINGS",
    "BEYOND_PROOF",
    "ATTACHED",
    "DROPPED",
    "EQUAL_KEYS",
    "MAY_BE_UNLOGGED",
    "EMPTIED",
}

OTHERS = {
    "its rows are being copied",
    "the copy lacks changes that were not buffered",
    "a part of it is not reloaded",
}
"""The reasons of other transitions."""


def texts(node: ast.AST | None) -> Iterator[str]:
    """Yield the texts that an expression may be, with an ellipsis for each value in them."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)
        case ast.IfExp(body=body, orelse=other):
            yield from (*texts(body), *texts(other))
        case ast.BoolOp(values=values):
            for value in values:
                yield from texts(value)
        case ast.Tuple(elts=values):
            for value in values:
                yield from texts(value)


def reasons(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[reason, *_]) if name in ERRORS:
                yield from texts(reason)
            case ast.Call(func=ast.Attribute(attr="load"), args=[_, reason, *_]):
                yield from texts(reason)
            case ast.FunctionDef(name=name) if name in FUNCTIONS:
                for child in ast.walk(node):
                    if isinstance(child, ast.Return):
                        yield from texts(child.value)
            case ast.Assign(targets=[ast.Name(id="reason")], value=reason) if not isinstance(reason, ast.JoinedStr):
                yield from texts(reason)
            case ast.Assign(targets=[ast.Name(id=name)], value=reason) if name in CONSTANTS:
                yield from texts(reason)
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                for target, value in zip(targets, values, strict=True):
                    if isinstance(target, ast.Name) and target.id in CONSTANTS:
                        yield from texts(value)


def test_the_page_has_each_reason_of_the_code_and_no_other() -> None:
    rooms = ("apply", "catalog", "masks", "tables", "buffer")
    modules = [path for room in rooms for path in sorted((PIPELINE / room).rglob("*.py"))]
    code_reasons = {reason for path in modules for reason in reasons(ast.parse(path.read_text("utf-8")))}
    page = (ROOT / "docs/explanation/reloads.md").read_text("utf-8")
    rows = set(re.findall(r"(?m)^\| `([^`]+)` \|", page))
    assert len(rows) > 50
    assert rows == code_reasons - OTHERS


def test_nine_types_are_enough_to_learn_why_a_table_was_reloaded() -> None:
    page = (ROOT / "docs/explanation/reloads.md").read_text("utf-8")
    names = set(re.findall(r"`([A-Z][a-z]+[A-Z]\w+|Openings|Queued)`", page))
    classes = {
        node.name
        for path in PIPELINE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    }
    assert names <= classes
    assert len(names) <= 9
