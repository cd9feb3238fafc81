"""What holds for all messages and all bytes."""

from __future__ import annotations

import dataclasses
import pickle
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from construct import ConstructError
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from logicalrep import DecodeError, Decoder, EncodeError, walsender
from tests.protocol.agreement import VERSIONS, agree
from tests.protocol.hand_decoder import SINCE
from tests.protocol.strategies import ANYTHING, State, captured, damaged, envelopes, messages, states

pytestmark = pytest.mark.slow

STEADY = settings(deadline=None, derandomize=True, max_examples=150)


def _outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, or the error of the codecs that it raises."""
    try:
        return call()
    except (DecodeError, EncodeError) as error:
        return error


def _by_struct(message: Any, **context: str) -> bytes | None:
    """The bytes that the message's Struct builds; None where it refuses to."""
    try:
        return message.struct.build(message, **context)
    except ConstructError:
        return None


@STEADY
@given(messages())
def test_a_message_builds_and_parses_back_equal(drawn: tuple[State, Any]) -> None:
    state, message = drawn
    data = message.build(encoding=state.encoding)
    parsed = VERSIONS[state.version].parse(data, **state.arguments)
    assert parsed == message
    assert type(parsed) is type(message)
    assert hash(parsed) == hash(message)
    assert pickle.loads(pickle.dumps(parsed)) == message
    assert repr(parsed) == repr(message)


@STEADY
@given(messages())
def test_generated_messages_are_read_alike_in_all_ways(drawn: tuple[State, Any]) -> None:
    state, message = drawn
    assert agree(message.build(encoding=state.encoding), state.version, **state.arguments) == message


@STEADY
@given(messages())
def test_a_parsed_message_has_attributes_of_the_annotated_types(drawn: tuple[State, Any]) -> None:
    state, message = drawn
    parsed = VERSIONS[state.version].parse(message.build(encoding=state.encoding), **state.arguments)
    _assert_same_types(parsed, message)


def _assert_same_types(value: Any, other_value: Any) -> None:
    assert type(value) is type(other_value)
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            _assert_same_types(getattr(value, field.name), getattr(other_value, field.name))
    elif isinstance(value, tuple):
        for element, other_element in zip(value, other_value, strict=True):
            _assert_same_types(element, other_element)


@STEADY
@given(envelopes())
def test_an_envelope_builds_and_parses_back_equal(drawn: tuple[Any, Any]) -> None:
    sender, message = drawn
    data = message.build()
    assert walsender.parse(data, sender=sender) == message
    assert message.struct.parse(data) == message
    assert message.struct.build(message) == data
    other = "client" if sender == "server" else "server"
    with pytest.raises(DecodeError):
        walsender.parse(data, sender=other)


@settings(STEADY, max_examples=300)
@given(states(), st.binary(max_size=40), st.sampled_from([*SINCE, ""]))
def test_any_bytes_parse_or_raise_decode_error_in_all_ways_alike(state: State, data: bytes, tag: str) -> None:
    agree(tag.encode() + data, state.version, **state.arguments)


@settings(STEADY, max_examples=400)
@given(damaged())
def test_damaged_messages_are_accepted_and_refused_alike_in_all_ways(drawn: tuple[State, bytes]) -> None:
    state, data = drawn
    agree(data, state.version, **state.arguments)


@settings(STEADY, max_examples=300)
@given(st.binary(max_size=50), st.sampled_from("wkrh "), st.sampled_from(["server", "client"]))
def test_any_bytes_are_an_envelope_or_raise_decode_error(data: bytes, tag: str, sender: Any) -> None:
    data = tag.strip().encode() + data
    outcome = _outcome(lambda: walsender.parse(data, sender=sender))
    if isinstance(outcome, DecodeError):
        assert 0 <= outcome.offset <= len(data)
    else:
        assert outcome.build() == data


@STEADY
@given(damaged())
def test_bytes_are_read_from_every_kind_of_buffer(drawn: tuple[State, bytes]) -> None:
    state, data = drawn
    parse = VERSIONS[state.version].parse
    buffers = [bytearray(data), memoryview(data), memoryview(bytearray(b"x" + data))[1:], memoryview(data[::-1])[::-1]]
    wanted = _outcome(lambda: parse(data, **state.arguments))
    for buffer in buffers:
        outcome = _outcome(lambda buffer=buffer: parse(buffer, **state.arguments))  # type: ignore[misc]
        _assert_same_types(outcome, wanted)
        if isinstance(wanted, DecodeError):
            assert outcome.args == wanted.args
        else:
            assert outcome == wanted


@pytest.mark.parametrize("name", sorted({name for name, _ in SINCE.values()}))
def test_messages_do_not_hold_on_to_a_mutable_buffer(name: str) -> None:
    state, data = next((state, data) for state, data in captured() if SINCE[chr(data[0])][0] == name)
    buffer = bytearray(data)
    message = VERSIONS[state.version].parse(buffer, **state.arguments)
    buffer[:] = bytes(len(buffer))
    assert message.build(encoding=state.encoding) == data


@settings(STEADY, max_examples=300)
@given(messages(tags="BMCORYIUDTScAbPKrp"), st.data())
def test_attributes_that_do_not_fit_raise_encode_error_and_nothing_else(
    drawn: tuple[State, Any], data: st.DataObject
) -> None:
    state, message = drawn
    names = [field.name for field in dataclasses.fields(message)]
    name = data.draw(st.sampled_from(names))
    wrong = dataclasses.replace(message, **{name: data.draw(ANYTHING)})
    _assert_builds_or_refuses(wrong, state)


@settings(STEADY, max_examples=300)
@given(messages(tags="IUDR"), st.data())
def test_parts_that_do_not_fit_raise_encode_error_and_nothing_else(
    drawn: tuple[State, Any], data: st.DataObject
) -> None:
    state, message = drawn
    parts: dict[str, Any] = {name: getattr(message, name, None) for name in ("new", "old", "columns")}
    parts = {name: part for name, part in parts.items() if part not in (None, ())}
    assume(parts)
    name = data.draw(st.sampled_from(list(parts)))
    part = parts[name]
    owner = part[0] if isinstance(part, tuple) else part
    attribute = data.draw(st.sampled_from([field.name for field in dataclasses.fields(owner)]))
    wrong = dataclasses.replace(owner, **{attribute: data.draw(ANYTHING)})
    if isinstance(part, tuple):
        wrong = (*part[1:], wrong)
    _assert_builds_or_refuses(dataclasses.replace(message, **{name: wrong}), state)


def _assert_builds_or_refuses(message: Any, state: State) -> None:
    """EncodeError, or bytes that are a message: what Python holds to be a number or a sequence may pass."""
    data = _outcome(lambda: message.build(encoding=state.encoding))
    assert _by_struct(message, encoding=state.encoding) == (None if isinstance(data, EncodeError) else data)
    if isinstance(data, EncodeError):
        assert data.message
        assert data.field
        return
    # Without its xid a message builds as one outside a stream.
    streaming = state.version > 1 and getattr(message, "xid", None) is not None
    parallel = getattr(message, "abort_lsn", None) is not None
    parsed = VERSIONS[state.version].parse(data, streaming=streaming, parallel=parallel, encoding=state.encoding)
    assert parsed.build(encoding=state.encoding) == data


@settings(STEADY, max_examples=300)
@given(envelopes(), st.data())
def test_attributes_that_do_not_fit_an_envelope_raise_encode_error_and_nothing_else(
    drawn: tuple[Any, Any], data: st.DataObject
) -> None:
    sender, message = drawn
    name = data.draw(st.sampled_from([field.name for field in dataclasses.fields(message)]))
    wrong = dataclasses.replace(message, **{name: data.draw(ANYTHING)})
    built = _outcome(wrong.build)
    assert _by_struct(wrong) == (None if isinstance(built, EncodeError) else built)
    if not isinstance(built, EncodeError):
        assert walsender.parse(built, sender=sender).build() == built


@settings(STEADY, max_examples=100)
@given(st.sampled_from(list(VERSIONS)), st.booleans(), st.booleans(), st.lists(damaged() | messages(), max_size=8))
def test_a_decoder_raises_decode_error_only_and_then_is_as_before(
    version: int, parallel: bool, two_phase: bool, drawn: list[tuple[State, Any]]
) -> None:
    decoder = Decoder(version, parallel=parallel, two_phase=two_phase)
    for state, item in drawn:
        data = item if isinstance(item, bytes) else item.build(encoding=state.encoding)
        old_state = _state_of(decoder)
        outcome = _outcome(lambda data=data: decoder.decode(data))  # type: ignore[misc]
        if isinstance(outcome, DecodeError):
            assert _state_of(decoder) == old_state
            assert pickle.loads(pickle.dumps(outcome)).args == outcome.args


def _state_of(decoder: Decoder) -> tuple[Any, ...]:
    return decoder.block, decoder.streaming, dict(decoder.relations), dict(decoder.types)


def test_errors_are_pickled_with_all_they_say() -> None:
    decode_error = DecodeError("Insert", "new.cells[0].length", 8, "0 or more", "-1")
    copy = pickle.loads(pickle.dumps(decode_error))
    assert type(copy) is DecodeError
    assert (copy.message, copy.field, copy.offset, copy.expected, copy.found) == (
        "Insert", "new.cells[0].length", 8, "0 or more", "-1",
    )  # fmt: skip
    assert str(copy) == str(decode_error)
    encode_error = EncodeError("Insert", "relation_id", "a whole number from 0 to 4294967295", "-1")
    copy = pickle.loads(pickle.dumps(encode_error))
    assert type(copy) is EncodeError
    assert (copy.message, copy.field, copy.expected, copy.found) == (
        "Insert", "relation_id", "a whole number from 0 to 4294967295", "-1",
    )  # fmt: skip
    assert str(copy) == str(encode_error)


HUGE = {
    "a Truncate of 2^31-1 tables": b"T\x7f\xff\xff\xff\0",
    "a Truncate of 2^31-1 tables, 1000 there": b"T\x7f\xff\xff\xff\0" + bytes(4000),
    "a Relation of 32767 columns": b"R\0\0\0\1a\0b\0d\x7f\xff",
    "a Relation of 32767 columns, 1000 there": b"R\0\0\0\1a\0b\0d\x7f\xff" + bytes(2_000),
    "a row of 32767 values": b"I\0\0\0\1N\x7f\xff",
    "a row of 32767 values, 2000 there": b"I\0\0\0\1N\x7f\xff" + b"n" * 2_000,
    "a value of 2^31-1 bytes": b"I\0\0\0\1N\0\1t\x7f\xff\xff\xff",
    "a value of 2^31-1 bytes, then more": b"I\0\0\0\1N\0\2t\x7f\xff\xff\xff" + bytes(2_000),
    "a value of -1 bytes": b"I\0\0\0\1N\0\1t\xff\xff\xff\xff",
    "a content of 2^31-1 bytes": b"M\0\0\0\0\0\0\0\0\1a\0\x7f\xff\xff\xff",
    "a content of 2^31-1 bytes, 2000 there": b"M\0\0\0\0\0\0\0\0\1a\0\x7f\xff\xff\xff" + bytes(2_000),
    "a name without end": b"O\0\0\0\0\0\0\0\1" + b"a" * 2_000,
    "names without end": b"R\0\0\0\1" + b"a" * 2_000,
}


@pytest.mark.parametrize("data", HUGE.values(), ids=HUGE.keys())
def test_counts_and_lengths_are_not_believed(data: bytes) -> None:
    """Neither the memory nor the time that they would take is spent."""
    tracemalloc.start()
    started = time.process_time()
    try:
        for module in VERSIONS.values():
            with pytest.raises(DecodeError):
                module.parse(data)
        spent = time.process_time() - started
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000 + 200 * len(data)
    assert spent < 2
