"""Messages and damaged messages from Hypothesis: a batch has and refuses the same as `parse`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logicalrep_protocol.columnar import Session, decode_batch
from logicalrep_protocol.versions import PARSE
from tests.arrow.expected import check, parsed, row_of, rows_of
from tests.protocol.strategies import State, damaged, messages_in, states
from tests.protocol.strategies import messages as messages_of

pytestmark = pytest.mark.slow


def session_in(state: State) -> Session:
    """Return the session for a strategy's messages."""
    return Session(version=state.version, streaming=state.streaming, parallel=state.parallel, encoding=state.encoding)


@st.composite
def whole_batches(draw: st.DrawFn) -> tuple[State, list[bytes]]:
    """Draw messages that can occur in one state and do not change it."""
    state = draw(states())
    tags = "BMCORYIUDTcAbPKrp"
    messages = draw(st.lists(messages_in(state, tags), max_size=8))
    return state, [message.build(encoding=state.encoding) for message in messages]


@given(whole_batches())
@settings(max_examples=100, deadline=None)
def test_a_batch_reads_what_is_built(batch: tuple[State, list[bytes]]) -> None:
    state, data = batch
    decoded, _ = decode_batch(pa.array(data, pa.binary()), session_in(state))
    assert rows_of(decoded) == [row_of(message) for message in parsed(data, session_in(state))]


@given(st.lists(damaged(), min_size=1, max_size=6), st.sampled_from([False, True]))
@settings(max_examples=200, deadline=None)
def test_a_batch_refuses_what_parse_refuses(batch: list[tuple[State, bytes]], two_phase: bool) -> None:
    """The session's state is the first message's; the others are then out of place, which is valid here."""
    session = session_in(batch[0][0])
    check([data for _, data in batch], replace(session, two_phase=two_phase))


@given(st.lists(messages_of(), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_a_batch_reads_what_parse_reads(batch: list[tuple[State, Any]]) -> None:
    """The newest version has every message."""
    session = replace(session_in(batch[0][0]), version=max(PARSE))
    check([message.build(encoding=state.encoding) for state, message in batch], session)
