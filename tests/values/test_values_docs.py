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
