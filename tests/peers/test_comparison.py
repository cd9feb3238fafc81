"""The page that compares says what is true of ours, and its comparison can tell right from wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from bench.peers.cases import FILE, read_cases
from bench.peers.comparing import compare
from bench.peers.consumer import PLACEHOLDER, fold
from bench.peers.lake import rows_of
from tests.documents import ROOT
from tests.pipeline.replicating import replicate_once
from tests.postgres.servers import Database


def _tables(document: str, head: str) -> dict[str, list[str]]:
    """The cells of a page's table behind the first of each row, by that one."""
    lines = iter((ROOT / document).read_text().splitlines())
    next(line for line in lines if line.startswith(head))
    next(lines)
    tables = {}
    for line in lines:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        tables[name] = cells
    return tables


def test_logicalrep_is_right_in_every_case(db18: Database, tmp_path: Path) -> None:
    cases = read_cases()
    for case in cases:
        db18.execute(*case.setup)
    replicate_once(db18, tmp_path, unrepresentable="text")
    for case in cases:
        db18.execute(*case.changes)
    replicate_once(db18, tmp_path, unrepresentable="text")
    verdicts = {case.name: compare(db18.connection, case.table, rows_of(tmp_path, case.table)) for case in cases}
    assert verdicts == {case.name: "right" for case in cases}


def test_the_page_lists_every_case_with_logicalreps_result() -> None:
    names = [case.name for case in read_cases()]
    assert len(names) == FILE.read_text().count("-- case: ")
    rows = _tables("docs/comparison.md", "| case ")
    assert list(rows) == names
    head = re.search(r"^\| case \|(.*)\|$", (ROOT / "docs/comparison.md").read_text(), re.MULTILINE)
    assert head is not None
    ours = [place for place, name in enumerate(head[1].split("|")) if "replicate" in name]
    assert len(ours) == 2
    assert {cells[place] for cells in rows.values() for place in ours} == {"right"}


def test_the_readme_says_what_the_page_says() -> None:
    page = _tables("docs/comparison.md", "| case ")
    readme = _tables("README.md", "| | logicalrep | Debezium, ")
    assert len(readme) == 5
    for name, cells in readme.items():
        local, spark, *debezium = (cell.partition(":")[0] for cell in page[name])
        assert cells[:3] == [local, *debezium], name
        assert spark == local


def test_differences_are_reported(db18: Database) -> None:
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY, n numeric, v text)", "INSERT INTO t VALUES (1, 0.10, ''), (2, 3, 'x')"
    )

    def said(*rows: tuple[str | None, ...]) -> str:
        return compare(db18.connection, "t", [dict(zip(("id", "n", "v"), row, strict=False)) for row in rows])

    assert said(("2", "3.0", "x"), ("1", "0.1", "")) == "right"
    assert said(("1", "0.1", ""), ("2", "3", None)) == "wrong: `v` is NULL, not `x`"
    assert said(("1", "5", ""), ("2", "4", "x")) == "wrong: `n` is `5`, not `0.1`; 2 such rows"
    assert said(("1", "0.1", "")) == "wrong: 1 row is missing"
    assert said(("1", "0.1", ""), ("2", "3", "x"), ("2", "3", "x")) == "wrong: 1 row too many"
    assert said(("1", "0.1", ""), ("2", "three", "x")) == "wrong: `n` is `three`, not `3`"


def _event(op: str, key: int | None, old_row: Any, new_row: Any, headers: dict[str, Any] | None = None) -> str:
    row: list[dict[str, Any]] = [{"field": "id", "type": "int32"}, {"field": "v", "type": "string"}]
    row += [{"field": "c", "type": "int32", "default": 7}] if new_row and "c" in new_row else []
    fields = [{"field": side, "fields": row} for side in ("before", "after")]
    payload = {"op": op, "before": old_row, "after": new_row, "source": {"table": "t"}}
    key_json = None if key is None else {"payload": {"id": key}}
    parts = [key_json, {"schema": {"fields": fields}, "payload": payload}, headers or {}]
    return "\t".join(json.dumps(part) for part in parts)


def test_a_consumer_knows_the_rules_or_not() -> None:
    moved = {"id": 2, "v": PLACEHOLDER}
    events = [
        _event("r", 1, None, {"id": 1, "v": "long"}),
        _event("d", 1, {"id": 1, "v": None}, None, {"__debezium.newkey": {"payload": {"id": 2}}}),
        '{"payload": {"id": 1}}\tnull\t{}',
        _event("c", 2, None, moved, {"__debezium.oldkey": {"payload": {"id": 1}}}),
        _event("c", 3, None, {"id": 3, "v": "new", "c": 8}),
    ]
    assert fold(events, is_informed=False) == {"t": [{"id": "2", "v": PLACEHOLDER}, {"id": "3", "v": "new", "c": "8"}]}
    assert fold(events, is_informed=True) == {
        "t": [{"id": "2", "v": "long", "c": "7"}, {"id": "3", "v": "new", "c": "8"}]
    }


def test_a_consumer_finds_rows_without_a_key_by_their_values() -> None:
    x, y = {"id": 1, "v": "x"}, {"id": 1, "v": "y"}
    events = [
        _event("c", None, None, x),
        _event("c", None, None, x),
        _event("u", None, x, y),
        _event("d", None, x, None),
    ]
    assert fold(events, is_informed=False) == {"t": [{"id": "1", "v": "y"}]}
    assert fold([*events, _event("t", None, None, None)], is_informed=False) == {"t": []}
