"""docs/reference/destination.md and stored-tables.md have every file of a destination, and the keys of each, as they are written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from logicalrep.arrow.changes.table_changes import TableChanges
from logicalrep.pipeline.buffer.change_buffer import ChangeBuffer
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.scalars import Lsn
from tests.conftest import ROOT
from tests.pipeline.changes import change_batch, relation
from tests.pipeline.state.stored_files import FILES, REQUESTED_PART, STORED_TABLE, STORED_TABLE_STATE
from tests.pipeline.stored import new_log

PAGE = "".join((ROOT / f"docs/reference/{name}.md").read_text("utf-8") for name in ("destination", "stored-tables"))
SECTIONS = dict(re.findall(r"(?ms)^##+ (.*?)$(.*?)(?=^##|\Z)", PAGE))
PARTS = {
    "<folder>": ".+/.+",
    "<number>": r"\d{20}",
    "<LSN>": "[0-9A-F]{16}",
    "<time>": r"\d{8}T\d{6}\.\d{6}Z",
    "<random>": "[0-9a-f]{16}|RANDOM",
}
DESCRIPTION = json.loads(STORED_TABLE)


def keys_of(section: str, column: str = "key") -> set[str]:
    """Return the keys in a section's table."""
    _, _, rows = SECTIONS[section].partition(f"| {column} | value |\n| --- | --- |\n")
    return set(re.findall(r"(?m)^\| `(.*?)` \|", rows.partition("\n\n")[0]))


def files() -> list[str]:
    """Return the page's files below `_logicalrep/`, and our files in a table's folder."""
    _, _, rows = PAGE.partition("| file | written | read |\n| --- | --- | --- |\n")
    return [name for name in re.findall(r"(?m)^\| `(.*?)`", rows.partition("\n\n")[0]) if not name.endswith("/")]


def one_of(names: Iterable[str]) -> re.Pattern[str]:
    patterns = [re.sub("|".join(PARTS), lambda part: f"({PARTS[part[0]]})", name.replace(".", r"\.")) for name in names]
    return re.compile("|".join(f"({pattern})" for pattern in patterns))


def test_each_file_is_on_the_page_and_each_on_the_page_is_written() -> None:
    written = [*FILES, "_logicalrep/state.json", "_logicalrep/buffered/public/t/0000000000000010-RANDOM.part"]
    written += ["_logicalrep/shared/RANDOM"]
    for name in files():
        assert any(one_of([name]).fullmatch(path) for path in written), name
    assert [path for path in written if not one_of(files()).fullmatch(path)] == []


def test_files_have_the_keys_of_the_page() -> None:
    written: dict[str, Any] = {path: json.loads(text) for path, text in FILES.items() if path.endswith(".json")}
    sections = [name.strip("`") for name in SECTIONS if name.startswith("`") and name.endswith(".json`")]
    assert {name for name in files() if name.endswith(".json")} - {"_logicalrep/state.json"} == set(sections)
    for name in sections:
        keys = {key for path, content in written.items() if one_of([name]).fullmatch(path) for key in content}
        # The other kinds of requests.
        keys |= {"resync", "part"} if "requests" in name else set()
        assert keys == keys_of(f"`{name}`"), name


def test_stored_objects_have_the_keys_of_the_page() -> None:
    element = DESCRIPTION["types"]["9"]["element"]
    assert keys_of("`_logicalrep/requests/<random>.json`", "key of `part`") == REQUESTED_PART["part"].keys()
    assert {
        "A table's state": json.loads(STORED_TABLE_STATE).keys(),
        "A table's description": DESCRIPTION.keys(),
        "Facts of the catalog": DESCRIPTION["evidence"].keys(),
        "A type": element.keys(),
        "A table's settings": DESCRIPTION["settings"].keys(),
    } == {
        name: keys_of(name)
        for name in (
            "A table's state", "A table's description", "Facts of the catalog", "A type", "A table's settings"
        )
    }  # fmt: skip


def test_a_delta_table_has_the_properties_of_the_page(tmp_path: Path) -> None:
    log = new_log(Storage(str(tmp_path)), ("id",), mode="merge-on-read")
    log.write_stopped("why")
    properties = DeltaTable(tmp_path / "public/t").metadata().configuration.keys()
    on_page = keys_of("The Delta tables", "property")
    assert on_page - properties == {"delta.dataSkippingNumIndexedCols", "delta.enableChangeDataFeed"}
    assert properties - on_page == set()


@pytest.mark.slow
def test_a_large_transaction_is_buffered_in_the_files_of_the_page(tmp_path: Path) -> None:
    inserts = [{"op": "insert", "after": {"v": "x" * (40 << 20)}}] * 2
    changes = TableChanges(batches=[change_batch(relation(("v",)), inserts)])
    ChangeBuffer(Storage(str(tmp_path))).append("public/t", changes, Lsn(16))
    (part,), (last,) = (list(tmp_path.rglob(pattern)) for pattern in ("*.part", "*.parquet"))
    paths = [path.relative_to(tmp_path).as_posix() for path in (part, last)]
    names = ["_logicalrep/buffered/<folder>/<LSN>-<random>.part", "_logicalrep/buffered/<folder>/<LSN>-<LSN>.parquet"]
    assert [bool(one_of([name]).fullmatch(path)) for name, path in zip(names, paths, strict=True)] == [True, True]
    properties = pq.read_schema(last).metadata
    assert {key.decode() for key in properties} == keys_of(f"`{names[1]}`", "property")
    assert json.loads(properties[b"logicalrep.parts"]) == [part.name]
