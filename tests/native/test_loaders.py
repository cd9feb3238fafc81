"""The native loaders of values: they read what the types' own loaders read, and no memory but the caller's."""

from __future__ import annotations

import calendar
import datetime
import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from logicalrep.arrow.table import loading
from logicalrep.arrow.table.columns import LocatedValues, PresentRows, RowReader, Rows
from logicalrep.arrow.table.native_columns import COLUMN, NativeColumn
from logicalrep.transactions.errors import TooLargeError
from logicalrep.values import Column, column_type
from logicalrep.values.native_loaders import NativeLoader
from logicalrep_runtime.native import native_module
from tests.native.installed import needs_native

pytestmark = needs_native

_TEXT, _BINARY, _NULL = b"tbn"
_LETTERS = [bytes([byte]) for byte in b"0123456789-+.:TtfxagAGN \\/'\0\x7f\x80\xc3\xff"]
TYPES = {
    "smallint": (21, -1, "0 -1 32767 -32768 007 1234567 -00000000000000001"),
    "integer": (23, -1, "0 -1 12345678 123456789 2147483647 -2147483648 1234567890123456"),
    "bigint": (20, -1, "0 -1 99999999 12345678901234567 999999999999999999 9223372036854775807 -9223372036854775808"),
    "oid": (26, -1, "0 1 4294967295 4294967296"),
    "boolean": (16, -1, "t f"),
    "real": (700, -1, "0 -0 0.1 16777216 16777217 3.4028235e+38 0.0000000001 NaN"),
    "double": (701, -1, "0 -0 0.1 9007199254740993 -1.5 0.0000000000000000000001 1e400 Infinity"),
    "numeric(10,2)": (1700, 655366, "0.00 -0.01 12345678.90 99999999.99 1.5 1 NaN"),
    "numeric(20,10)": (1700, (20 << 16) + 14, "1.0000000000 9999999999.9999999999 -0.5"),
    "numeric(18,8)": (1700, (18 << 16) + 12, "0.00000001 -1234567.12345678 9999999.99999999"),
    "numeric": (1700, -1, "0 -0.5 1234567.890123456789 10 00 1" + 32 * "0" + ".5 NaN"),
    "date": (1082, -1, "2000-02-29 1900-02-28 0001-01-01 9999-12-31 infinity 10000-01-01"),
    "timestamp": (1114, -1, "2024-02-29_23:59:59.999999 0001-01-01_00:00:00 9999-12-31_23:59:59.9 infinity"),
    "timestamptz": (1184, -1, "2024-02-29_23:59:59.999999+00 2024-01-01_00:00:00-05 2024-01-01_00:00:00+05:30"),
    "text": (25, -1, "a größe 🙂🙂 " + 63 * "b" + " " + 64 * "c" + " " + 65 * "d"),
    "uuid": (2950, -1, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11 A0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "bytea": (17, -1, "\\x \\x00 \\x0123456789abcdef \\x0123456789abcdef01 \\x0g \\x0 \\\\ \\xAB"),
}


def read(reader: RowReader, values: Sequence[bytes], kinds: bytes) -> tuple[Rows, Rows, set[int]]:
    """Return the rows of a column by the native loaders and by its type, and the rows that the native loaders leave.

    The values are in memory that begins with the first and ends with the last, so that sanitizers see other reads.
    """
    data = np.array(list(b"".join(values)), np.uint8)
    lengths = np.array([len(value) for value in values], np.uint32)
    cells = LocatedValues(data, np.frombuffer(kinds, np.uint8), np.cumsum(lengths, dtype=np.int64) - lengths, lengths)
    rows = np.arange(len(values), dtype=np.int64)
    present = PresentRows(cells, len(values), rows, rows, rows, rows)
    (loaded,) = loading.loaded_natively(native_module(), data, [(reader, present)])
    unread_rows = set(loaded.leftover.get(0, np.empty(0, np.int64)).tolist())
    return reader.rows(present, loaded), reader.rows(present, loading.left_to_types(reader, present)), unread_rows


def readers(type_oid: int, modifier: int) -> list[RowReader]:
    column = Column("c", column_type(type_oid, modifier))
    return [RowReader([column], [True], for_spark=for_spark) for for_spark in (False, True)]


def check(reader: RowReader, values: Sequence[bytes], kinds: bytes) -> int:
    """Return the number of values that the native loaders read."""
    native, plain, unread_rows = read(reader, values, kinds)
    native.values.validate(full=True)
    assert native.values.schema == plain.values.schema
    assert native.states.equals(plain.states)
    assert native.unfit == plain.unfit
    ours, theirs = native.values.column(0), plain.values.column(0)
    if pa.types.is_floating(ours.type):
        # As bits, NaN equals NaN, and -0 does not equal 0.
        bits = pa.int32() if ours.type == pa.float32() else pa.int64()
        ours, theirs = ours.view(bits), theirs.view(bits)
    assert ours.equals(theirs)
    return sum(kind in (_TEXT, _BINARY) and row not in unread_rows for row, kind in enumerate(kinds))


def changed(value: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.choice((0, 0, 1, 1, 2))):
        at = chance.randrange(len(value) + 1)
        value = value[:at] + chance.choice([b"", *_LETTERS]) + value[at + chance.randrange(2) :]
    return value


def texts_of(name: str) -> list[bytes]:
    return [text.replace("_", " ").encode() for text in TYPES[name][2].split()]


@pytest.mark.parametrize("name", TYPES)
def test_changed_values_are_read_as_their_types_read_them(name: str) -> None:
    chance = random.Random(name)
    samples, loaded = texts_of(name), 0
    for reader in readers(*TYPES[name][:2]):
        for _ in range(12):
            values = [changed(chance.choice(samples), chance) for _ in range(chance.randrange(1, 80))]
            kinds = bytes(chance.choices((_TEXT, _NULL), (9, 1), k=len(values)))
            loaded += check(reader, values, kinds)
    assert loaded > 100


@pytest.mark.parametrize("name", TYPES)
def test_values_in_binary_format(name: str) -> None:
    chance = random.Random(name)
    for reader in readers(*TYPES[name][:2]):
        values = [chance.randbytes(chance.choice((0, 1, 1, 2, 4, 8, 16))) for _ in range(200)]
        values += [bytes([0]), bytes([1]), bytes([2])]
        check(reader, values, bytes([_BINARY]) * len(values))


@pytest.mark.parametrize("name", TYPES)
def test_a_value_alone_in_its_memory(name: str) -> None:
    chance = random.Random(name)
    for reader in readers(*TYPES[name][:2]):
        for sample in texts_of(name):
            check(reader, [sample], bytes([_TEXT]))
            check(reader, [changed(sample, chance)], bytes([_TEXT]))
            check(reader, [sample[: chance.randrange(len(sample))]], bytes([_TEXT]))


@pytest.mark.parametrize("offset", [0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65])
def test_values_near_both_ends_of_the_data(offset: int) -> None:
    for name, (type_oid, modifier, _) in TYPES.items():
        for reader in readers(type_oid, modifier)[1:]:
            for sample in texts_of(name):
                check(reader, [b"x" * offset, sample, b"x" * (64 - offset)], bytes([_NULL, _TEXT, _NULL]))


def test_all_ends_of_months() -> None:
    reader = readers(1082, -1)[1]
    texts, expected = [], []
    for year, month in itertools.product(range(1, 10_000), range(1, 13)):
        last = calendar.monthrange(year, month)[1]
        texts += [f"{year:04}-{month:02}-{last}".encode(), f"{year:04}-{month:02}-{last + 1}".encode()]
        expected.append(datetime.date(year, month, last).toordinal() - 719_163)
    data = np.frombuffer(b"".join(texts), np.uint8)
    rows = np.arange(len(texts))
    cells = LocatedValues(data, np.full(len(texts), _TEXT, np.uint8), 10 * rows, np.full(len(texts), 10, np.uint32))
    present = PresentRows(cells, len(texts), rows, rows, rows, rows)
    (loaded,) = loading.loaded_natively(native_module(), data, [(reader, present)])
    assert loaded.leftover[0].tolist() == rows[1::2].tolist()
    assert loaded.arrays[0].cast("int32").to_numpy()[::2].tolist() == expected


def test_dates_and_months_that_do_not_exist() -> None:
    for reader in readers(1082, -1):
        days = [
            f"{year}-{month:02}-{day:02}"
            for year in ("0000", "2023", "2024")
            for month in (0, 2, 13, 16, 99)
            for day in (0, 1, 31, 99)
        ]
        check(reader, [day.encode() for day in days], bytes([_TEXT]) * len(days))


def test_zones() -> None:
    moments = [
        "0001-01-01 00:00:00",
        "0001-01-01 15:00:00.5",
        "2024-02-29 12:34:56.789",
        "9999-12-31 23:59:59.999999",
        "9999-12-31 08:00:00",
    ]
    zones = [f"{sign}{hours:02}" for sign in "+-" for hours in range(18)] + [
        "+5",
        "+0x",
        " 00",
        "+05:30",
        "-00:00:01",
        "00",
        "",
    ]
    texts = [(moment + zone).encode() for moment in moments for zone in zones]
    for reader in readers(1184, -1):
        assert check(reader, texts, bytes([_TEXT]) * len(texts)) > 100


def test_texts_across_the_blocks_of_the_utf8_check() -> None:
    chance = random.Random(1)
    (reader, _) = readers(25, -1)
    pieces = ["a" * 30, "ä", "€", "🙂", "\x7f", ""]
    for _ in range(60):
        texts = ["".join(chance.choices(pieces, k=chance.randrange(6))).encode() for _ in range(20)]
        damaged = bytearray(texts[0] + b"x")
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        check(reader, [*texts, bytes(damaged), *texts], bytes([_TEXT]) * 41)


@pytest.mark.parametrize("is_native", [False, True])
def test_a_column_of_more_text_than_its_offsets_count_is_refused(
    is_native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_native:
        monkeypatch.setattr(loading, "native_module", lambda: None)
    (reader, _) = readers(25, -1)
    rows = np.arange(1)
    cells = LocatedValues(np.zeros(1, np.uint8), np.full(1, _TEXT, np.uint8), rows, np.array([1 << 31], np.uint32))
    with pytest.raises(TooLargeError):
        loading.load(cells.data, [(reader, PresentRows(cells, 1, rows, rows, rows, rows))])


# --- a caller's memory -------------------------------------------------------------------------------------------


def _arguments() -> dict[str, Any]:
    """Return the arguments of a load of two columns of three rows: an integer and a text."""
    fields = dict.fromkeys(NativeColumn._fields, 0) | {"width": 4, "having": 3, "changes": 3}
    columns = np.array(
        [
            tuple((fields | {"code": NativeLoader.INT32, "states": 0, "validity": 16, "values": 32}).values()),
            tuple(
                (
                    fields | {"code": NativeLoader.STRING, "states": 32, "validity": 17, "values": 36, "texts": 64}
                ).values()
            ),
        ],
        COLUMN,
    )
    columns["total"][1] = 6
    columns["ordinal"] = [0, 1]
    side = (
        np.full(6, _TEXT, np.uint8),
        np.arange(0, 12, 2, dtype=np.int64),
        np.full(6, 2, np.uint32),
    )
    return {
        "data": np.frombuffer(b"12ab34cd56ef", np.uint8),
        "columns": columns,
        "old": side,
        "new": side,
        "rows": np.arange(3, dtype=np.int64),
        "cells": np.array([0, 2, 4], np.int64),
        "block": np.zeros(160, np.uint8),
        "texts": np.zeros(64 + 6 + 64, np.uint8),
        "left_columns": np.zeros(6, np.int64),
        "left_rows": np.zeros(6, np.int64),
    }


def _load(arguments: dict[str, Any]) -> int:
    count: int = native_module().load_rows(*arguments.values())
    return count


def test_memory_that_suffices() -> None:
    arguments = _arguments()
    native_module().measure_rows(*(arguments[name] for name in ("columns", "old", "new", "cells")))
    assert arguments["columns"]["total"].tolist() == [0, 6]
    assert _load(arguments) == 0
    assert arguments["block"][128:140].view(np.int32).tolist() == [12, 34, 56]
    assert arguments["block"][144:160].view(np.int32).tolist() == [0, 2, 4, 6]
    assert bytes(arguments["texts"][64:70]) == b"abcdef"
    assert arguments["columns"]["valued"].tolist() == [3, 3]


def _set(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda arguments: arguments.update({name: value})


def _set_side(number: int, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(arguments: dict[str, Any]) -> None:
        arguments["old"] = (*arguments["old"][:number], value, *arguments["old"][number + 1 :])

    return change


def _set_column(field: str, value: int) -> Callable[[dict[str, Any]], None]:
    def change(arguments: dict[str, Any]) -> None:
        arguments["columns"][field][1] = value

    return change


_NONE = np.empty(0, np.int64)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(_set("data", np.zeros(11, np.uint8)), id="too little data"),
        pytest.param(_set("data", np.zeros(12, np.int64)), id="wide data"),
        pytest.param(_set("rows", np.arange(2)), id="too few rows"),
        pytest.param(_set("rows", np.array([0, 1, 3])), id="a row behind the last"),
        pytest.param(_set("rows", np.array([0, -1, 2])), id="a negative row"),
        pytest.param(_set("cells", np.array([0, 2])), id="too few cells"),
        pytest.param(_set("cells", np.array([0, 2, 5])), id="a cell behind the last"),
        pytest.param(_set("cells", np.array([0, -2, 4])), id="a negative cell"),
        pytest.param(_set("block", np.zeros(159, np.uint8)), id="a small block"),
        pytest.param(_set("texts", np.zeros(64 + 5 + 64, np.uint8)), id="too little room for texts"),
        pytest.param(_set("left_columns", np.zeros(5, np.int64)), id="too little room for columns that are left"),
        pytest.param(_set("left_rows", np.zeros(5, np.int64)), id="too little room for rows that are left"),
        pytest.param(_set_side(1, np.zeros(5, np.int64)), id="too few starts"),
        pytest.param(_set_side(2, np.zeros(5, np.uint32)), id="too few lengths"),
        pytest.param(_set_side(1, np.array([0, -1, 0, 0, 0, 0])), id="a negative start"),
        pytest.param(_set_side(1, np.full(6, (1 << 63) - 1)), id="the largest start"),
        pytest.param(_set_side(2, np.full(6, (1 << 32) - 1, np.uint32)), id="the largest length"),
        *(
            pytest.param(_set_column(field, value), id=f"{field} {value}")
            for field, values in {
                "code": (-1, 16, NativeLoader.INT64),
                "width": (0, 8),
                "precision": (-1,),
                "scale": (1 << 40, -(1 << 40)),
                "ordinal": (-1, 7, 1 << 62),
                "side": (-1, 2),
                "first": (-1, 1, 1 << 62),
                "having": (-1, 4, 1 << 62),
                "changes": (-1, 2, 1 << 62),
                "states": (-1, 129, 1 << 62),
                "validity": (-1, 40, 1 << 62),
                "values": (-1, 37, 1 << 62),
                "texts": (63, 65, 1 << 62),
                "total": (-1, 5, 1 << 32),
            }.items()
            for value in values
        ),
    ],
)
def test_memory_that_does_not_fit_is_refused(change: Callable[[dict[str, Any]], None]) -> None:
    arguments = _arguments()
    change(arguments)
    with pytest.raises(ValueError, match=r"lie outside|has items of|are too short"):
        _load(arguments)


@pytest.mark.parametrize("rows", [[2, 1, 0], [1, 1, 1], [0, 0, 2]])
def test_rows_out_of_order_stay_within_the_memory(rows: list[int]) -> None:
    arguments = _arguments()
    arguments["rows"] = np.array(rows)
    assert _load(arguments) == 0
    assert arguments["columns"]["total"][1] <= 6
