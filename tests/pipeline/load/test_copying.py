"""Copied rows in the stored table's columns: by compiled loops, and value by value, with the same result."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from logicalrep.observe.observer import Observers
from logicalrep.pipeline.config.mask_key import MaskKey
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.load import copying
from logicalrep.pipeline.load.copying import typed, typed_without_loops
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.values import ColumnValueError
from tests.pipeline.comparison import find_differences
from tests.pipeline.replicating import TABLES, settings
from tests.pipeline.typed_changes import TYPES, table_spec
from tests.postgres.servers import Database

_ESCAPES = {ord(char): f"\\{letter}" for char, letter in zip("\\\b\f\n\r\t\v", "\\bfnrtv", strict=True)}

Read = Callable[[Iterator[bytes], TableSpec, MaskKey | None], Iterator[pa.RecordBatch]]


def line(values: Sequence[str | None]) -> bytes:
    return ("\t".join("\\N" if value is None else value.translate(_ESCAPES) for value in values) + "\n").encode()


def result(read: Read, data: Sequence[bytes], table: TableSpec) -> str:
    """Return the rows, or the error, in words: no NaN equals another one, and Python's dates are too few."""
    try:
        rows = pa.Table.from_batches(read(iter(data), table, None), table.schema)
    except ColumnValueError as error:
        return str(error)
    texts = [column.combine_chunks().to_string(window=1000, container_window=1000) for column in rows.columns]
    return f"{rows.schema} {texts}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
def test_values_of_every_type_are_the_same_without_loops(kind: str) -> None:
    oid, modifier, texts = TYPES[kind]
    table = table_spec({"id": (23, -1), "v": (oid, modifier)}, ("id",))
    lines = [line([str(number), text]) for number, text in enumerate([None, *texts])]
    for data in (*([copy_line] for copy_line in lines), lines, []):
        assert result(typed_without_loops, data, table) == result(typed, data, table)


def test_escaped_characters_are_the_same_without_loops() -> None:
    table = table_spec({"id": (23, -1), "v": (25, -1), "w": (25, -1)}, ("id",))
    texts = ["".join(chars) for chars in itertools.product("\\\t\n\rN.ä\b", repeat=3)]
    lines = [line([str(number), text, None if number % 3 else text]) for number, text in enumerate(texts)]
    # The server does not escape these, and a reader takes them for themselves.
    lines.append(b"-1\t\\q\\.\t\\x41\n")
    assert result(typed_without_loops, lines, table) == result(typed, lines, table)
    (batch,) = typed_without_loops(iter(lines), table, None)
    assert batch.column("v").to_pylist() == [*texts, "q."]


@pytest.mark.parametrize("data", [b"1\t2", b"1\n", b"1\t2\t3\n", b"\n"])
def test_damaged_rows_are_refused(data: bytes) -> None:
    table = table_spec({"id": (23, -1), "v": (25, -1)}, ("id",))
    for read in (typed, typed_without_loops):
        with pytest.raises(ValueError, match="did not send rows of the columns"):
            list(read(iter([data]), table, None))


@pytest.mark.parametrize("is_compiled", [False, True])
def test_small_tables_are_loaded_without_loops_until_these_are_compiled(
    shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_compiled: bool
) -> None:
    used = []

    def read(name: str, own: Read) -> Read:
        return lambda *arguments: used.append(name) or own(*arguments)  # type: ignore[func-returns-value]

    monkeypatch.setattr(copying, "typed", read("loops", typed))
    monkeypatch.setattr(copying, "typed_without_loops", read("values", typed_without_loops))
    monkeypatch.setattr(copying, "are_loops_compiled", lambda: is_compiled)
    replicate_with(settings(shop, tmp_path, once=True), Observers(), engine=SequentialEngine())
    assert find_differences(shop.dsn, str(tmp_path), TABLES) == {}
    assert set(used) == {"loops" if is_compiled else "values"}
