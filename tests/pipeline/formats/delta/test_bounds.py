"""Bounds of texts in a Delta table's log, as they are read again."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from logicalrep.pipeline.formats.stored_table import Position
from logicalrep.pipeline.storage.data_files import write_rows
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.histories import table
from tests.pipeline.stored import APP, new_log


@pytest.mark.parametrize("is_escaped", [False, True], ids=["as it is written now", "as another program escapes it"])
@pytest.mark.parametrize("text", ["\U00020000", "\U0001f600", "x" * 40, "\U00020000" * 40, "é", ""])
def test_no_text_is_above_the_upper_bound_of_its_file(tmp_path: Path, text: str, *, is_escaped: bool) -> None:
    """delta-rs reads escapes of some characters beyond U+FFFF as lower ones: a batch would leave out their files."""
    storage, log = Storage(str(tmp_path)), new_log(Storage(str(tmp_path)), ("b",))
    rows = pa.Table.from_pylist([{"id": 1, "b": text}], table(("b",)).stored)
    (file,) = write_rows(storage, "public/t", rows.schema, rows)
    version = log.commit([file], [], Position(APP, Lsn(1000)))
    if is_escaped:
        path = tmp_path / f"public/t/_delta_log/{version:020}.json"
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for action in actions:
            if "add" in action:
                action["add"]["stats"] = json.dumps(json.loads(action["add"]["stats"]))
        path.write_text("".join(json.dumps(action, ensure_ascii=False) + "\n" for action in actions))
    reopened = type(log).open(storage, "public/t")
    assert reopened is not None
    bounds = reopened.files[file.path].statistics
    assert bounds.greatest.get("b", text) >= text >= bounds.least.get("b", text)
    assert ("b" in bounds.greatest) == (not text.startswith("\U0001f600") and not text.startswith("\U00020000"))
