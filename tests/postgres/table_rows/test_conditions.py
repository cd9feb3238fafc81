"""Conditions of `resync --where`: a small part of SQL, stored as data."""

from __future__ import annotations

import json

import pytest

from logicalrep.postgres.table_rows.conditions import (
    ACCEPTED,
    ComparedColumn,
    ConditionError,
    columns_of,
    condition_of,
    parse_condition,
)

ACCEPTED_TEXTS = {
    "id = 1": "id = 1",
    "id != -1.5e3": "id <> '-1.5e3'",
    "ID>=1 and Id<2": "id >= 1 AND id < 2",
    "\"Odd \"\"name\" <> 'it''s'": "\"Odd \"\"name\" <> 'it''s'",
    "id BETWEEN 1 AND 9 OR kind IN ('a', 'b')": "(id >= 1 AND id <= 9) OR (kind = 'a' OR kind = 'b')",
    "((id = 1 OR id = 2)) AND b = true": "(id = 1 OR id = 2) AND b = 'TRUE'",
    "größe = 'x\\'": "\"größe\" = 'x\\'",
    "a = 1 OR b = 2 AND c = 3": "a = 1 OR (b = 2 AND c = 3)",
}


@pytest.mark.parametrize(("text", "shown"), ACCEPTED_TEXTS.items())
def test_a_condition_is_parsed_and_stored(text: str, shown: str) -> None:
    condition = parse_condition(text)
    assert str(condition) == shown
    assert condition_of(json.loads(json.dumps(condition.to_json()))) == condition
    assert columns_of(parse_condition(shown)) == columns_of(condition)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("", "the end"),
        ("id", "the end"),
        ("id <", "the end"),
        ("id = 1) OR (id = 2", r"\)"),
        ("true THEN false WHEN true", "TRUE"),
        ("id = 1; DROP TABLE t", "; DROP TABLE t"),
        ("id = 1 -- more", "-- more"),
        ("id = 1 /* more */", r"/\* more \*/"),
        ("id = f(1)", "f"),
        ("f(id) = 1", r"\("),
        ("id = (SELECT 1)", r"\("),
        ("id::text = '1'", "::text = '1'"),
        ("id = 1::int", "::int"),
        ("t.id = 1", ".id = 1"),
        ("id = other", "other"),
        ("1 = id", "1"),
        ("id = NULL", "NULL"),
        ("id IS NULL", "is"),
        ("id NOT IN (1)", "NOT"),
        ("id IN ()", r"\)"),
        ("id LIKE 'a%'", "like"),
        ("id = 1x", "1x"),
        ("id = E'a'", "e"),
        ("id OPERATOR(public.=) 1", r"\.=\) 1"),
        ("id = $1", r"\$1"),
        ("id = '1", "'1"),
        ("id BETWEEN 1 OR 2", "OR"),
    ],
)
def test_anything_else_is_refused(text: str, at: str) -> None:
    with pytest.raises(ConditionError, match=rf"is not accepted at {at}: write comparisons of key columns"):
        parse_condition(text)
    assert "BETWEEN" in ACCEPTED


def test_conditions_are_bounded() -> None:
    with pytest.raises(ConditionError, match="parentheses within each other"):
        parse_condition("(" * 100_000 + "id = 1")
    with pytest.raises(ConditionError, match="more than 10,000 comparisons"):
        parse_condition(f"id IN ({','.join(map(str, range(20_000)))})")
    with pytest.raises(ConditionError, match="more than 1,048,576 characters"):
        parse_condition("id = '" + "x" * (1 << 20) + "'")
    with pytest.raises(ConditionError, match="a character that no server takes"):
        parse_condition("id = '\0'")
    nested = parse_condition("(" * 15 + "id = 1 OR id = 2" + ") AND a = 1 OR b = 2" * 15)
    assert condition_of(nested.to_json()) == nested


def test_what_is_rendered_has_literals_and_built_in_functions_alone() -> None:
    condition = parse_condition("id >= 7 AND mood < 'it''s'")
    columns = {
        "id": ComparedColumn("integer", is_enum=False, collation=None),
        "mood": ComparedColumn("m.mood", is_enum=True, collation=None),
    }
    assert condition.render(columns).as_string(None) == (
        "((\"id\"::integer) OPERATOR(pg_catalog.>=) ('7'::integer) AND "
        "pg_catalog.\"enum_lt\"((\"mood\"::m.mood), ('it''s'::m.mood)))"
    )
