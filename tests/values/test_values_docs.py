"""docs/reference/types.md contains the current table of types."""

from __future__ import annotations

import pathlib

import pytest

PAGE = pathlib.Path(__file__).parents[2] / "docs/reference/types.md"


def test_the_page_has_the_table_of_types() -> None:
    pytest.importorskip("pyarrow")
    from logicalrep.values import docs

    text = PAGE.read_text("utf-8")
    assert text == docs.page(text), "run: python -m logicalrep.values.docs docs/reference/types.md"


def test_the_table_has_the_types_of_iceberg_tables() -> None:
    pytest.importorskip("pyiceberg")
    import pyarrow as pa
    from pyiceberg.io.pyarrow import pyarrow_to_schema
    from pyiceberg.types import IcebergType, ListType, MapType, StructType

    from logicalrep.pipeline.schema.field_ids import file_schema, with_ids
    from logicalrep.values import docs
    from logicalrep.values.numbers import with_number_type
    from logicalrep.values.table import EXTENSIONS, TABLE

    def name(type_: IcebergType) -> str:
        if isinstance(type_, ListType):
            return f"list<{name(type_.element_type)}>"
        if isinstance(type_, MapType):
            return f"map<{name(type_.key_type)}, {name(type_.value_type)}>"
        if isinstance(type_, StructType):
            return f"struct<{', '.join(f'{field.name}: {name(field.field_type)}' for field in type_.fields)}>"
        return str(type_)

    columns = [column for row in (*TABLE, *EXTENSIONS) for column in (row.type, *map(row.modified, row.examples))]
    columns += [with_number_type(column, "double") for column in columns]
    types = [column.arrow_type(for_spark=True) for column in columns]
    for type_ in types:
        (written,) = pyarrow_to_schema(file_schema(pa.schema([with_ids(pa.field("c", type_), 16)]))).fields
        assert name(written.field_type) == docs.iceberg_type(type_)


def test_a_page_without_marks_is_an_error() -> None:
    from logicalrep.values import docs

    with pytest.raises(ValueError, match="the page has no line"):
        docs.page("# Types\n")


def test_the_examples_of_the_page_are_true() -> None:
    from logicalrep.values import Column, ColumnValueError, column_type

    price = Column("price", column_type(1700, 655366), table="public.item")
    text = PAGE.read_text("utf-8")
    assert repr(price.load("t", b"19.90")) in text
    assert repr(price.type.spark_type) in text
    assert repr(price.load_or_text("t", b"19,90")) in text
    with pytest.raises(ColumnValueError) as caught:
        price.load("t", b"19,90")
    assert f"ColumnValueError: {caught.value}" in text
