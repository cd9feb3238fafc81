"""The page has the results of all cases, and the kit tells right rows from wrong ones."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from conformance.cases import FILE, read_cases
from conformance.page import outcomes_text
from conformance.tool import TOOLS
from conformance.tools.debezium_consumer import PLACEHOLDER, RESTART, fold
from conformance.verdicts import Verdict, compare, query_published
from conformance.workloads import Outcome
from tests.documents import ROOT
from tests.postgres.servers import Database


def _tables(document: str, head: str, start: str = "") -> dict[str, list[str]]:
    """Return the cells of the first table with a head after a text, by the first cell of the row."""
    text = (ROOT / document).read_text()
    lines = iter(text[text.index(start) :].splitlines())
    next(line for line in lines if line.startswith(head))
    next(lines)
    tables = {}
    for line in lines:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        tables[name] = cells
    return tables


def test_the_page_lists_every_case_with_logicalreps_result() -> None:
    names = [case.name for case in read_cases()]
    assert len(names) == FILE.read_text().count("-- case: ")
    rows = _tables("docs/conformance.md", "| case ")
    assert list(rows) == names
    head = re.search(r"^\| case \|(.*)\|$", (ROOT / "docs/conformance.md").read_text(), re.MULTILINE)
    assert head is not None
    ours = [place for place, name in enumerate(head[1].split("|")) if "replicate" in name]
    assert len(ours) == 2
    assert {cells[place] for cells in rows.values() for place in ours} == {"right"}


def test_the_readme_says_what_the_page_says() -> None:
    page = _tables("docs/conformance.md", "| case ")
    readme = _tables("README.md", "| | logicalrep | Debezium, ")
    assert len(readme) == 5
    for name, cells in readme.items():
        local, spark, *debezium = (cell.partition(":")[0] for cell in page[name])
        assert cells[:3] == [local, *debezium], name
        assert spark == local


@pytest.mark.parametrize("part", ["schema", "types", "kills"])
def test_the_page_has_logicalrep_right_after_schema_changes_and_kills(part: str) -> None:
    tables = _tables("docs/conformance.md", "| tool ", f"<!-- measured: {part} -->")
    assert len(tables) == len(TOOLS)
    for name, (_, _, _, compared, _, right, wrong, stopped, failed) in tables.items():
        if "replicate" in name:
            assert (right, wrong, stopped, failed) == (compared, "0", "0", "0")


def test_a_workloads_figures_and_first_verdicts_are_shown() -> None:
    verdicts = {
        "s.a after phase 1": Verdict("right", rows=1200),
        "s.b after phase 1": Verdict("wrong", "1 row too many"),
    }
    more = {"s.b after phase 2": Verdict("wrong", "1 row too many"), "s.c after phase 2": Verdict("stopped", "no type")}
    outcome = Outcome(verdicts, 10, kills=2) + Outcome(more, 5, kills=1, exits=1)
    assert outcomes_text({"mine": outcome}, "statements").splitlines()[2:] == [
        "| mine | 15 | 3 | 1 | 4 | 1,200 | 1 | 2 | 1 | 0 |",
        "",
        "- mine: `s.b after phase 1` is wrong: 1 row too many; `s.c after phase 2` is stopped: no type.",
    ]


def test_differences_are_reported(db18: Database) -> None:
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY, n numeric, v text)",
        "INSERT INTO t VALUES (1, 0.10, ''), (2, 3, 'x')",
        "CREATE PUBLICATION p FOR TABLE t",
    )
    (table,) = query_published(db18.connection, "p")
    assert str(table) == "public.t"

    def verdict(*rows: tuple[str | None, ...]) -> str:
        return str(compare(db18.connection, table, [dict(zip(("id", "n", "v"), row, strict=False)) for row in rows]))

    assert verdict(("2", "3.0", "x"), ("1", "0.1", "")) == "right"
    assert verdict(("1", "0.1", ""), ("2", "3", None)) == "wrong: `v` is NULL, not `x`"
    assert verdict(("1", "5", ""), ("2", "4", "x")) == "wrong: `n` is `5`, not `0.1`; 2 such rows"
    assert verdict(("1", "0.1", "")) == "wrong: 1 row is missing"
    assert verdict(("1", "0.1", ""), ("2", "3", "x"), ("2", "3", "x")) == "wrong: 1 row too many"
    assert verdict(("1", "0.1", ""), ("2", "three", "x")) == "wrong: `n` is `three`, not `3`"


def _event(
    op: str, key: int | None, old_row: Any, new_row: Any, headers: dict[str, Any] | None = None, **more: str
) -> str:
    row: list[dict[str, Any]] = [{"field": "id", "type": "int32"}, {"field": "v", "type": "string"}]
    row += [{"field": "c", "type": "int32", "default": 7}] if new_row and "c" in new_row else []
    fields = [{"field": side, "fields": row} for side in ("before", "after")]
    source = {"schema": "s", "table": "t", **more}
    payload = {"op": op, "before": old_row, "after": new_row, "source": source}
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
    assert fold(events, is_informed=False) == {
        "s.t": [{"id": "2", "v": PLACEHOLDER}, {"id": "3", "v": "new", "c": "8"}]
    }
    assert fold(events, is_informed=True) == {
        "s.t": [{"id": "2", "v": "long", "c": "7"}, {"id": "3", "v": "new", "c": "8"}]
    }


def test_a_consumer_finds_rows_without_a_key_by_their_values() -> None:
    x, y = {"id": 1, "v": "x"}, {"id": 1, "v": "y"}
    events = [
        _event("c", None, None, x),
        _event("c", None, None, x),
        _event("u", None, x, y),
        _event("d", None, x, None),
    ]
    assert fold(events, is_informed=False) == {"s.t": [{"id": "1", "v": "y"}]}
    assert fold([*events, _event("t", None, None, None)], is_informed=False) == {"s.t": []}


def test_an_informed_consumer_drops_what_comes_again() -> None:
    x, y, z = ({"id": number, "v": "x"} for number in (1, 1, 2))
    sent = [
        _event("r", None, None, x, snapshot="first"),
        RESTART,
        _event("r", None, None, x, snapshot="first"),
        _event("c", None, None, y, sequence='["10", "11"]'),
        _event("c", None, None, y, sequence='["10", "11"]'),
        _event("c", None, None, z, sequence='["10", "12"]'),
        RESTART,
        _event("c", None, None, y, sequence='["10", "11"]'),
        _event("c", None, None, y, sequence='["10", "11"]'),
        _event("c", None, None, z, sequence='["10", "12"]'),
        _event("c", None, None, z, sequence='["10", "12"]'),
    ]
    ones, twos = {"id": "1", "v": "x"}, {"id": "2", "v": "x"}
    assert fold(sent, is_informed=True) == {"s.t": [ones, ones, ones, twos, twos]}
    assert len(fold(sent, is_informed=False)["s.t"]) == 9


def test_an_informed_consumer_finds_rows_by_another_key() -> None:
    def event(payload: dict[str, Any], v: str) -> str:
        _, *parts = _event("u", None, None, {"id": 1, "v": v}).split("\t")
        return "\t".join([json.dumps({"payload": payload}), *parts])

    sent = [event({"id": 1}, "x"), event({"id": 1, "v": "x"}, "x")]
    assert fold(sent, is_informed=True) == {"s.t": [{"id": "1", "v": "x"}]}
    assert len(fold(sent, is_informed=False)["s.t"]) == 2


def test_an_informed_consumer_has_the_columns_of_the_last_schema() -> None:
    sent = [
        _event("c", 1, None, {"id": 1, "v": "x", "c": 8}),
        _event("c", 2, None, {"id": 2, "v": "x"}),
        _event("c", 3, None, {"id": 3, "v": "x", "c": 9}),
    ]
    assert [row["c"] for row in fold(sent, is_informed=True)["s.t"]] == ["7", "7", "9"]
    assert [row.get("c") for row in fold(sent, is_informed=False)["s.t"]] == ["8", None, "9"]
