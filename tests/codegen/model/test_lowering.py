"""Modifiers end where rows are lowered: what reads and writes bytes knows operations only."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from codegen.lowering import operations
from codegen.model import layout_reader
from tests.conftest import ROOT

BACK_ENDS = ["codegen/emit", "codegen/vectors", "src/logicalrep_runtime", "native"]
"""Where bytes are read or written, or where what does so is emitted."""

_ORDINARY = {
    "since",
    "when",
    "is",
    "size",
    "values",
    "bits",
    "optional",
    "repeat",
    "until",
    "measures",
    "doc",
    "note",
    "page note",
}
"""Modifiers that are ordinary words too, so that only their use on a row tells."""
_DISTINCT = {"looks_up", "batch_column"}
"""Names of facts about sessions and batches, not about bytes."""


def _files() -> list[Path]:
    paths = [path for folder in BACK_ENDS for path in (ROOT / folder).rglob("*")]
    return [path for path in paths if path.suffix in (".py", ".j2", ".c", ".h") and "__pycache__" not in path.parts]


@pytest.mark.parametrize("path", _files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_back_end_names_no_modifier(path: Path) -> None:
    text = path.read_text("utf-8")
    modifiers = {name.replace(" ", "_") for name in layout_reader.MODIFIERS} - _DISTINCT
    ordinary = {name.replace(" ", "_") for name in _ORDINARY}
    distinct = "|".join(sorted(modifiers - ordinary))
    of_rows = "|".join(sorted(ordinary - {"since", "until", "doc", "note", "page_note"}))
    assert not re.findall(rf"\b(?:{distinct})\b", text)
    assert not re.findall(rf"\b(?:row|field)\.(?:{of_rows})\b", text)
    assert "model.notation" not in text
    assert not re.search(r"from codegen\.model\.model import[^\n]*\bField\b", text)


def test_each_operation_names_its_row() -> None:
    kinds = [item for item in vars(operations).values() if isinstance(item, type) and hasattr(item, "kind")]
    assert len(kinds) >= 9
    for kind in kinds:
        assert {"name", "printed", "doc", "place"} <= {field.name for field in fields(kind)}
