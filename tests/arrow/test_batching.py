"""Chunks contain all messages in order, end where they may, and stop before messages that must be read row by row."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logicalrep.arrow import batching as chunks
from logicalrep.arrow.batching import Batching
from logicalrep.arrow.message_batch import message_batch_of

_LARGE = 120
_SIZES = st.lists(st.integers(0, 60), max_size=12)
Messages = list[tuple[int, bytes]]


def _session(transactions: list[list[int]], *, ends: bool) -> Messages:
    """Return transactions with changes of these sizes; the last one may lack its Commit."""
    messages = [[b"B", *(b"I" + bytes(size) for size in sizes), b"C"] for sizes in transactions]
    if messages and not ends:
        messages[-1].pop()
    return list(enumerate(data for transaction in messages for data in transaction))


def _chunks(messages: Messages, pieces: list[int], count: int, limit: int | None) -> tuple[list[Messages], Messages]:
    """Return the chunks and the rest of messages that arrive in batches of these lengths."""
    batches, place = [], 0
    for piece in [*pieces, len(messages)]:
        batches.append(message_batch_of(messages[place : place + piece]))
        place += piece
    read = Batching(iter(batches), count, limit)
    with patch.object(chunks, "LARGE_BATCH", _LARGE):
        return [list(chunk) for chunk in read], [message for batch in read.rest() for message in batch]


def _size(messages: Messages) -> int:
    return sum(len(data) for _, data in messages)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.lists(_SIZES, max_size=12), st.booleans(), st.lists(st.integers(0, 20), max_size=12), st.integers(1, 30))
def test_chunks_that_end_anywhere(transactions: list[list[int]], ends: bool, pieces: list[int], count: int) -> None:
    messages = _session(transactions, ends=ends)
    chunks, rest = _chunks(messages, pieces, count, None)
    assert [message for chunk in chunks for message in chunk] == messages
    assert not rest
    for chunk in chunks:
        assert len(chunk) <= count
        assert _size(chunk) <= _LARGE or len(chunk) == 1


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    st.lists(_SIZES, max_size=12),
    st.booleans(),
    st.lists(st.integers(0, 20), max_size=12),
    st.integers(1, 30),
    st.integers(0, 700),
)
def test_chunks_of_whole_transactions(
    transactions: list[list[int]], ends: bool, pieces: list[int], count: int, limit: int
) -> None:
    messages = _session(transactions, ends=ends)
    chunks, rest = _chunks(messages, pieces, count, limit)
    assert [message for chunk in [*chunks, rest] for message in chunk] == messages
    for chunk in chunks:
        tags = [data[:1] for _, data in chunk]
        assert (tags[0], tags[-1]) == (b"B", b"C")
        if tags.count(b"C") > 1:
            assert len(chunk) <= count
            assert _size(chunk) <= _LARGE
        else:
            assert _size(chunk) <= max(limit, _LARGE)
    if rest:
        assert rest[0][1] == b"B"
        end = next((at for at, (_, data) in enumerate(rest) if data == b"C"), None)
        assert end is None or _size(rest[: end + 1]) > limit
