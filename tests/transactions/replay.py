"""Application of changes to empty tables, as a consumer of the feed would do."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Any

from logicalrep import Oid
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.changes import Change, Value
from logicalrep.transactions.relations import TableDescription
from logicalrep.values import Column, ColumnValueError, column_type
from logicalrep_protocol.v1 import NullValue
from tests.transactions.captured import final_state, header
from tests.transactions.truth import Assembled, assembled

Row = dict[str, Value]


class Tables:
    """Tables by OID, so that a rename has no effect."""

    def __init__(self, oids: Container[Oid]) -> None:
        self.oids = oids
        """The tables whose rows change only by changes in the feed."""
        self.relations: dict[Oid, TableDescription] = {}
        self.rows: dict[Oid, list[Row]] = {}

    def apply(self, changes: Iterable[Change]) -> None:
        """Apply changes in order; a row to be changed must exist."""
        for change in changes:
            if change.relation is None or change.relation.relation_id not in self.oids:
                continue
            self.relations[change.relation.relation_id] = change.relation
            rows = self.rows.setdefault(change.relation.relation_id, [])
            old_row, new_row = change.before, change.after
            if change.op == "truncate":
                rows.clear()
            elif change.op == "insert":
                assert new_row is not None
                rows.append(new_row)
            elif change.op == "delete":
                assert old_row is not None
                del rows[_find(rows, old_row)]
            else:
                assert new_row is not None
                at = _find(rows, old_row or {name: new_row[name] for name in change.key})
                kept = {name: rows[at][name] for name in change.unchanged}
                rows[at] = new_row | kept


def _find(rows: list[Row], identity: Row) -> int:
    # The changed row is mostly one of the last.
    assert identity, "nothing identifies the row"
    for at in range(len(rows) - 1, -1, -1):
        row = rows[at]
        if all(row.get(name, _NULL) == value for name, value in identity.items()):
            return at
    raise AssertionError(f"no row has {identity}")


_NULL = NullValue()


def is_complete(path: Path) -> bool:
    """Return whether a capture has all changes to its publications' tables."""
    facts = header(path)
    return facts["mode"] == "end" and "part" not in facts and facts["options"].get("origin") != "none"


def replayable(path: Path) -> set[Oid]:
    """Return the tables of a capture's publications whose final rows follow from the changes alone."""
    publications = final_state(path.parent)["publications"]
    return {
        table["oid"]
        for publication in header(path)["publications"]
        for table in publications.get(publication, [])
        if table["replayable"]
    }


def check_final_tables(path: Path) -> int:
    """Check that replaying a capture gives the final tables. Returns the number of tables compared."""
    with Assembler() as assembler:
        out = assembled(path, assembler)
    tables = Tables(replayable(path))
    for event in out:
        if isinstance(event, Assembled):
            tables.apply(event.changes)
    return compare(tables, path)


def compare(tables: Tables, path: Path) -> int:
    """Check that a capture's published tables have their final state. Returns the number of tables compared."""
    facts = header(path)
    state = final_state(path.parent)
    if facts["session"] != state["session"]:
        return 0
    encoding = {"UTF8": "utf-8", "LATIN1": "iso8859-1"}[facts["client_encoding"]]
    compared = 0
    for publication in facts["publications"]:
        if publication == "pub_leaf" and "pub_root" in facts["publications"]:
            continue
        for table in state["publications"].get(publication, []):
            if table["replayable"]:
                _compare_table(tables, table, encoding)
                compared += 1
    return compared


def _compare_table(tables: Tables, table: dict[str, Any], encoding: str) -> None:
    rows = tables.rows.get(table["oid"], [])
    assert len(rows) == table["rows"]
    if not rows:
        return
    relation = tables.relations[table["oid"]]
    names = [column["name"] for column in table["columns"]]
    expected: list[list[str | None]] = list(csv_rows(table["csv"])) if names else []
    ours = [[_comparable(relation, name, row.get(name, _NULL), encoding) for name in names] for row in rows]
    has_binary = any(row.get(name, _NULL).kind == "b" for row in rows for name in names)
    if not has_binary:
        assert sorted(map(_order, ours)) == sorted(map(_order, expected if names else ours))
        return
    theirs = [[_as_loaded(relation, name, text) for name, text in zip(names, row, strict=True)] for row in expected]
    opaque = {at for row in ours for at, value in enumerate(row) if value is _OPAQUE}
    opaque |= {at for at, name in enumerate(names) if name in relation.names and _is_name_of_object(relation, name)}
    loaded = [
        [
            value if value is None or row.get(name, _NULL).kind == "b" else _as_loaded(relation, name, value)
            for name, value in zip(names, values, strict=True)
        ]
        for row, values in zip(rows, ours, strict=True)
    ]
    without = [[value for at, value in enumerate(row) if at not in opaque] for row in loaded]
    assert sorted(map(_order, without)) == sorted(
        _order([value for at, value in enumerate(row) if at not in opaque]) for row in theirs
    )


_OPAQUE = "a binary format that nothing reads"


def _comparable(relation: TableDescription, name: str, value: Value, encoding: str) -> str | None:
    if isinstance(value, NullValue):
        return None
    if value.kind == "t":
        return value.value.decode(encoding)
    try:
        return repr(_column(relation, name).load("b", value.value))
    except ColumnValueError:
        return _OPAQUE


def _as_loaded(relation: TableDescription, name: str, text: str | None) -> str | None:
    if text is None:
        return None
    return repr(_column(relation, name).load("t", text.encode()))


def _is_name_of_object(relation: TableDescription, name: str) -> bool:
    return _column(relation, name).type.name.startswith("reg")


def _column(relation: TableDescription, name: str) -> Column:
    column = relation.columns[relation.names.index(name)]
    types = {type_.type_id: type_ for type_ in relation.types if type_ is not None}
    return Column(name, column_type(column.type_id, column.type_modifier, types), str(relation))


def _order(row: list[str | None]) -> list[tuple[bool, str]]:
    return [(value is None, value or "") for value in row]


def csv_rows(text: str) -> Iterator[list[str | None]]:
    """Yield the rows of COPY's CSV, where an empty field without quotes is NULL."""
    row: list[str | None] = []
    offset = 0
    while offset < len(text):
        if text[offset] == '"':
            end = offset + 1
            while True:
                end = text.index('"', end)
                if text[end : end + 2] != '""':
                    break
                end += 2
            row.append(text[offset + 1 : end].replace('""', '"'))
            offset = end + 1
        else:
            end = min(at for at in (text.find(",", offset), text.find("\n", offset)) if at >= 0)
            row.append(text[offset:end] or None)
            offset = end
        if text[offset] == "\n":
            yield row
            row = []
        offset += 1
        if text[offset - 1] == "," and offset < len(text) and text[offset] == "\n":
            row.append(None)
            yield row
            row = []
            offset += 1
