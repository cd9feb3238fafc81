"""Errors have one base, a code that is documented, and survive the way to another process."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from logicalrep import DecodeError, EncodeError, LogicalRepError
from logicalrep.error_codes import CODES
from logicalrep.error_codes.page import page
from logicalrep.postgres.preflight.findings import Finding, PreflightError
from tests.conftest import ROOT
from tests.errors.every_error import every_error

_SOURCES = [
    ROOT / "src" / "logicalrep",
    ROOT / "src" / "logicalrep_runtime",
    ROOT / "generated" / "logicalrep_protocol",
]
# They are raised and caught within one package, or are what Python itself asks for.
_INTERNAL = {
    "IndexDamagedError",
    "IndexTooLargeError",
    "LogicalRepError",
    "MalformedError",
    "NotProvenYetError",
    "UnsupportedError",
    "_UnknownError",
}


def _files() -> Iterator[Path]:
    for folder in _SOURCES:
        yield from sorted(folder.rglob("*.py"))


def _codes(path: Path) -> Iterator[str]:
    """The codes that a file gives to errors: `code = "X"` in a class, `code="X"` in a call, `findings.add_error("X", …)`."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case (
                ast.Assign(targets=[ast.Name(id="code")], value=ast.Constant(value=str(code)))
                | ast.keyword(arg="code", value=ast.Constant(value=str(code)))
                | ast.Call(
                    func=ast.Attribute(value=ast.Name(id="findings"), attr="add_error"),
                    args=[ast.Constant(value=str(code)), *_],
                )
            ):
                yield code


def test_every_code_is_documented_and_every_documented_code_is_used() -> None:
    assert {code for path in _files() for code in _codes(path)} == set(CODES)
    assert (ROOT / "docs/reference/errors.md").read_text("utf-8") == page()


def test_every_class_of_errors_has_the_base() -> None:
    for path in _files():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name.endswith("Error") and node.name not in _INTERNAL:
                bases = set(map(ast.unparse, node.bases))
                assert not bases & {"Exception", "ValueError", "RuntimeError"} or "LogicalRepError" in bases, node.name


def test_an_error_is_the_same_after_pickling() -> None:
    for error in every_error():
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert (str(copy), copy.code, copy.args, vars(copy)) == (str(error), error.code, error.args, vars(error))


def test_the_text_begins_with_the_code() -> None:
    for error in every_error():
        if not isinstance(error, DecodeError | EncodeError):
            assert str(error).startswith(f"[{error.code}] "), error
        assert error.code in CODES


def test_each_finding_of_a_preflight_has_its_own_code() -> None:
    error = PreflightError([Finding("WAL_LEVEL", "wal_level is replica."), Finding("SLOT_LOST", "It is lost.")])
    assert str(error) == "[WAL_LEVEL] wal_level is replica.\n[SLOT_LOST] It is lost."
    with pytest.raises(LogicalRepError, match="WAL_LEVEL"):
        raise error
