"""A loop finds the number of each row's table, or the first row whose table has none."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from logicalrep.arrow.loops.transactions import number_tables
from logicalrep.arrow.table_numbers import TableNumbers

_NONE = -1

# OIDs close together, as a server assigns them; OIDs with the same last bits; and OIDs that no server's table has.
OIDS = st.one_of(
    st.integers(16_384, 16_500),
    st.integers(1, 60).map(lambda number: number << 20),
    st.sampled_from((0, (1 << 32) - 1)),
)


@given(
    st.lists(st.tuples(OIDS, st.integers(0, 1 << 20)), max_size=200),
    st.lists(st.tuples(st.sampled_from(b"BIUDTC"), st.one_of(OIDS, st.integers(0, (1 << 32) - 1))), min_size=1),
)
def test_numbers_equal_a_dicts_numbers(pairs: list[tuple[int, int]], messages: list[tuple[int, int]]) -> None:
    by_oid, numbers = dict(pairs), TableNumbers()
    for oid, number in pairs:
        numbers[oid] = number
    tags = np.array([tag for tag, _ in messages], np.uint8)
    oids = np.array([oid for _, oid in messages], np.uint32)
    tables = np.full(len(messages), _NONE, np.int32)
    unknown = number_tables(tags, oids, 0, len(messages), numbers.buckets, tables)
    expected = [by_oid.get(oid) if tag in b"IUD" else _NONE for tag, oid in messages]
    assert unknown == (expected.index(None) if None in expected else -1)
    read = len(messages) if unknown < 0 else unknown
    assert tables.tolist() == expected[:read] + [_NONE] * (len(messages) - read)
