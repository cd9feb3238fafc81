"""The native decoder of a session: the messages, errors and state of the decoder in Python, whatever comes."""

from __future__ import annotations

import codecs
import copy
import gc
import importlib
import os
import pickle
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from logicalrep import DecodeError, Decoder, Oid, v1
from logicalrep_protocol.layouts import LOGICALREP
from logicalrep_protocol.versions import PARSE
from logicalrep_runtime.native import session_table
from tests.native.allocations import failing_calls
from tests.native.installed import needs_native
from tests.native.tables import altered
from tests.protocol.agreement import VERSIONS
from tests.protocol.captured import read, selected

pytestmark = needs_native

_CASES = int(os.environ.get("CASES", "8000"))
"""The messages of the random sessions; `CASES=1000000` was tried."""


@contextmanager
def _in_python() -> Iterator[None]:
    functions = [(module, vars(module)["native_read"]) for module in VERSIONS.values()]
    try:
        for module, _ in functions:
            vars(module)["native_read"] = None
        yield
    finally:
        for module, function in functions:
            vars(module)["native_read"] = function


def _both(version: int, **arguments: Any) -> tuple[Any, Any]:
    """Return a decoder with the native module, and one without."""
    with _in_python():
        other: Any = Decoder(version, **arguments)
    return Decoder(version, **arguments), other


def _outcome(decode: Callable[[bytes], Any], data: Any) -> Any:
    """Return the message, or the type of the error and all that it says."""
    try:
        return decode(data)
    except Exception as error:
        return type(error), error.args, str(error), getattr(error, "__dict__", {})


def _state(decoder: Any) -> Any:
    return decoder.block, decoder.encoding, decoder.version, dict(decoder.facts), decoder.described


def _agree(native: Any, other: Any, data: Any) -> bool:
    """Fail unless both decoders do the same; return whether they decoded the data."""
    message = _outcome(native.decode, data)
    with _in_python():
        expected = _outcome(other.decode, data)
    assert message == expected, data
    assert type(message) is type(expected)
    assert _state(native) == _state(other)
    return not isinstance(message, tuple)


def _sessions() -> list[tuple[int, dict[str, Any], list[bytes]]]:
    """The beginnings of sessions with servers: version, arguments of the decoder, messages."""
    sessions = []
    for path in selected():
        capture = read(path)
        arguments = {"parallel": capture.parallel, "two_phase": capture.two_phase, "encoding": capture.encoding}
        sessions.append((capture.version, arguments, [data for _, data in capture.with_state()][:400]))
    return sessions


def _damaged(data: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(data) + 1)
    match chance.randrange(5):
        case 0:
            return data[:place]
        case 1:
            return data[:place] + bytes([chance.randrange(256)]) + data[place + 1 :]
        case 2:
            return data[:place] + chance.randbytes(chance.randint(1, 3)) + data[place:]
        case 3:
            return data[:place] + chance.choice((b"\x7f\xff\xff\xff", b"\xff" * 4, b"\0" * 8)) + data[place + 4 :]
        case _:
            return data[:place] + data[place + chance.randint(1, 4) :]


def test_it_decodes_the_sessions_of_servers() -> None:
    for version, arguments, messages in _sessions():
        native, other = _both(version, **arguments)
        for data in messages:
            assert _agree(native, other, data)


def _set_odd(decoders: tuple[Any, Any], chance: random.Random) -> None:
    """Change the state of both decoders alike, as a program could."""
    kind = chance.randrange(8)
    name = chance.choice(["Relation", "Type"])
    value: Any = chance.choice(["outside", "transaction", "stream", "".join(["stre", "am"]), "x", None, 5])
    for decoder in decoders:
        match kind:
            case 0 | 1:
                decoder.block = value
            case 2:
                decoder.streaming = value
            case 3:
                decoder.parallel = not decoder.parallel
            case 4:
                decoder.described[name].clear()
            case 5:
                decoder.described[name].update({Oid(number): None for number in range(16300, 16500)})
            case 6:
                decoder.encoding = "latin-1"
            case _:
                decoder.streaming = False


def test_random_sessions_have_the_outcomes_and_the_state_of_python() -> None:
    chance, sessions = random.Random(os.environ.get("SEED", "1")), _sessions()
    everything = [data for _, _, messages in sessions for data in messages[:60]]
    decoded = refused = 0
    while decoded + refused < _CASES:
        version, arguments, messages = chance.choice(sessions)
        arguments |= {"two_phase": chance.random() < 0.5, "parallel": chance.random() < 0.5}
        pair = _both(chance.choice((version, chance.randint(1, 4))), **arguments)
        for _ in range(60):
            data = chance.choice(messages) if chance.random() < 0.85 else chance.choice(everything)
            if chance.random() < 0.25:
                data = _damaged(data, chance)
            if chance.random() < 0.03:
                _set_odd(pair, chance)
            is_decoded = _agree(*pair, data)
            decoded += is_decoded
            refused += not is_decoded
    assert min(decoded, refused) > _CASES / 20


def test_bytes_of_every_kind_of_buffer() -> None:
    version, arguments, messages = _sessions()[0]
    native, other = _both(version, **arguments)
    for number, data in enumerate(messages[:60]):
        kind = (bytes, bytearray, memoryview)[number % 3]
        assert _agree(native, other, kind(data))
    for wrong in (None, "B", 5, [66]):
        assert not _agree(native, other, wrong)
    assert not _agree(native, other, b"")


def test_a_state_of_another_form_is_left_to_python() -> None:
    relation = v1.Relation(
        relation_id=Oid(1), namespace="", name="t", replica_identity=v1.ReplicaIdentity.FULL, columns=()
    )
    insert = v1.Insert(relation_id=Oid(1), new=v1.TupleData(kinds=b"n", values=(None,)))
    truncate = v1.Truncate(options=0, relation_ids=(Oid(1), Oid(2)))

    class Objects(dict[Any, Any]):
        def __contains__(self, key: object) -> bool:
            return True

    def change(name: str, value: Any) -> Callable[[Any], None]:
        return lambda decoder: setattr(decoder, name, value)

    changes: list[Callable[[Any], None]] = [
        change("described", {"Relation": Objects(), "Type": {}}), change("described", {}), change("described", None),
        change("described", {"Relation": {1: None}, "Type": {}}), change("encoding", "no such"),
        change("streaming", "x"), lambda decoder: delattr(decoder, "streaming"), lambda decoder: delattr(decoder, "block"),
        lambda decoder: delattr(decoder, "described"), lambda decoder: delattr(decoder, "encoding"),
    ]  # fmt: skip
    for changed in changes:
        pair = _both(1)
        for decoder in pair:
            changed(decoder)
        for message in (relation, insert, truncate):
            native_outcome = _outcome(pair[0].decode, message.build())
            with _in_python():
                assert native_outcome == _outcome(pair[1].decode, message.build())


def test_subclasses_may_replace_what_they_inherit() -> None:
    class Streaming(Decoder[Any]):
        @property
        def streaming(self) -> bool:  # type: ignore[override]
            return False

        @streaming.setter
        def streaming(self, value: bool) -> None:
            assert isinstance(value, bool)

    class Counting(Decoder[Any]):
        count = 0

        def decode(self, data: Any) -> Any:
            self.count += 1
            return super().decode(data)

    _, arguments, messages = next(session for session in _sessions() if session[0] == 1)
    plain, streaming = Decoder(1, **arguments), Streaming(1, **arguments)
    counting = Counting(1, **arguments)
    for data in messages[:20]:
        assert plain.decode(data) == streaming.decode(data) == counting.decode(bytearray(data))
    assert counting.count == 20


@pytest.mark.parametrize(
    "copied", [lambda item: pickle.loads(pickle.dumps(item)), copy.deepcopy], ids=["pickle", "copy"]
)
def test_a_copy_goes_on_alone(copied: Callable[[Any], Any]) -> None:
    version, arguments, messages = _sessions()[-1]
    native, other = _both(version, **arguments)
    for data in messages[:100]:
        _agree(native, other, data)
    native.note = "own"
    successor = copied(native)
    assert successor.note == "own"
    state = copy.deepcopy(_state(native))
    for data in messages[100:200]:
        _agree(successor, other, data)
    assert _state(native) == state


def test_an_interruption_changes_nothing() -> None:
    def decode(data: bytes, errors: str = "strict") -> tuple[str, int]:
        raise KeyboardInterrupt

    def find(name: str) -> codecs.CodecInfo | None:
        return codecs.CodecInfo(codecs.latin_1_encode, decode, name=name) if name == "interrupted" else None

    codecs.register(find)
    try:
        decoder = Decoder(1, encoding="interrupted")
        state = copy.deepcopy(_state(decoder))
        with pytest.raises(KeyboardInterrupt):
            decoder.decode(v1.Type(type_id=Oid(1), namespace="", name="t").build())
        assert _state(decoder) == state
    finally:
        codecs.unregister(find)


def _table() -> Any:
    layouts = [layout for layout in LOGICALREP.messages if layout.is_sent_in(4, {})]
    return session_table(Decoder, [(layout, 4, PARSE[4]) for layout in layouts])


def test_a_table_of_another_form_is_refused() -> None:
    """An exception, and never a crash, neither then nor when it decodes all the same."""
    module: Any = importlib.import_module("logicalrep_native")
    chance, message_table = random.Random(8), _table()
    sessions = [session for session in _sessions() if session[0] == 4]
    refused = decoded = 0
    for _ in range(3000):
        try:
            decode = module.Decoding(altered(message_table, chance)).decode
        except (TypeError, ValueError, OverflowError):
            refused += 1
            continue
        _, arguments, messages = chance.choice(sessions)
        decoder: Any = Decoder(4, **arguments)
        for data in messages[:5]:
            with suppress(TypeError):
                decoded += decode(decoder, data) is not None
    assert min(refused, decoded) > 300


def test_other_arguments_are_refused() -> None:
    decode = importlib.import_module("logicalrep_native").Decoding(_table()).decode
    for arguments in ((), (Decoder(4),), (None, b"B"), (object(), b"B"), (Decoder(4), b"B", 1), (_table(), b"B")):
        with pytest.raises(TypeError, match="decode takes a decoder of the session and bytes"):
            decode(*arguments)
    for data in (None, "B", bytearray(b"B"), b"", b"B", b"?"):
        assert decode(Decoder(4), data) is None


@pytest.mark.slow
def test_nothing_is_leaked() -> None:
    chance, sessions = random.Random(3), _sessions()
    rounds = [
        (version, arguments, messages[:60] + [_damaged(data, chance) for data in messages[:20]])
        for version, arguments, messages in sessions
    ]

    def everything() -> None:
        for version, arguments, messages in rounds:
            decoder: Any = Decoder(version, **arguments)
            for data in messages:
                with suppress(DecodeError):
                    decoder.decode(data)
        gc.collect()

    for _ in range(3):
        everything()
    old_counts = sys.getallocatedblocks(), sys.getrefcount(None), sys.getrefcount("stream")
    for _ in range(3):
        everything()
    new_counts = sys.getallocatedblocks(), sys.getrefcount(None), sys.getrefcount("stream")
    assert max(abs(new - old) for new, old in zip(new_counts, old_counts, strict=True)) < 100


def test_every_allocation_may_fail() -> None:
    module: Any = importlib.import_module("logicalrep_native")
    message_table, failures = _table(), 0
    for number, (_, has_raised) in enumerate(failing_calls(module.Decoding, message_table)):
        if not has_raised and number > 0:
            break
        failures += 1
    assert failures > 2
    decode = module.Decoding(message_table).decode
    _, arguments, messages = next(session for session in _sessions() if session[0] == 4)
    decoder: Any = Decoder(4, **arguments)
    for data in messages[:60]:
        state = copy.deepcopy(_state(decoder))
        for message, _ in failing_calls(decode, decoder, data):
            if message is not None:
                break
            failures += 1
            assert _state(decoder) == state
    assert failures > 200
