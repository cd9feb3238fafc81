"""Table names in SQL's form: the names that are read, those that are refused, and one name for all spellings."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logicalrep.transactions.table_names import TableName, TableNameError, name_parts, table_names
from tests.postgres.servers import Database

part = st.text('aB1_$". ,é\xa0\n', min_size=1, max_size=4)


@settings(deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.builds(TableName, part, part), min_size=1, max_size=3))
def test_what_is_written_is_read(names: list[TableName]) -> None:
    assert table_names(", ".join(map(str, names))) == names


def test_a_schema_whose_name_is_a_reserved_word_has_quotes(db18: Database) -> None:
    words = [word for (word,) in db18.rows("SELECT word FROM pg_get_keywords() WHERE catcode IN ('R', 'T')")]
    for word in words:
        table = TableName(word, word)
        db18.execute(f'CREATE SCHEMA "{word}"', f"CREATE TABLE {table} (id int)")
        assert table_names(str(table)) == [table]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("orders", [("public", "orders")]),
        (' a . b,"c"\t', [("a", "b"), ("public", "c")]),
        ('"a.b".c', [("a.b", "c")]),
        ('"a"."b.c", "x,y"."say ""so"""', [("a", "b.c"), ("x,y", 'say "so"')]),
        ("größe_1$.ÄÖ", [("größe_1$", "ÄÖ")]),
    ],
)
def test_names_as_postgresql_reads_them(text: str, names: list[tuple[str, str]]) -> None:
    assert table_names(text) == names


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("public.Orders", 'write public."Orders"'),
        ('"Shop".Orders', 'write "Shop"."Orders"'),
        ("order-lines", 'write "order-lines"'),
        ("1st", 'write "1st"'),
        ("a.b.c", "a.b.c has 3 parts"),
        ('Odd "Name', "not a table's name as in SQL"),
        ('"open', "not a table's name as in SQL"),
        ('""', "not a table's name as in SQL"),
        ("a,", "not a table's name as in SQL"),
        ("a.", "not a table's name as in SQL"),
        ("", "not a table's name as in SQL"),
    ],
)
def test_names_that_are_refused(text: str, reason: str) -> None:
    with pytest.raises(TableNameError, match=re.escape(reason)):
        table_names(text)


def test_the_name_of_one_table() -> None:
    assert name_parts('"a.b"') == ("a.b",)
    assert name_parts('a."b"') == ("a", "b")
    with pytest.raises(TableNameError, match="names 2 tables"):
        name_parts("a, b")
