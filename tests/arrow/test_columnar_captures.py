"""Batches of messages from real servers: equal to `parse`, for every size of batch."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from logicalrep_protocol.columnar import decode_batch
from tests.arrow.expected import check, decode_in_batches, parsed, row_of, rows_of, session_of
from tests.protocol.captured import capture_name, collected, each_selected, read, selected

_SELECTED = selected()
_COLLECTED = collected()


@pytest.mark.parametrize("path", each_selected())
def test_a_batch_is_what_parse_gives(path: Path) -> None:
    capture = read(path)
    check(capture.messages, session_of(capture))


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_each_batch_begins_where_the_previous_batch_ended(size: int) -> None:
    path = next(path for path in _SELECTED if "/v4" in str(path) and "stream" in str(path))
    capture = read(path)
    messages = capture.messages[:2000]
    whole, after = decode_in_batches(messages, session_of(capture), len(messages))
    parts, after_parts = decode_in_batches(messages, session_of(capture), size)
    assert parts.combine_chunks().equals(whole.combine_chunks())
    assert after_parts == after


@pytest.mark.thorough
@pytest.mark.parametrize("path", _COLLECTED, ids=capture_name)
def test_the_corpus(path: Path) -> None:
    capture = read(path)
    session = session_of(capture)
    array = pa.array(capture.messages, pa.binary())
    whole, after = decode_batch(array, session)
    assert rows_of(whole) == [row_of(message) for message in parsed(capture.messages, session)]
    for size in (2, 7, 1000):
        parts, after_parts = decode_in_batches(capture.messages, session, size)
        assert parts.combine_chunks().to_batches()[0].equals(whole), size
        assert after_parts == after


@pytest.mark.thorough
@pytest.mark.parametrize("path", _COLLECTED[::12], ids=capture_name)
def test_the_corpus_in_the_smallest_batches(path: Path) -> None:
    capture = read(path)
    session = session_of(capture)
    whole, after = decode_in_batches(capture.messages, session, len(capture.messages))
    parts, after_parts = decode_in_batches(capture.messages, session, 1)
    assert parts.combine_chunks().equals(whole.combine_chunks())
    assert after_parts == after
