"""The native writer: the bytes of the writer in Python, or nothing, for right, wrong and hostile attributes."""

from __future__ import annotations

import codecs
import dataclasses
import gc
import importlib
import os
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from typing import Any

import pytest

from logicalrep import EncodeError, Lsn, Oid, TimestampTz, TransactionId, v1, v2, v3, v4, walsender
from logicalrep_protocol.layouts import LOGICALREP
from logicalrep_runtime.native import table
from tests.native.allocations import failing_calls
from tests.native.installed import needs_native
from tests.native.tables import altered
from tests.protocol.strategies import captured

pytestmark = needs_native

_MODULES: tuple[Any, ...] = (v1, v2, v3, v4, walsender)
_CASES = int(os.environ.get("CASES", "6000"))
"""The altered messages of a test; `CASES=1000000` was tried."""


@contextmanager
def _in_python() -> Iterator[None]:
    functions = [
        (module, name, function)
        for module in _MODULES
        for name, function in vars(module).items()
        if name.partition("_of_")[0] == "native_write"
    ]
    try:
        for module, name, _ in functions:
            setattr(module, name, None)
        yield
    finally:
        for module, name, function in functions:
            setattr(module, name, function)


def _outcome(build: Callable[..., Any], *arguments: Any) -> Any:
    """Return the bytes that are built, or the type and text of the error."""
    try:
        return build(*arguments)
    except Exception as error:
        return type(error), str(error)


def _native(message: Any, encoding: str = "utf-8") -> bytes | None:
    """Return the bytes of the native writer alone."""
    module: Any = sys.modules[type(message).__module__]
    names = [name for name in vars(module) if name.partition("_of_")[0] == "native_write"]
    return next(filter(None, (getattr(module, name)(message, encoding) for name in names)), None)


def _messages() -> list[tuple[str, Any]]:
    """Return messages of all kinds, each with an encoding."""
    parse = {version: module.parse for version, module in enumerate((v1, v2, v3, v4), 1)}
    messages = [(state.encoding, parse[state.version](data, **state.arguments)) for state, data in captured()]
    envelope: dict[str, Any] = {"end_lsn": Lsn(5), "send_timestamp": TimestampTz(-1)}
    messages += [
        ("utf-8", walsender.XLogData(start_lsn=Lsn(1), payload=b"payload", **envelope)),
        ("utf-8", walsender.PrimaryKeepaliveMessage(reply_requested=True, **envelope)),
        ("utf-8", walsender.StandbyStatusUpdate(
            written_lsn=Lsn(1), flushed_lsn=Lsn(2), applied_lsn=Lsn((1 << 64) - 1),
            send_timestamp=TimestampTz(7), reply_requested=False,
        )),
    ]  # fmt: skip
    return messages


def test_it_writes_every_message() -> None:
    messages = _messages()
    assert {type(message).__name__ for _, message in messages} >= {layout.class_name for layout in LOGICALREP.messages}
    for encoding, message in messages:
        data = _native(message, encoding)
        with _in_python():
            assert _build(message, encoding) == data


def _build(message: Any, encoding: str) -> bytes:
    data: bytes = (
        message.build() if type(message).__module__ == walsender.__name__ else message.build(encoding=encoding)
    )
    return data


class _Lying(int):
    """A number that compares as it likes."""

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


class _Counting(int):
    def __index__(self) -> int:
        return 5


class _Indexed:
    def __index__(self) -> int:
        return 1


class _Str(str):
    __slots__ = ()

    def encode(self, *arguments: Any) -> bytes:
        return b"other"


class _Letter(StrEnum):
    FULL = "f"


class _Bytes(bytes):
    pass


class _Tuple(tuple[Any, ...]):
    __slots__ = ()


class _Row(v1.TupleData):
    pass


_ROW = v1.TupleData(kinds=b"tn", values=(b"a", None))
_COLUMN = v1.Column(flags=1, name="c", type_id=Oid(25), type_modifier=-1)
_ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, 2, -1, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 1 << 31, (1 << 31) - 1, (1 << 32) - 1, 1 << 32,
    1 << 63, (1 << 63) - 1, -(1 << 63), -(1 << 63) - 1, (1 << 64) - 1, 1 << 64, 1 << 200, 1.0, 1j, _Lying(0), _Lying(1 << 64),
    _Counting(3), _Indexed(), "", "d", "n", "K", "O", "N", "f", "x", "\0", "a\0", "text", "é", "Ā", "€", "\ud800", "d" * 2000,
    _Str("d"), _Str("name"), _Letter.FULL, v1.ReplicaIdentity.INDEX, v1.ReplicaIdentity, b"", b"t", b"tn", b"nt", b"nu", b"x",
    b"\0", b"ttt", b"value", b"b" * 1024, bytearray(b"tn"), memoryview(b"n"), _Bytes(b"tn"), (), (None,), (b"a", None), [b"a", None],
    (None, b"a"), (None, None), (b"a", "b"), (b"a", b"b", b"c"), (bytearray(b"a"), None), (_Bytes(b"a"), None), _Tuple((b"a", None)),
    (b"a" * 1100, None), (1, 2), [1, 2], (1, None), (1 << 32,), (_Lying(1),), range(3), {1: 2}, {1, 2}, iter((1, 2)), _ROW,
    _Row(kinds=b"n", values=(None,)), (_ROW,), _COLUMN, (_COLUMN,), [_COLUMN], (_COLUMN, _ROW), (_COLUMN, None), object(), int, object,
    Lsn(0), Lsn(7), TimestampTz(-1), TimestampTz(1 << 70),
)  # fmt: skip
"""Values that an attribute may have, or may not."""


def _with_odd(value: Any, chance: random.Random) -> Any:
    """Return a message or part with another value of an attribute, at any depth; rarely without the attribute."""
    names = [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]
    copied = object.__new__(type(value))
    name = chance.choice(names) if names else ""
    for own in names:
        previous = getattr(value, own)
        if own != name:
            object.__setattr__(copied, own, previous)
        elif isinstance(previous, tuple) and previous and chance.random() < 0.6:
            place = chance.randrange(len(previous))
            item = previous[place]
            other = _with_odd(item, chance) if dataclasses.is_dataclass(item) else chance.choice(_ODD)
            object.__setattr__(copied, own, (*previous[:place], other, *previous[place + 1 :]))
        elif dataclasses.is_dataclass(previous) and chance.random() < 0.6:
            object.__setattr__(copied, own, _with_odd(previous, chance))
        elif isinstance(previous, bytes) and previous and chance.random() < 0.4:
            place = chance.randrange(len(previous))
            object.__setattr__(
                copied, own, previous[:place] + chance.choice((b"", b"n", b"t", b"b\0")) + previous[place + 1 :]
            )
        elif chance.random() < 0.99:
            object.__setattr__(copied, own, chance.choice(_ODD))
    return copied


def test_wrong_attributes_have_the_bytes_or_the_error_of_python() -> None:
    chance, messages = random.Random(os.environ.get("SEED", "1")), _messages()
    written = refused = 0
    for _ in range(_CASES):
        encoding, message = chance.choice(messages)
        for _ in range(chance.choice((1, 1, 2))):
            message = _with_odd(message, chance)
        encoding = (
            chance.choice((encoding, "utf-8", "latin-1", "rot13", "no such", "utf-8\0", ""))
            if chance.random() < 0.1
            else encoding
        )
        natively = _outcome(_build, message, encoding)
        with _in_python():
            assert natively == _outcome(_build, message, encoding), (message, encoding)
        written += isinstance(natively, bytes)
        refused += isinstance(natively, tuple)
    assert min(written, refused) > _CASES / 20


@pytest.mark.parametrize("size", [0, 1, 1013, 1014, 1015, 1023, 1024, 1025, 70_000])
def test_a_message_of_any_length_is_written_whole(size: int) -> None:
    message = walsender.XLogData(
        start_lsn=Lsn(1),
        end_lsn=Lsn(2),
        send_timestamp=TimestampTz(3),
        payload=bytes(range(1, 8)) * size,
    )
    insert = v2.Insert(
        xid=TransactionId(7),
        relation_id=Oid(1),
        new=v1.TupleData(kinds=b"bntu", values=(b"x" * size, None, b"y" * 9, None)),
    )
    for whole in (message, insert):
        data = _native(whole)
        assert data is not None
        with _in_python():
            assert data == whole.build()


def test_counts_have_the_limits_of_their_widths() -> None:
    for count, is_written in ((32767, True), (32768, False)):
        row = v1.Insert(relation_id=Oid(1), new=v1.TupleData(kinds=b"n" * count, values=(None,) * count))
        relation = v1.Relation(
            relation_id=Oid(1),
            namespace="",
            name="",
            replica_identity=v1.ReplicaIdentity.FULL,
            columns=(_COLUMN,) * count,
        )
        for message in (row, relation):
            assert (_native(message) is not None) is is_written
            with _in_python():
                expected = _outcome(message.build)
            assert _outcome(message.build) == expected


def test_a_codec_may_change_the_message() -> None:
    """The bytes are counted before they are written, and a codec in Python runs both times."""
    origin = v1.Origin(origin_lsn=Lsn(1), name="o" * 2000)
    sizes = iter([2000, 10, 2001, 2000])

    def encode(text: str, errors: str = "strict") -> tuple[bytes, int]:
        object.__setattr__(origin, "name", "another" * 300)
        return b"e" * next(sizes), len(text)

    def find(name: str) -> codecs.CodecInfo | None:
        return codecs.CodecInfo(encode, codecs.latin_1_decode, name=name) if name == "changing" else None

    codecs.register(find)
    try:
        assert _native(origin, "changing") is None
        assert _native(origin, "changing") is None
    finally:
        codecs.unregister(find)


def test_another_error_of_a_codec_is_passed_on() -> None:
    def encode(text: str, errors: str = "strict") -> tuple[bytes, int]:
        raise KeyboardInterrupt

    def find(name: str) -> codecs.CodecInfo | None:
        return codecs.CodecInfo(encode, codecs.latin_1_decode, name=name) if name == "interrupted" else None

    codecs.register(find)
    try:
        with pytest.raises(KeyboardInterrupt):
            _native(v1.Origin(origin_lsn=Lsn(1), name="o"), "interrupted")
    finally:
        codecs.unregister(find)


def test_other_arguments_are_refused() -> None:
    write: Any = v1.native_write
    for arguments in ((), (1,), (1, 2), (1, b"utf-8"), (1, "utf-8", 3)):
        with pytest.raises(TypeError, match="write takes a message and the name of an encoding"):
            write(*arguments)
    for message in (None, 5, _ROW, _COLUMN, v2.StreamStop, object()):
        assert write(message, "utf-8") is None
    with pytest.raises(EncodeError):
        v1.Origin(origin_lsn=Lsn(1), name="é").build(encoding="ascii")


def test_a_table_of_another_form_writes_nothing_wrong() -> None:
    """Bytes, None or an exception, and never a crash."""
    message_table = table(LOGICALREP, 4, vars(v4), v4.message)
    chance, messages = random.Random(6), _messages()
    reader: Any = importlib.import_module("logicalrep_native").Reader
    written = refused = 0
    for _ in range(3000):
        try:
            write = reader(altered(message_table, chance)).write
        except (TypeError, ValueError, OverflowError):
            refused += 1
            continue
        for encoding, message in chance.sample(messages, 20):
            written += write(message, encoding) is not None
    assert min(written, refused) > 500


@pytest.mark.slow
def test_nothing_is_leaked() -> None:
    chance, messages = random.Random(1), _messages()
    messages += [(encoding, _with_odd(message, chance)) for encoding, message in messages * 3]
    messages += [("no such", message) for _, message in messages]

    def everything() -> None:
        for encoding, message in messages:
            with suppress(AttributeError):
                _native(message, encoding)
        gc.collect()

    for _ in range(3):
        everything()
    old_counts = sys.getallocatedblocks(), sys.getrefcount(None), sys.getrefcount(_COLUMN), sys.getrefcount(_ROW)
    for _ in range(5):
        everything()
    new_counts = sys.getallocatedblocks(), sys.getrefcount(None), sys.getrefcount(_COLUMN), sys.getrefcount(_ROW)
    assert max(abs(new - old) for new, old in zip(new_counts, old_counts, strict=True)) < 100


def test_every_allocation_may_fail() -> None:
    row = v1.TupleData(kinds=b"t", values=(b"x" * 3000,))
    messages: list[tuple[str, Any]] = [*_messages(), ("utf-8", v1.Insert(relation_id=Oid(1), new=row))]
    first = {(type(message), encoding): message for encoding, message in messages}
    failures = 0
    for (_, encoding), message in first.items():
        module: Any = sys.modules[type(message).__module__]
        is_client = isinstance(message, walsender.StandbyStatusUpdate)
        name = "native_write" if module is not walsender else f"native_write_of_{'client' if is_client else 'server'}"
        write, data = getattr(module, name), _native(message, encoding)
        for written, has_raised in failing_calls(write, message, encoding):
            if not has_raised and written == data:
                break
            failures += 1
            assert has_raised or written is None
    assert failures >= len(first)
