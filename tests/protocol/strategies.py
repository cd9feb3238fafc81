"""Hypothesis strategies: messages of every version and session state, bytes near and far from them, wrong attributes."""

from __future__ import annotations

import dataclasses
import functools
import sys
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from logicalrep import Lsn, TimestampTz, v1, walsender
from logicalrep_protocol.layouts import LOGICALREP, WALSENDER
from logicalrep_runtime.layout import MessageLayout
from logicalrep_runtime.operations import Bytes, Conditional, Group, Operation, Operations, Repeat, Take, Text
from tests.protocol.agreement import VERSIONS
from tests.protocol.captured import read, selected
from tests.protocol.hand_decoder import SINCE

ALPHABETS = {
    "utf-8": st.characters(exclude_characters="\0", exclude_categories=["Cs"]),
    "iso8859-1": st.sampled_from(bytes(range(1, 256)).decode("iso8859-1")),
    "cp1251": st.sampled_from(bytes(range(1, 256)).decode("cp1251", "ignore")),
    "gbk": st.sampled_from("az\\永和九年歲在癸丑"),
}
"""What names are made of in each encoding that is tried; in GBK a character's second byte can be a backslash."""


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
    return st.builds(
        State, st.sampled_from(list(VERSIONS)), st.booleans(), st.booleans(), st.sampled_from(list(ALPHABETS))
    )


def integers(take: Take) -> st.SearchStrategy[int]:
    """What an integer of a layout holds."""
    low = -(1 << (8 * take.width - 1)) if take.signed else int(0 in take.refused)
    return _numbers(low, (1 << (8 * take.width - take.signed)) - 1, take.wrapper)


@functools.cache
def _numbers(low: int, high: int, wrapper: Any) -> st.SearchStrategy[int]:
    numbers = st.integers(low, high) | st.sampled_from([low, high])
    return numbers.map(wrapper) if wrapper in (Lsn, TimestampTz) else numbers


@functools.cache
def tuples() -> st.SearchStrategy[v1.TupleData]:
    """Rows."""
    cells = st.one_of(
        st.just(v1.NullValue()),
        st.just(v1.UnchangedToast()),
        st.builds(v1.Text, st.binary(max_size=8)),
        st.builds(v1.Binary, st.binary(max_size=8)),
    )
    return st.lists(cells, max_size=5).map(lambda cells: v1.TupleData.of(*cells))


_ATTRIBUTES: dict[tuple[type, str], dict[str, st.SearchStrategy[Any]]] = {}


def attributes(owner: type, fields: Operations, encoding: str) -> dict[str, st.SearchStrategy[Any]]:
    """A strategy for each attribute of a class, by the layout of its message or part."""
    if (owner, encoding) not in _ATTRIBUTES:
        rows = {field.name: field for field in fields}
        _ATTRIBUTES[owner, encoding] = {
            attribute.name: values(owner, rows[attribute.name], encoding) for attribute in dataclasses.fields(owner)
        }
    return _ATTRIBUTES[owner, encoding]


def values(owner: type, operation: Operation, encoding: str) -> st.SearchStrategy[Any]:
    """What one attribute holds."""
    if isinstance(operation, Repeat):
        return st.lists(values(owner, operation.body, encoding), max_size=4).map(tuple)
    if isinstance(operation, Group) and operation.part == "TupleData":
        once: st.SearchStrategy[Any] = tuples()
    elif isinstance(operation, Group):
        part = LOGICALREP.parts["Column"]
        once = st.builds(v1.Column, **attributes(v1.Column, part.fields, encoding))
    elif isinstance(operation, Text):
        once = st.text(ALPHABETS[encoding], max_size=12)
    elif isinstance(operation, Bytes):
        once = st.binary(max_size=20)
    elif isinstance(operation, Take) and operation.wrapper is bool:
        once = st.booleans()
    elif operation.name == "replica_identity":
        once = st.sampled_from(sys.modules[owner.__module__].ReplicaIdentity)
    elif isinstance(operation, Take) and operation.is_character:
        once = st.sampled_from([chr(code) for code in operation.allowed])
    else:
        once = integers(operation)
    return once


@st.composite
def messages_in(draw: st.DrawFn, state: State, tags: str) -> Any:
    """A message that can come in a state."""
    choices = [SINCE[tag] for tag in tags if SINCE[tag][1] <= state.version]
    name, since = draw(st.sampled_from(choices))
    layout = next(layout for layout in LOGICALREP.messages if layout.name.title().replace(" ", "") == name)
    assert layout.since == since
    return draw(_instances(getattr(VERSIONS[state.version], name), layout, state))


@st.composite
def messages(draw: st.DrawFn, tags: str = "".join(SINCE)) -> tuple[State, Any]:
    """A state, and a message that can come in it."""
    state = draw(states())
    return state, draw(messages_in(state, tags))


@st.composite
def envelopes(draw: st.DrawFn) -> tuple[str, Any]:
    """A message of the replication connection, and who sends it."""
    layout = draw(st.sampled_from(WALSENDER.messages))
    owner = getattr(walsender, "".join(word[0].upper() + word[1:] for word in layout.name.split()))
    return layout.sender, draw(_instances(owner, layout, State(1, False, False, "utf-8")))


@st.composite
def _instances(draw: st.DrawFn, owner: type, layout: MessageLayout, state: State) -> Any:
    drawn = {name: draw(strategy) for name, strategy in attributes(owner, layout.fields, state.encoding).items()}
    absent: set[str] = set()
    for branch in layout.operations:
        if isinstance(branch, Conditional) and not (
            getattr(state, branch.fact) if branch.fact else draw(st.booleans())
        ):
            absent |= {operation.name for operation in branch.body}
    return owner(**{name: None if name in absent else value for name, value in drawn.items()})


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
