"""Messages and damaged messages that Hypothesis makes: all decoders read and refuse the same ones, alike."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from logicalrep.columnar import Session, decode_batch
from tests.codecs.strategies import State, damaged, messages_in, states
from tests.codecs.strategies import messages as messages_of
from tests.columnar.expected import check, parsed, row_of, rows_of


def session_in(state: State) -> Session:
    """The session of which a strategy made messages."""
    return Session(version=state.version, streaming=state.streaming, parallel=state.parallel, encoding=state.encoding)


@st.composite
def whole_batches(draw: st.DrawFn) -> tuple[State, list[bytes]]:
    """Messages that can come in one state, none of which changes it."""
    state = draw(states())
    tags = "BMCORYIUDTcAbPKrp"
    found = draw(st.lists(messages_in(state, tags), max_size=8))
    return state, [message.build(encoding=state.encoding) for message in found]


@given(whole_batches())
@settings(max_examples=100, deadline=None)
def test_numpy_reads_what_is_built(batch: tuple[State, list[bytes]]) -> None:
    state, data = batch
    found, _ = decode_batch(pa.array(data, pa.binary()), session_in(state), backend="numpy")
    assert rows_of(found) == [row_of(message) for message in parsed(data, session_in(state))]


@given(st.lists(damaged(), min_size=1, max_size=6), st.sampled_from([False, True]))
@settings(max_examples=100, deadline=None)
def test_numpy_refuses_what_parse_refuses(batch: list[tuple[State, bytes]], two_phase: bool) -> None:
    _check(batch, two_phase, backend="numpy")


@given(st.lists(damaged(), min_size=1, max_size=6), st.sampled_from([False, True]))
@settings(max_examples=100, deadline=None)
def test_the_kernel_refuses_what_parse_refuses(batch: list[tuple[State, bytes]], two_phase: bool) -> None:
    batch = [(State(4, *_rest(state)), data) for state, data in batch]
    _check(batch, two_phase, backend="numba")


@given(st.lists(messages_of(), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_the_kernel_reads_what_parse_reads(batch: list[tuple[State, Any]]) -> None:
    _check(
        [(State(4, *_rest(state)), message.build(encoding=state.encoding)) for state, message in batch],
        False,
        backend="numba",
    )


def _rest(state: State) -> tuple[bool, bool, str]:
    return state.streaming, state.parallel, state.encoding


def _check(batch: list[tuple[State, bytes]], two_phase: bool, **arguments: Any) -> None:
    """The first message's state is the session's; the others are in any place then, which is as good."""
    state = batch[0][0]
    session = Session(
        version=state.version,
        streaming=state.streaming,
        parallel=state.parallel,
        two_phase=two_phase,
        encoding=state.encoding,
    )
    check([data for _, data in batch], session, **arguments)
