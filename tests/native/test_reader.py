"""The native reader: as the parser in Python on what servers sent and on damaged bytes, and safe with whatever it gets."""

from __future__ import annotations

import dataclasses
import functools
import gc
import importlib
import random
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from construct import ConstructError

from logicalrep import DecodeError, Oid, v1, v4, walsender
from logicalrep_protocol.layouts import LOGICALREP, WALSENDER
from logicalrep_runtime.native import TABLE_NUMBER, reader, table
from logicalrep_runtime.operations import Bytes, Choose, Conditional, Measure, Operation, Repeat, Text
from tests.native.installed import needs_native
from tests.native.tables import CLASSES, altered
from tests.protocol.agreement import VERSIONS, attempt, natively_alike
from tests.protocol.captured import capture_name, collected, read, selected

pytestmark = needs_native


def _reader(message_table: Any) -> Any:
    return importlib.import_module("logicalrep_native").Reader(message_table)


def _captures() -> list[pytest.ParameterSet]:
    """A session of each version, and all as thorough tests."""
    newest = {path.name[:2]: path for path in selected()}
    paths = [path for path in collected() if path not in newest.values()]
    first = [pytest.param(path, id=capture_name(path)) for path in newest.values()]
    return [*first, *(pytest.param(path, id=capture_name(path), marks=pytest.mark.thorough) for path in paths)]


def _sessions(path: Path) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
    """The messages of a capture, each with the version that has its layout and the state of the session."""
    capture = read(path)
    for streaming, data in capture.with_state():
        layout = LOGICALREP.message(data[0])
        assert layout is not None
        state = {"streaming": streaming, "parallel": capture.parallel, "encoding": capture.encoding}
        yield max(capture.version, layout.since), data, state


def _damaged(data: bytes, chance: random.Random) -> bytes:
    """A message with a byte changed, taken out or put in, cut, or with another number in it."""
    damaged = bytearray(data)
    place = chance.randrange(len(damaged))
    match chance.randrange(5):
        case 0:
            damaged[place] = chance.randrange(256)
        case 1:
            del damaged[place:]
        case 2:
            damaged.insert(place, chance.randrange(256))
        case 3:
            damaged[place : place + 4] = bytes(chance.choice((0, 1, 127, 128, 255)) for _ in range(4))
        case _:
            del damaged[place : place + chance.randrange(1, 5)]
    return bytes(damaged)


@pytest.mark.parametrize("path", _captures())
def test_it_reads_all_that_servers_sent_and_refuses_what_python_refuses(path: Path) -> None:
    chance = random.Random(path.name)
    counts = {version: module.native_read.__self__.refused for version, module in VERSIONS.items()}
    messages = list(_sessions(path))[:3000]
    for version, data, state in messages:
        natively_alike(data, version, attempt(data, version, **state), **state)
    # Nothing was left to Python.
    assert {version: module.native_read.__self__.refused for version, module in VERSIONS.items()} == counts
    refused = 0
    for version, data, state in messages:
        damaged = _damaged(data, chance)
        other = state | {"streaming": chance.random() < 0.3, "parallel": chance.random() < 0.5}
        result = attempt(damaged, version, **other)
        natively_alike(damaged, version, result, **other)
        refused += isinstance(result, DecodeError)
    assert refused or len(messages) < 20


def test_messages_of_the_envelope_from_both_sides() -> None:
    for sender, native in (("server", walsender.native_read_of_server), ("client", walsender.native_read_of_client)):
        for layout in WALSENDER.messages:
            data = layout.tag.encode() + bytes(range(1, 60))
            for size in range(1, len(data)):
                expected = _in_python(data[:size], sender)
                assert native is not None
                assert native(data[:size], "") == expected


def _in_python(data: bytes, sender: Any) -> Any:
    """The message of the envelope, read by its Struct; None for none."""
    struct: Any = walsender.server_message if sender == "server" else walsender.client_message
    try:
        return struct.parse(data)
    except ConstructError:
        return None


@pytest.mark.parametrize("version", VERSIONS)
def test_every_message_has_a_program(version: int) -> None:
    """None is left to Python, as an operation of it were unknown."""
    message_table = table(LOGICALREP, version, vars(VERSIONS[version]), "server")
    assert [chr(tag) for tag, _ in message_table[1]] == [
        message.tag for message in LOGICALREP.messages if message.since <= version
    ]
    for sender in ("server", "client"):
        message_table = table(WALSENDER, 1, vars(walsender), sender)
        assert [chr(tag) for tag, _ in message_table[1]] == [
            message.tag for message in WALSENDER.messages if message.sender == sender
        ]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Nullable(Measure):
    """A measure of which something is said that tables have no form for."""

    may_be_null: bool = False


def _with(first: Operation) -> tuple[str, list[str]]:
    """The tags of a table whose Begin has an additional operation, and the tags of all other messages."""
    begin, *other_messages = LOGICALREP.messages
    changed = dataclasses.replace(begin, operations=(*begin.operations, first))
    protocol = dataclasses.replace(LOGICALREP, messages=(changed, *other_messages))
    return "".join(chr(tag) for tag, _ in table(protocol, 4, vars(VERSIONS[4]), "server")[1]), [
        message.tag for message in other_messages
    ]


@pytest.mark.parametrize(
    "operation",
    [
        Nullable(name="length", width=4, signed=True, of="value", may_be_null=True),
        Measure(name="length", width=4, signed=True, of=""),
        Bytes(name="xid", count="nothing"),
        Repeat(name="xid", count="", body=Text(name="xid")),
        Conditional(name="x", fact="two_phase", body=(Text(name="xid"),)),
        Choose(name="xid", part="Cell"),
    ],
    ids=lambda operation: type(operation).__name__,
)
def test_a_message_with_something_unknown_is_left_to_python(operation: Operation) -> None:
    tags, other_tags = _with(operation)
    assert tags == "".join(other_tags)
    known_tags, other_tags = _with(Nullable(name="length", width=4, signed=True, of="value"))
    assert known_tags == "".join(["B", *other_tags])


def test_messages_with_ambiguous_tags_are_read_in_python() -> None:
    twice = dataclasses.replace(LOGICALREP, messages=(*LOGICALREP.messages, LOGICALREP.messages[0]))
    without = dataclasses.replace(LOGICALREP, messages=(dataclasses.replace(LOGICALREP.messages[0], tag=""),))
    for protocol, is_read in ((LOGICALREP, True), (twice, False), (without, False)):
        assert (reader(protocol, 4, vars(VERSIONS[4])) is not None) is is_read


@dataclasses.dataclass(frozen=True, slots=True)
class Wide:
    """A class with many attributes, for tables that no protocol has yet."""

    a: Any
    b: Any
    c: Any


DESCRIPTORS = tuple(getattr(Wide, name) for name in ("a", "b", "c"))


def _wide(*operations: Any, measures: int = 0) -> Any:
    return _reader((TABLE_NUMBER, ((77, (Wide, DESCRIPTORS, measures, (("constant", b"M"), *operations))),))).read


def test_a_layout_may_have_many_measures() -> None:
    measures = tuple(("measure", index, 1, False) for index in range(40))
    read = _wide(*measures, ("bytes", 0, 39), ("bytes", 1, 0), ("rest", 2), measures=40)
    data = b"M" + bytes([2, *range(38), 3]) + b"abcdefg"
    assert read(data, "utf-8") == Wide(b"abc", b"de", b"fg")


def test_no_count_is_believed_beyond_the_message() -> None:
    greatest = b"M\x7f\xff\xff\xff\xff\xff\xff\xff"
    measure = ("measure", 0, 8, True)
    item = (Wide, DESCRIPTORS, 0, (("text", 0), ("text", 1), ("text", 2)))
    for operation in (
        ("bytes", 0, 0),
        ("integers", 0, 0, 8, True, None, ()),
        ("groups", 0, 0, item),
        ("choices", 0, 1, 0, b"t", b"n", 8),
    ):
        assert _wide(measure, operation, measures=1)(greatest, "utf-8") is None
        assert _wide(measure, operation, measures=1)(b"M" + b"\xff" * 8, "utf-8") is None


def test_depth_is_bounded() -> None:
    operations: tuple[Any, ...] = (("rest", 0),)
    for _ in range(40):
        operations = (("ahead", b"x", operations, ()),)
    with pytest.raises(ValueError, match="the table has a depth that is out of range"):
        _wide(*operations)


def test_errors_other_than_of_the_bytes_are_passed_on() -> None:
    class Neither:
        def __bool__(self) -> bool:
            raise KeyboardInterrupt

    read: Any = VERSIONS[4].native_read  # type: ignore[attr-defined]
    insert = v4.Insert(relation_id=Oid(1), new=v1.TupleData(kinds=b"n", values=(None,)))
    with pytest.raises(KeyboardInterrupt):
        read(insert.build(), "utf-8", Neither(), False)
    for arguments in (
        (),
        (b"B",),
        (b"B", "utf-8"),
        ("B", "utf-8", 0, 0),
        (b"B", b"utf-8", 0, 0),
        (bytearray(b"B"), "utf-8", 0, 0),
    ):
        with pytest.raises(TypeError, match="read takes bytes, the name of an encoding, and 2 session facts"):
            read(*arguments)
    for encoding in ("", "no such", "utf-8\0", "rot13", "\udc80"):
        assert read(b"O" + bytes(8) + b"name\0", encoding, False, False) is None
    assert read(b"O" + bytes(8) + "é\0".encode("latin-1"), "latin-1", False, False).name == "é"


def test_a_table_of_another_form_is_refused() -> None:
    """Whatever stands in it: an exception, and never a crash, neither then nor when a reader was made all the same."""
    message_table = table(LOGICALREP, 4, vars(VERSIONS[4]), "server")
    chance = random.Random(5)
    with_messages = [data for _, data, _ in _sessions(selected()[0])][:50]
    refused = read_all = 0
    for _ in range(3000):
        try:
            read = _reader(altered(message_table, chance)).read
        except (TypeError, ValueError, OverflowError):
            refused += 1
            continue
        for data in with_messages[:5]:
            try:
                read(data, "utf-8", False, False, *[False] * 62)
            except (TypeError, OverflowError, AttributeError):
                continue
            read_all += 1
    assert refused > 500
    assert read_all > 500


@pytest.mark.parametrize("class_", CLASSES, ids=lambda class_: class_.__name__)
def test_an_instance_is_made_as_its_class_can_be_or_not_at_all(class_: Any) -> None:
    """Of an integer's class, and of a message's: neither ends the interpreter, also not when the instance goes."""
    makers: tuple[Any, ...] = (
        functools.partial(_wide, ("integer", 0, 1, False, class_, ()), ("rest", 1), ("rest", 2)),
        lambda: _reader((TABLE_NUMBER, ((77, (class_, (), 0, (("constant", b"M"),))),))).read,
    )
    for make, data in zip(makers, (b"M\1", b"M"), strict=True):
        with suppress(TypeError, ValueError):
            instance = make()(data, "utf-8")
            with suppress(AttributeError):
                assert repr(instance)
            del instance
        # The oldest generation, which has all modules and tests, does not have the instance.
        gc.collect(1)


def test_a_class_that_python_refuses_to_make_is_refused() -> None:
    with pytest.raises(TypeError, match=r"int.__new__\(bool\) is not safe"):
        _wide(("integer", 0, 1, False, bool, ()))
    for class_ in (type("Table", (dict,), {}), functools.partial, type("Error", (Exception,), {})):
        with pytest.raises((TypeError, ValueError), match=r"is not safe|a class that is out of range"):
            _reader((TABLE_NUMBER, ((77, (class_, (), 0, (("constant", b"M"),))),)))


@pytest.mark.slow
def test_nothing_is_leaked() -> None:
    messages = list(_sessions(selected()[0]))[:300]
    chance = random.Random(1)
    sent = [(data, version, state) for version, data, state in messages]
    sent += [(_damaged(data, chance), version, state) for data, version, state in sent]
    message_table = table(LOGICALREP, 4, vars(VERSIONS[4]), "server")

    def everything() -> None:
        for data, version, state in sent:
            VERSIONS[version].native_read(data, state["encoding"], state["streaming"], state["parallel"])
        for _ in range(10):
            _reader(message_table)
            with pytest.raises(ValueError, match="out of range"):
                _reader((TABLE_NUMBER, (*message_table[1][:-1], (255, (Wide, DESCRIPTORS, 0, (("text", 3),))))))
        gc.collect()

    for _ in range(3):
        everything()
    old_counts = sys.getallocatedblocks(), sys.getrefcount(None)
    for _ in range(5):
        everything()
    new_counts = sys.getallocatedblocks(), sys.getrefcount(None)
    assert max(abs(new_count - old_count) for new_count, old_count in zip(new_counts, old_counts, strict=True)) < 100


def test_every_allocation_may_fail() -> None:
    testcapi = pytest.importorskip("_testcapi")
    if not hasattr(testcapi, "set_nomemory"):
        pytest.skip("this Python has no allocator for tests")
    message_table = table(LOGICALREP, 4, vars(VERSIONS[4]), "server")
    first = {data[:1]: (version, data, state) for version, data, state in _sessions(_with_all_messages())}
    assert len(first) == 19
    messages = [VERSIONS[4].native_read(data, "utf-8", False, False) for _, data, _ in first.values()]
    assert len(messages) == 19

    def failing(function: Any, *arguments: Any) -> int:
        """Call it with each allocation failing once; return how many there are."""
        expected = function(*arguments)
        for number in range(1, 10_000):
            returned = error = None
            testcapi.set_nomemory(number, number + 1)
            try:
                returned = function(*arguments)
            except MemoryError as raised:
                error = raised
            finally:
                testcapi.remove_mem_hooks()
            if error is None:
                assert type(returned) is type(expected)
                return number
        raise AssertionError("it never ends")

    allocations = sum(
        failing(VERSIONS[4].native_read, data, state["encoding"], state["streaming"], state["parallel"])
        for _, data, state in first.values()
    )
    assert allocations > 19 * 3
    assert failing(_reader(message_table).__class__, message_table) > 50


def _with_all_messages() -> Path:
    return next(path for path in collected() if capture_name(path) == "pg18/twophase/v4-live.walsender")
