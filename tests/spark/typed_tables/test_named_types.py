"""A database's own types, whose names do not describe them: every way of reading asks the server's catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from logicalrep.arrow import committed_batches
from logicalrep.postgres.slots.slot import query_slot
from logicalrep.spark import snapshot, typed_table
from logicalrep.spark.options import read_options
from logicalrep.spark.peek import slot_range
from logicalrep.spark.peek.slot_range import read_slot
from tests.arrow.oracle.reading import row_by_row
from tests.postgres.servers import Database
from tests.spark.streams import Stream, table_schema

_VALUES = {
    "shapes shape[]": (r"'{(1\,1)\,(0\,0);(2\,2)\,(1\,1)}'", ["(1,1),(0,0)", "(2,2),(1,1)"]),
    "marks mark[]": ("'{A:B,C:\"D:E\":NULL}'", ["A", "B,C", "D:E", None]),
    "moods mood[]": ("'{sad,NULL}'", ["sad", None]),
    "odd _odd": ("'{a,b}'", "{a,b}"),
    "odds _odd[]": ("'{sad,\"{a,b}\"}'", ["sad", "{a,b}"]),
    "no_hstore own.hstore": ("'sad'", "sad"),
    "no_hstores own.hstore[]": ("'{sad}'", ["sad"]),
    "d of_odds": ("'{sad}'", ["sad"]),
}
_LONG = "a_name_of_a_type_that_is_as_long_as_names_can_be_which_is_63_ch"


def _prepare(db: Database) -> None:
    db.execute(
        "CREATE DOMAIN shape AS box",
        "CREATE TYPE mark",
        "CREATE FUNCTION mark_in(cstring) RETURNS mark LANGUAGE internal IMMUTABLE STRICT AS 'textin'",
        "CREATE FUNCTION mark_out(mark) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout'",
        "CREATE TYPE mark (INPUT = mark_in, OUTPUT = mark_out, LIKE = text, DELIMITER = ':')",
        "CREATE TYPE mood AS ENUM ('sad')",
        "CREATE TYPE _odd AS ENUM ('sad', '{a,b}')",
        "CREATE DOMAIN of_odds AS _odd[]",
        "CREATE SCHEMA own",
        "CREATE TYPE own.hstore AS ENUM ('sad')",
        f"CREATE TYPE {_LONG} AS ENUM ('sad')",
        f"CREATE TABLE t (id serial PRIMARY KEY, {', '.join(_VALUES)}, long {_LONG}[])",
        "CREATE PUBLICATION p FOR ALL TABLES",
    )


def _write(db: Database) -> None:
    db.execute(f"INSERT INTO t VALUES (DEFAULT, {', '.join(text for text, _ in _VALUES.values())}, '{{sad}}')")


_ROW = (*(value for _, value in _VALUES.values()), ["sad"])


def _own(rows: Any) -> list[tuple[Any, ...]]:
    return [tuple(row)[1:-5] for row in rows]


def test_every_way_to_read_a_table(spark: Any, db18: Database, tmp_path: Path) -> None:
    _prepare(db18)
    stream = Stream(spark, db18, tmp_path, table="t", mode="walsender", streaming="off")
    options = {name: stream.options[name] for name in ("dsn", "slot", "publication")}
    _write(db18)
    with snapshot(**options) as name:
        frame = spark.read.format("logicalrep").options(**options, table="t", snapshot=name).load()
        assert _own(frame.collect()) == [_ROW]
    _write(db18)
    assert _own(spark.read.format("logicalrep").options(**options, table="t").load().collect()) == [_ROW]
    feed = spark.read.format("logicalrep").options(**options).load()
    assert _own(feed.transform(typed_table("t", **options)).collect()) == [_ROW]
    stream.run()
    assert _own(stream.frame().collect()) == [_ROW]


@pytest.mark.parametrize("binary", ["false", "true"])
def test_in_columns_and_row_by_row(db: Database, binary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _prepare(db)
    db.execute("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
    expected = _ROW
    if binary == "true":
        # The dropped columns are arrays whose element type is never announced, as no other column has it, and marks,
        # which have no binary format.
        db.execute("ALTER TABLE t DROP shapes, DROP marks, DROP moods, DROP long")
        expected = _ROW[3:-1]
        db.execute("INSERT INTO t VALUES (DEFAULT, '{a,b}', '{sad,\"{a,b}\"}', 'sad', '{sad}', '{sad}')")
    else:
        _write(db)
    options = read_options({"dsn": db.dsn, "slot": "s", "publication": "p", "table": "t", "binary": binary})
    assert options.table is not None
    schema = table_schema(db.connection, options.table, options.publications)
    slot, feeds = query_slot(db.connection, "s"), []
    for read in (committed_batches, row_by_row):
        monkeypatch.setattr(slot_range, "committed_batches", read)
        rows = pa.Table.from_batches(list(read_slot(options, schema, slot.confirmed, slot.reached)))
        feeds.append(_own([row.values() for row in rows.to_pylist()]))
    assert feeds == [[expected]] * 2


def test_types_that_are_renamed_or_recreated_while_a_slot_waits(db18: Database) -> None:
    _prepare(db18)
    db18.execute("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
    _write(db18)
    db18.execute("ALTER TYPE mark RENAME TO signs")
    _write(db18)
    db18.execute(
        "ALTER TYPE mood RENAME TO old",
        "CREATE TYPE mood AS ENUM ('sad')",
        "ALTER TABLE t ALTER moods TYPE mood[] USING moods::text[]::mood[]",
        "DROP TYPE old",
    )
    _write(db18)
    options = read_options({"dsn": db18.dsn, "slot": "s", "publication": "p", "table": "t"})
    assert options.table is not None
    schema = table_schema(db18.connection, options.table, options.publications)
    slot = query_slot(db18.connection, "s")
    rows = pa.Table.from_batches(list(read_slot(options, schema, slot.confirmed, slot.reached)))
    assert _own([row.values() for row in rows.to_pylist()]) == [_ROW] * 3
