"""The tables that readers read: replicated from a server, in each format and write mode, with their expected rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.feather as feather
from deltalake import DeltaTable
from psycopg import sql
from pyiceberg.table import StaticTable

import logicalrep
from bench.readers.feed import changes_between
from bench.readers.reading import Table
from logicalrep.observe.observer import Observers
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.verify.verifying import verify
from logicalrep.postgres.connection import ConnectionSettings
from tests.values.value_literals import EXTENSION_LITERALS, LITERALS

_LIMITS = Limits(small_file_bytes=1, marked_share=1)
"""Each commit has a file that stays, and rows are marked also in small files."""
_FILES, _ROWS = 8, 3
"""The files of each table, and the rows of each file; the last file has only nulls."""

_LONG = "x" * 32
_EDGES: Mapping[str, Sequence[str]] = {
    "smallint": ["-1", "1", "255", "-256"],
    "integer": ["-1", "0", "1", "65536"],
    "bigint": ["-1", "0", "4294967296"],
    "real": ["-1.5", "3", "-3.4028235e+38"],
    "double precision": ["-1.5", "3", "-1.7976931348623157e+308"],
    "numeric(10,2)": ["-0.01", "0.00", "0.10", "-99999999.99", "99999999.99"],
    "numeric(38,10)": [
        "-9999999999999999999999999999.9999999999",
        "-0.0000000001",
        "0",
        "1e10",
        "12345678901234567890.5",
    ],
    "numeric(18,0)": ["-999999999999999999", "-1", "0", "256"],
    "text": [
        "",
        " ",
        "a'b",
        'a"b',
        "a\\b",
        "a\nb",
        "%",
        f"{_LONG}a",
        f"{_LONG}b",
        f"{_LONG}\U0010ffff",
        "é",
        "\U0001f600" * 40,
    ],
    "bytea": ["\\x", "\\x00", "\\x7f", "\\x80", "\\xff", "\\x" + "ff" * 40, "\\x" + "61" * 40 + "00"],
    "uuid": [
        "00000000-0000-0000-0000-000000000000",
        "7fffffff-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
    ],
    "date": [
        "0001-01-01",
        "1582-10-04",
        "1582-10-15",
        "1899-12-31",
        "1969-12-31",
        "1970-01-01",
        "2026-02-28",
        "9999-12-31",
    ],
    "timestamp without time zone": [
        "0001-01-01 00:00:00",
        "1582-10-04 12:00:00.000001",
        "1677-09-21 00:12:43",
        "1900-01-01 00:00:00",
        "1969-12-31 23:59:59.999999",
        "1970-01-01 00:00:00",
        "2026-03-29 02:30:00",
        "2262-04-12 00:00:00",
        "9999-12-31 23:59:59.999999",
    ],
    "date_far": ["4713-01-01 BC", "0001-01-01", "2026-02-28", "10000-01-01", "5874897-12-31"],
    "timestamp_far": ["4713-01-01 00:00:00 BC", "0001-01-01 00:00:00", "10000-01-01 00:00:00", "294246-01-01 00:00:00"],
    "bigint[]": ["{}", "{1,NULL}", "{-1}"],
    "date[]": ["{1582-10-04,NULL}", "{2026-02-28}"],
    "mood": ["sad", "ok", "happy"],
    "small": ["-5", "0", "5"],
}
"""Values at the edges of statistics, by type; a name with `_far` is a column of dates that few programs can hold."""
_EDGES_OF = {"timestamp with time zone": "timestamp without time zone", "timestamptz_far": "timestamp_far"}
_FAR = {"date_far": "date", "timestamp_far": "timestamp", "timestamptz_far": "timestamptz"}
_SETUP = "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy'); CREATE DOMAIN small AS int CHECK (VALUE BETWEEN -9 AND 9)"
_TIMES = {"date", "timestamp without time zone", "timestamp with time zone"}
_STORED_TYPES = (
    "boolean", "smallint", "integer", "bigint", "real", "double precision", "numeric(10,2)", "numeric(18,0)",
    "numeric(38,10)", "text", "bytea", "uuid", "date", "timestamp without time zone", "timestamp with time zone",
    "integer[]", "point",
)  # fmt: skip
"""One type of PostgreSQL for each type of a stored column."""
_PARTITIONS = {
    "by_text": "text", "by_int": "integer", "by_bool": "boolean", "by_date": "date",
    "by_day": "day(timestamp_with_time_zone)", "by_month": "month(timestamp_without_time_zone)",
    "by_bucket": "bucket(4, text)",
}  # fmt: skip
_FED = "fed"
"""The table with a change data feed."""
_UNFIT = ("numeric(10,2)", "integer[]")
"""Types with values that do not fit: replicate adds a column for their texts, and some readers refuse such a feed."""


@dataclass(frozen=True)
class _Lake:
    """A destination."""

    folder: Path
    options: Mapping[str, Any]


def make_tables(dsn: str, folder: Path) -> list[Table]:
    """Create tables on a server, replicate them to destinations in a folder, and return all versions to read."""
    lakes = [
        _Lake(folder / f"{format_}-{mode}", {"format": format_, "write_mode": mode})
        for format_ in ("delta", "iceberg")
        for mode in ("copy-on-write", "merge-on-read")
    ]
    newest = _Lake(folder / "iceberg-3", {"format": "iceberg", "write_mode": "merge-on-read", "format_version": 3})
    with psycopg.connect(dsn, autocommit=True, options="-c search_path=public -c TimeZone=UTC") as connection:
        connection.execute(_SETUP)
        texts = {name: values for name, values in _texts(connection).items() if values}
        columns = {
            "types": [name for name in texts if name not in _FAR],
            "far": list(_FAR),
            "changed": list(_STORED_TYPES),
        }
        columns[_FED] = [name for name in _STORED_TYPES if name not in _UNFIT]
        columns |= {name: sorted({"text", *_partition_columns(by)}) for name, by in _PARTITIONS.items()}
        for table, names in columns.items():
            _create(connection, table, names)
        fed = [_Fed(lake) for lake in lakes if lake.options["format"] == "delta"]
        for number in range(_FILES):
            for table, names in columns.items():
                _insert(connection, table, names, texts, number)
            _replicate(dsn, [*lakes, newest])
            for versions in fed:
                versions.add()
        past = list(_versions(lakes[1::2], "changed", "past", is_last=False))
        _change(connection)
        _replicate(dsn, [*lakes, newest])
        for versions in fed:
            versions.add()
    _verify(dsn, [*lakes, newest])
    copied, marked = lakes[::2], lakes[1::2]
    return [
        *_versions(copied, "types", "types"),
        *_versions(copied, "far", "types"),
        *_versions(copied, "changed", "changed"),
        *_versions(marked, "changed", "marked"),
        *chain.from_iterable(_versions(copied, name, "partitions") for name in _PARTITIONS),
        *past,
        *(versions.table() for versions in fed),
        *_versions([newest], "types", "version 3"),
        *_versions([newest], "changed", "version 3"),
    ]


def _partition_columns(by: str) -> list[str]:
    names = {_column(name): name for name in _STORED_TYPES}
    return [names[match] for match in re.findall(r"\w+", by) if match in names]


def _texts(connection: psycopg.Connection[Any]) -> dict[str, list[str]]:
    """Return the texts of each type that the server accepts, in ascending order."""
    texts: dict[str, list[str]] = {}
    for literal in [*LITERALS, *EXTENSION_LITERALS]:
        if literal.name in _TIMES and not 1 <= getattr(literal.value, "year", 0) <= 9999:
            continue
        texts.setdefault(literal.name, []).append(literal.text)
    for name, values in _EDGES.items():
        texts.setdefault(name, []).extend(values)
    for name, name_of_edges in _EDGES_OF.items():
        texts.setdefault(name, []).extend(_EDGES[name_of_edges])
    return {name: _ordered(connection, _FAR.get(name, name), values) for name, values in texts.items()}


def _ordered(connection: psycopg.Connection[Any], type_: str, values: Sequence[str]) -> list[str]:
    accepted = []
    for value in dict.fromkeys(values):
        try:
            connection.execute(f"SELECT %s::{type_}", (value,))
        except psycopg.Error:
            continue
        accepted.append(value)
    try:
        rows = connection.execute(f"SELECT v FROM unnest(%s::text[]) AS v ORDER BY v::{type_}", (accepted,))
        return [value for (value,) in rows]
    except psycopg.Error:
        return accepted


def _column(type_: str) -> str:
    return re.sub(r"\W+", "_", type_.replace("[]", "_array")).strip("_")


def _create(connection: psycopg.Connection[Any], table: str, names: Sequence[str]) -> None:
    columns = ", ".join(f'"{_column(name)}" {_FAR.get(name, name)}' for name in names)
    connection.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, note text, {columns})")


def _insert(
    connection: psycopg.Connection[Any], table: str, names: Sequence[str], texts: Mapping[str, Sequence[str]], file: int
) -> None:
    for row in range(file * _ROWS, (file + 1) * _ROWS):
        values: list[str | None] = []
        for name in names:
            choices = [text for text in texts[name] if text or not table.startswith("by_")]
            number = row * len(choices) // (_ROWS * (_FILES - 1))
            values.append(choices[number] if number < len(choices) else None)
        columns = [sql.Identifier(_column(name)) for name in names]
        casts = [sql.SQL(f"%s::{_FAR.get(name, name)}") for name in names]
        statement = sql.SQL("INSERT INTO {} (id, note, {}) VALUES ({}, 'as inserted', {})").format(
            sql.Identifier(table), sql.SQL(", ").join(columns), row, sql.SQL(", ").join(casts)
        )
        connection.execute(statement, values)


def _change(connection: psycopg.Connection[Any]) -> None:
    """Delete and update a row of each file, add a column, and rename a column."""
    for statement in (
        f"DELETE FROM changed WHERE id % {_ROWS} = 0",
        f"UPDATE changed SET note = 'changed', bigint = 77 WHERE id % {_ROWS} = 1 AND id < {_ROWS * 4}",
        "ALTER TABLE changed ADD COLUMN added int",
        "ALTER TABLE changed ADD COLUMN added_text text DEFAULT 'default'",
        "ALTER TABLE changed RENAME COLUMN boolean TO flag",
        "INSERT INTO changed (id, note, integer, added) VALUES (1000, 'added', 5, 5), (1001, NULL, NULL, -5)",
        f"DELETE FROM {_FED} WHERE id % {_ROWS} = 0 AND id > {_ROWS}",
        f"UPDATE {_FED} SET note = NULL, real = -real, text = '' WHERE id % {_ROWS} = 1",
        f"UPDATE {_FED} SET id = 1000 WHERE id = 0",
        f"UPDATE {_FED} SET note = 'changed twice' WHERE id IN (1, 1000)",
        f"INSERT INTO {_FED} (id, note) VALUES (1001, 'added')",
    ):
        connection.execute(statement)


class _Fed:
    """The versions of the table with a change data feed in one destination, with their rows."""

    def __init__(self, lake: _Lake) -> None:
        self._lake, self._uri = lake, str(lake.folder / "public" / _FED)
        self._versions: list[tuple[int, pa.Table]] = []

    def add(self) -> None:
        # Merges of files may follow the commit of the rows.
        history = DeltaTable(self._uri).history()
        version = next(commit["version"] for commit in history if commit["operation"] == "REPLICATE")
        self._versions.append((version, logicalrep.read(self._lake.folder, _FED).arrow()))

    def table(self) -> Table:
        """Return the table of the changes between all versions."""
        path = self._lake.folder / f"{_FED}-changes.feather"
        changes = [changes_between(old, new, number) for (_, old), (number, new) in pairwise(self._versions)]
        feather.write_feather(pa.concat_tables(changes), path)
        (first, _), *_, (last, _) = self._versions
        return Table(_FED, "changes", "delta", self._uri, str(path), last, is_last=True, first=first + 1)


def _replicate(dsn: str, lakes: Sequence[_Lake]) -> None:
    partitions = {f"public.{name}": {"partition_by": by} for name, by in _PARTITIONS.items()}
    for lake in lakes:
        # Only Delta has a feed.
        feed = {f"public.{_FED}": {"change_data_feed": True}} if lake.options["format"] == "delta" else {}
        settings = ReplicateSettings(
            dsn,
            str(lake.folder),
            once=True,
            unrepresentable="text",
            config={"tables": {**partitions, **feed}},
            **lake.options,
        )
        replicate_with(settings, Observers(), engine=SequentialEngine(), limits=_LIMITS)


def _verify(dsn: str, lakes: Sequence[_Lake]) -> None:
    """Raise RuntimeError unless all tables have the server's rows."""
    for lake in lakes:
        for verdict in verify(ConnectionSettings(dsn), Storage(str(lake.folder))):
            if verdict.result != "equal":
                raise RuntimeError(f"{lake.folder.name}: {verdict}")


def _versions(lakes: Sequence[_Lake], name: str, feature: str, *, is_last: bool = True) -> Iterator[Table]:
    for lake in lakes:
        version = logicalrep.read(lake.folder, name)
        path = lake.folder / f"{name}-{feature}.feather"
        feather.write_feather(version.arrow(), path)
        number, metadata = version.version, ""
        if lake.options["format"] == "iceberg":
            metadata = str(lake.folder / "public" / name / "metadata" / f"v{number}.metadata.json")
            number = StaticTable.from_metadata(metadata).metadata.current_snapshot_id
        yield Table(
            name=name,
            feature=feature,
            format=lake.options["format"],
            uri=str(lake.folder / "public" / name),
            rows=str(path),
            version=number,
            is_last=is_last,
            metadata=metadata,
        )


__all__ = ["make_tables"]
