"""Hypothesis strategies: messages of every version and session state, bytes near and far from them, wrong attributes."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from logicalrep_protocol import testing, walsender
from tests.protocol.agreement import VERSIONS
from tests.protocol.captured import read, selected
from tests.protocol.hand_decoder import SINCE

ENCODINGS = ("utf-8", "iso8859-1", "cp1251", "gbk")
"""In GBK a character's second byte can be a backslash."""


@dataclass(frozen=True)
class State:
    """What a session knows when a message comes."""

    version: int
    streaming: bool
    parallel: bool
    encoding: str

    @property
    def arguments(self) -> dict[str, Any]:
        """For `parse`."""
        return {"streaming": self.streaming, "parallel": self.parallel, "encoding": self.encoding}


def states() -> st.SearchStrategy[State]:
    """Every combination of what a session knows."""
    return st.builds(State, st.sampled_from(list(VERSIONS)), st.booleans(), st.booleans(), st.sampled_from(ENCODINGS))


def messages_in(state: State, tags: str) -> st.SearchStrategy[Any]:
    """A message that can come in a state."""
    return st.one_of(
        [_instances(state, name) for name, since in map(SINCE.__getitem__, tags) if since <= state.version]
    )


@functools.cache
def _instances(state: State, name: str) -> st.SearchStrategy[Any]:
    module = VERSIONS[state.version]
    return testing.instances(module, getattr(module, name), **state.arguments)


@st.composite
def messages(draw: st.DrawFn, tags: str = "".join(SINCE)) -> tuple[State, Any]:
    """A state, and a message that can come in it."""
    state = draw(states())
    return state, draw(messages_in(state, tags))


def envelopes() -> st.SearchStrategy[tuple[str, Any]]:
    """A message of the replication connection, and who sends it."""
    return st.one_of(
        [st.tuples(st.just(sender), testing.messages(walsender, sender=sender)) for sender in ("server", "client")]
    )


@functools.cache
def captured() -> list[tuple[State, bytes]]:
    """Messages that servers sent, a few of each kind, with the state they came in."""
    by_state: dict[Any, list[tuple[State, bytes]]] = {}
    for path in selected():
        capture = read(path)
        for streaming, data in capture.with_state():
            since = SINCE[chr(data[0])][1]
            version = max(capture.version, since) if capture.two_phase else capture.version
            state = State(version, streaming, capture.parallel, capture.encoding)
            alike = by_state.setdefault((state, data[:1]), [])
            if len(data) < 400 and len(alike) < 5 and (state, data) not in alike:
                alike.append((state, data))
    return [pair for alike in by_state.values() for pair in alike]


@st.composite
def damaged(draw: st.DrawFn) -> tuple[State, bytes]:
    """A message that a server sent or that could be, with bytes changed, cut out, put in or repeated."""
    if draw(st.booleans()):
        state, data = draw(st.sampled_from(captured()))
    else:
        state, message = draw(messages())
        data = message.build(encoding=state.encoding)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        upto = draw(st.integers(at, min(len(data), at + 8)))
        middle = draw(
            st.one_of(
                st.binary(max_size=4),
                st.sampled_from(
                    [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\xff\xff", b"\x7f\xff", b"\0"]
                ),
                st.just(data[at:upto] * 2),
            )
        )
        data = data[:at] + middle + data[upto:]
    if draw(st.booleans()):
        state = draw(states())
    return state, data


ANYTHING: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([-1, 0, 1 << 8, 1 << 16, 1 << 31, 1 << 32, 1 << 63, 1 << 64, -(1 << 63) - 1, 1 << 200]),
    st.floats(),
    st.complex_numbers(),
    st.text(max_size=4),
    st.sampled_from(["\0", "\ud800", "€", "K", "O", "d", "x"]),
    st.binary(max_size=4),
    st.lists(st.none() | st.integers() | st.text(max_size=2) | st.binary(max_size=2), max_size=3),
    st.lists(st.none() | st.integers() | st.text(max_size=2) | st.binary(max_size=2), max_size=3).map(tuple),
    st.dictionaries(st.integers(), st.none(), max_size=2),
    st.just(object()),
    st.just(int),
)
"""Python objects that an attribute should not hold, or only by chance."""
