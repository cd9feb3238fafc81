"""Copied rows in the stored table's columns: by native loops, and value by value, with the same result."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pyarrow as pa
import pytest

from logicalrep.arrow.table import loading
from logicalrep.pipeline.load.copying import typed
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.values import ColumnValueError
from tests.native.installed import needs_native
from tests.pipeline.typed_changes import TYPES, table_spec

_ESCAPES = {ord(char): f"\\{letter}" for char, letter in zip("\\\b\f\n\r\t\v", "\\bfnrtv", strict=True)}


def line(values: Sequence[str | None]) -> bytes:
    return ("\t".join("\\N" if value is None else value.translate(_ESCAPES) for value in values) + "\n").encode()


def result(data: Sequence[bytes], table: TableSpec) -> str:
    """Return the rows, or the error, in words: no NaN equals another one, and Python's dates are too few."""
    try:
        rows = pa.Table.from_batches(typed(iter(data), table, None), table.schema)
    except ColumnValueError as error:
        return str(error)
    texts = [column.combine_chunks().to_string(window=1000, container_window=1000) for column in rows.columns]
    return f"{rows.schema} {texts}"


@needs_native
@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
def test_values_of_every_type_are_the_same_without_native_loops(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    oid, modifier, texts = TYPES[kind]
    table = table_spec({"id": (23, -1), "v": (oid, modifier)}, ("id",))
    lines = [line([str(number), text]) for number, text in enumerate([None, *texts])]
    batches = [*([copy_line] for copy_line in lines), lines, []]
    results = [result(data, table) for data in batches]
    monkeypatch.setattr(loading, "native_module", lambda: None)
    assert [result(data, table) for data in batches] == results


def test_escaped_characters() -> None:
    table = table_spec({"id": (23, -1), "v": (25, -1), "w": (25, -1)}, ("id",))
    texts = ["".join(chars) for chars in itertools.product("\\\t\n\rN.ä\b", repeat=3)]
    lines = [line([str(number), text, None if number % 3 else text]) for number, text in enumerate(texts)]
    # The server does not escape these, and a reader takes them for themselves.
    lines.append(b"-1\t\\q\\.\t\\x41\n")
    (batch,) = typed(iter(lines), table, None)
    assert batch.column("v").to_pylist() == [*texts, "q."]
    assert batch.column("w").to_pylist() == [
        *(None if number % 3 else text for number, text in enumerate(texts)),
        "x41",
    ]


@pytest.mark.parametrize("data", [b"1\t2", b"1\n", b"1\t2\t3\n", b"\n"])
def test_damaged_rows_are_refused(data: bytes) -> None:
    table = table_spec({"id": (23, -1), "v": (25, -1)}, ("id",))
    with pytest.raises(ValueError, match="did not send rows of the columns"):
        list(typed(iter([data]), table, None))
