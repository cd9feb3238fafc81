"""Every row of the table of types is complete. A failing test names what a new type lacks."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from logicalrep.values import Column, ColumnType, arrow_array_or_text, column_type
from logicalrep.values.catalog import CatalogType
from logicalrep.values.native_loaders import NativeLoader
from logicalrep.values.numbers import with_number_type
from logicalrep.values.table import EXTENSIONS, TABLE, Row
from logicalrep_runtime.native import native_module
from tests.native.installed import needs_native
from tests.postgres.servers import create_database
from tests.values.value_literals import EXTENSION_LITERALS, LITERALS

pa = pytest.importorskip("pyarrow")

ROWS = (*TABLE, *EXTENSIONS)
NAMES = [row.typname for row in ROWS]
EXTENSION_NAMES = [row.typname for row in EXTENSIONS]
SAMPLES = "tests/values/value_literals.py"


def of_extension(name: str) -> ColumnType:
    return column_type(70_000, types={70_000: CatalogType("", name)})


def samples(row: Row) -> Iterator[tuple[ColumnType, str]]:
    """Yield texts of a type, with the type under the text's modifier."""
    if row.text_depends_on == "names":
        yield row.type, "pg_class"
    for literal in EXTENSION_LITERALS if row.extension else LITERALS:
        if literal.oid == row.oid and (literal.oid or literal.name == row.typname):
            yield row.modified(literal.modifier), literal.text


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_a_type_has_samples(row: Row) -> None:
    assert any(samples(row)), f"{row.typname} has no value in {SAMPLES}"


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_a_type_is_known_by_its_oid_or_by_its_extension(row: Row) -> None:
    assert bool(row.oid) == bool(row.array_oid) == (not row.extension) == (row in TABLE)


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_a_type_has_a_line_of_documentation(row: Row) -> None:
    page = (pathlib.Path(__file__).parents[2] / "docs/reference/types.md").read_text("utf-8")
    assert f"\n| {row.type.name} | {row.oid or ''} |".replace("  ", " ") in page, "run: make regen"


@pytest.mark.parametrize("name", EXTENSION_NAMES)
def test_both_formats_of_an_extensions_type_give_the_value(name: str) -> None:
    column = of_extension(name)
    for literal in EXTENSION_LITERALS:
        if literal.name == name:
            assert column.load("t", literal.text.encode()) == literal.value
            assert column.load("b", bytes.fromhex(literal.binary)) == literal.value
            assert column.to_text(literal.value) == literal.text
            for for_spark in (False, True):
                array, unfit = arrow_array_or_text(column, [literal.value, None], for_spark=for_spark)
                assert (array.type, array.null_count, unfit) == (column.arrow_type(for_spark=for_spark), 1, {})


@pytest.mark.thorough
@pytest.mark.postgres
@pytest.mark.parametrize("row", EXTENSIONS, ids=EXTENSION_NAMES)
def test_a_server_writes_the_samples_of_an_extensions_type(row: Row) -> None:
    with create_database(15) as db:
        if not db.value(f"SELECT count(*) FROM pg_available_extensions WHERE name = '{row.extension}'"):
            pytest.skip(f"the server has no extension {row.extension}")
        db.execute(f"CREATE EXTENSION {row.extension}")
        send = db.value(f"SELECT typsend::text FROM pg_type WHERE typname = '{row.typname}'")
        for literal in EXTENSION_LITERALS:
            if literal.name == row.typname:
                value = f"'{literal.text}'::{row.typname}"
                (sample,) = db.rows(f"SELECT ({value})::text, encode({send}({value}), 'hex')")
                assert sample == (literal.text, literal.binary)


# --- kernels ---------------------------------------------------------------------------------------------------

VARIANTS = [
    pytest.param(row, option, for_spark, id=f"{row.typname}-{option}-{'spark' if for_spark else 'arrow'}")
    for row in ROWS
    for option in ("text", "double", "decimal(20,4)")
    for for_spark in (False, True)
    if option == "text" or (row.type.spark.is_number_text and for_spark)
]


def read_by_kernels(column: Column, texts: list[bytes], *, for_spark: bool) -> tuple[Any, set[int]]:
    """Return the array that the native loop makes, and the rows that it leaves to the type's loader."""
    from logicalrep.arrow.table.columns import LocatedValues, PresentRows, RowReader
    from logicalrep.arrow.table.loading import loaded_natively

    reader = RowReader([column], [True], for_spark=for_spark)
    data = np.frombuffer(b"".join(texts) + bytes(64), np.uint8)
    lengths = np.array([len(text) for text in texts], np.uint32)
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    cells = LocatedValues(data, np.full(len(texts), ord("t"), np.uint8), starts, lengths)
    rows = np.arange(len(texts), dtype=np.int64)
    present = PresentRows(cells, len(texts), rows, rows, rows, rows)
    (loaded,) = loaded_natively(native_module(), data, [(reader, present)])
    (array,) = loaded.arrays
    array.validate(full=True)
    return array, set(loaded.leftover.get(0, ()))


@needs_native
@pytest.mark.parametrize(("row", "option", "for_spark"), VARIANTS)
def test_the_kernel_reads_what_the_loader_reads(row: Row, option: str, for_spark: bool) -> None:
    reads_a_sample = row.native is NativeLoader.NONE
    for type_, text in samples(row):
        column = Column("c", with_number_type(type_, option))
        target = column.type.spark if for_spark else column.type.arrow
        array, rest = read_by_kernels(column, [text.encode()], for_spark=for_spark)
        expected, _ = arrow_array_or_text(column, [column.load("t", text.encode())], for_spark=for_spark)
        assert array.type == expected.type
        assert rest or repr(array.to_pylist()) == repr(expected.to_pylist()), text
        assert rest or target.native is not NativeLoader.NONE, f"{row.typname} declares no native"
        reads_a_sample |= not rest
    assert reads_a_sample, f"{row.native!r} reads no value of {row.typname} in {SAMPLES}"


@needs_native
@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_a_kernel_leaves_what_the_loader_refuses(row: Row) -> None:
    for type_, text in samples(row):
        for damaged in (f"{text}0", f"{text}x", text[:-1], f"-{text}", f"9{text}"):
            column = Column("c", type_)
            if column.load_or_text("t", damaged.encode())[1] is not None:
                _, rest = read_by_kernels(column, [damaged.encode()], for_spark=True)
                assert rest == {0}, damaged


def test_every_kernel_is_used() -> None:
    types = [row.modified(modifier) for row in ROWS for modifier in (-1, *row.examples)]
    types += [with_number_type(type_, "double") for type_ in types]
    assert {target.native for type_ in types for target in (type_.arrow, type_.spark)} == set(NativeLoader)
