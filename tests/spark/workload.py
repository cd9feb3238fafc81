"""A test's database workload, with every kind of change, and the truth to compare a stream with."""

from __future__ import annotations

from collections import defaultdict
from itertools import zip_longest
from typing import Any

import psycopg

from conformance.rows import TABLES
from logicalrep import Lsn
from logicalrep.postgres.peek import peek
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.server import newest_protocol
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.transactions.change_feed import change_rows
from tests.postgres.servers import Database
from tests.transactions.plugin_text import UNCHANGED, PluginChange, PluginTransaction, events_of
from tests.transactions.truth import resolved
from tests.values.value_literals import LITERALS, Literal

_PUBLICATION = "CREATE PUBLICATION p FOR ALL TABLES;\n"


def prepare(db: Database, *slots: str, more: str = "") -> None:
    """Create the tables and the tables of `more`, the publication, and slots that all start at the same position."""
    for statement in (TABLES + _PUBLICATION + more).strip().split(";\n"):
        db.execute(statement.rstrip(";\n"))
    for slot in slots:
        create_slot(db.connection, slot)


def every_type(db: Database) -> tuple[dict[str, str], list[tuple[str | None, ...]]]:
    """Return a column of each type by name, and rows with all values of all types."""
    texts: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for literal in LITERALS:
        texts[literal.oid, literal.modifier] += [literal.text] if _is_known(db, literal) else []
    types = [str(db.value(f"SELECT format_type({oid}, {modifier})")) for oid, modifier in texts]
    return {f"c{number}": type_ for number, type_ in enumerate(types)}, list(zip_longest(*texts.values()))


def _is_known(db: Database, literal: Literal) -> bool:
    """Return whether the server has a type's value: infinite intervals need PostgreSQL 17, xml a build with it."""
    try:
        type_ = db.value(f"SELECT format_type({literal.oid}, {literal.modifier})")
        db.connection.execute(f"SELECT %s::{type_}", (literal.text,))
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.DatetimeFieldOverflow, psycopg.errors.DataError):
        return False
    return True


def truth(db: Database, slot: str, publication: str = "p") -> list[dict[str, Any]]:
    """Return the changes of another slot as rows of the feed, read whole and without Spark."""
    options = PluginOptions(publication_names=(publication,), proto_version=newest_protocol(db.connection))
    return [_comparable(row) for row in change_rows(peek(db.connection, slot, options), options.decoder())]


def feed_rows(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a feed in order, in the same form."""
    rows = frame.orderBy("commit_lsn", "ordinal").collect()
    return [_comparable(row.asDict(recursive=True)) for row in rows]


def _comparable(row: dict[str, Any]) -> dict[str, Any]:
    names = ("op", "schema", "table", "relation_id", "before", "after", "key", "unchanged", "xid", "ordinal", "origin")
    kept = {name: row[name] for name in names}
    commit_lsn = row["commit_lsn"]
    kept["commit_lsn"] = int(Lsn(commit_lsn)) if isinstance(commit_lsn, str) else commit_lsn
    kept["key"], kept["unchanged"] = list(row["key"]), list(row["unchanged"])
    return kept


def replayed(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the tables that the changes make from empty ones, as sorted rows."""
    tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        table = tables[row["table"]]
        if row["op"] == "insert":
            table.append(dict(row["after"]))
        elif row["op"] == "truncate":
            table.clear()
        else:
            after = row["after"] or {}
            identity = row["before"] or {name: after[name] for name in row["key"]}
            index = next(at for at, values in enumerate(table) if identity.items() <= values.items())
            if row["op"] == "delete":
                del table[index]
            else:
                table[index] = table[index] | after
    return {name: sorted(rows, key=_in_order) for name, rows in tables.items() if rows}


def _in_order(row: dict[str, Any]) -> str:
    return repr(sorted(row.items()))


def tables(db: Database) -> dict[str, list[dict[str, Any]]]:
    """Return the tables with every value as text."""
    rows_by_table = {}
    for (name,) in db.rows("SELECT tablename FROM pg_publication_tables WHERE pubname = 'p'"):
        columns = [
            column
            for (column,) in db.connection.execute(
                "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(quote_ident(%s)) AND attnum > 0 "
                "AND NOT attisdropped ORDER BY attnum",
                (name,),
            )
        ]
        quoted = ", ".join(_text(column) for column in columns)
        rows = db.rows(f"SELECT {quoted} FROM {_quoted(str(name))}")
        if rows:
            rows_by_table[str(name)] = sorted((dict(zip(columns, row, strict=True)) for row in rows), key=_in_order)
    return rows_by_table


def _text(column: str) -> str:
    # The server's form: a cast would strip blanks of character(n), and spell booleans out.
    quoted = _quoted(column)
    return f"CASE num_nonnulls({quoted}) WHEN 1 THEN format('%s', {quoted}) END"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def told(db: Database, slot: str) -> list[tuple[int, PluginChange]]:
    """Return the changes that the plugin test_decoding sends for the same WAL, each with its transaction.

    It marks values that were not logged, also those in the old row.
    """
    query = "SELECT lsn, data FROM pg_logical_slot_peek_changes(%s, NULL, NULL, 'include-timestamp', 'on')"
    lines = [{"lsn": str(lsn), "text": text} for lsn, text in db.connection.execute(query, (slot,))]
    return [
        (event.xid, change._replace(lsn="", new=None if change.new is None else resolved(change.new, change.old)))
        for event in events_of(lines)
        if isinstance(event, PluginTransaction)
        for change in event.changes
    ]


def as_told(row: dict[str, Any]) -> tuple[int, PluginChange]:
    """Return a row of the feed in the same form, with old rows without NULLs."""
    old, new = row["before"], row["after"]
    if old is not None:
        old = {name: value for name, value in old.items() if value is not None}
    if new is not None:
        new = new | dict.fromkeys(row["unchanged"], UNCHANGED)
    return row["xid"], PluginChange(row["op"], "", row["schema"], row["table"], old, new)
