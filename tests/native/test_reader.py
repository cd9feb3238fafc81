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
from types import ModuleType
from typing import Any

import pytest
from construct import ConstructError

from logicalrep import DecodeError, Oid, v1, v4, walsender
from logicalrep_protocol import basebackup, copy_binary
from logicalrep_protocol.basebackup.layouts import BASEBACKUP
from logicalrep_protocol.layouts import COPY_BINARY, LOGICALREP, WALSENDER
from logicalrep_protocol.pgwire import v3_0, v3_2
from logicalrep_protocol.pgwire.layouts import PGWIRE
from logicalrep_runtime.native import TABLE_NUMBER, table
from logicalrep_runtime.operations import Bytes, Choose, Conditional, Measure, Operation, Repeat, Text
from tests.native.allocations import failing_calls
from tests.native.installed import needs_native
from tests.native.tables import CLASSES, altered
from tests.protocol.agreement import VERSIONS, attempt, natively_alike
from tests.protocol.captured import capture_name, collected, read, selected
from tests.protocol.conversation_reading import RECORDED, connections, decoded
from tests.protocol.damage import damaged

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
        copy = damaged(data, chance)
        other = state | {"streaming": chance.random() < 0.3, "parallel": chance.random() < 0.5}
        result = attempt(copy, version, **other)
        natively_alike(copy, version, result, **other)
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
    module = VERSIONS[version]
    assert _tags(LOGICALREP, module, module.message, version) == [
        message.tag for message in LOGICALREP.messages if message.since <= version
    ]
    for sender, struct in (("server", walsender.server_message), ("client", walsender.client_message)):
        assert _tags(WALSENDER, walsender, struct) == [
            message.tag for message in WALSENDER.messages if message.sender == sender
        ]


def _tags(protocol: Any, module: ModuleType, struct: Any, version: int = 1) -> list[str]:
    """The first bytes of the messages that have a program."""
    _, messages = table(protocol, version, vars(module), struct)
    return [first.decode() for first, _, _, program in messages if program is not None]


@pytest.mark.parametrize("module", [v3_0, v3_2, copy_binary, basebackup.v1], ids=lambda module: module.__name__)
def test_every_message_of_the_other_formats_has_a_program(module: Any) -> None:
    protocol = {v3_0: PGWIRE, v3_2: PGWIRE, copy_binary: COPY_BINARY, basebackup.v1: BASEBACKUP}[module]
    structs = [
        getattr(module, name) for name in ("message", "server_message", "client_message") if name in module.__all__
    ]
    programs = [entry[3] for struct in structs for entry in table(protocol, 1, vars(module), struct)[1]]
    assert None not in programs
    assert {program[0].__name__ for program in programs} == {
        message.class_name for message in protocol.messages if message.since == 1
    }


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Nullable(Measure):
    """A measure of which something is said that tables have no form for."""

    may_be_null: bool = False


def _with(first: Operation) -> tuple[str, list[str]]:
    """The tags of a table whose Begin has an additional operation, and the tags of all other messages."""
    begin, *other_messages = LOGICALREP.messages
    changed = dataclasses.replace(begin, operations=(*begin.operations, first))
    protocol = dataclasses.replace(LOGICALREP, messages=(changed, *other_messages))
    return "".join(_tags(protocol, v4, v4.message, 4)), [message.tag for message in other_messages]


@pytest.mark.parametrize(
    "operation",
    [
        Nullable(name="length", width=4, signed=True, of="value", may_be_null=True),
        Measure(name="length", width=4, signed=True, of="", order="little"),
        Bytes(name="xid", count="nothing"),
        Repeat(name="xid", count="nothing", body=Text(name="xid")),
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


@dataclasses.dataclass(frozen=True, slots=True)
class Wide:
    """A class with many attributes, for tables that no protocol has yet."""

    a: Any
    b: Any
    c: Any


DESCRIPTORS = tuple(getattr(Wide, name) for name in ("a", "b", "c"))


def _wide(*operations: Any, measures: int = 0) -> Any:
    return _reader(_one(Wide, DESCRIPTORS, measures, (("constant", b"M"), *operations))).read


def _one(*program: Any) -> Any:
    """A table of one message."""
    return TABLE_NUMBER, ((b"M", None, (), program),)


def test_a_layout_may_have_many_measures() -> None:
    measures = tuple(("measure", index, 1, False, False) for index in range(40))
    read = _wide(*measures, ("bytes", 0, 39), ("bytes", 1, 0), ("rest", 2), measures=40)
    data = b"M" + bytes([2, *range(38), 3]) + b"abcdefg"
    assert read(data, "utf-8") == Wide(b"abc", b"de", b"fg")


def test_no_count_is_believed_beyond_the_message() -> None:
    greatest = b"M\x7f\xff\xff\xff\xff\xff\xff\xff"
    item = (Wide, DESCRIPTORS, 0, (("text", 0), ("text", 1), ("text", 2)))
    for operation in (
        ("bytes", 0, 0),
        ("fixed", 0, 1 << 29),
        ("items", 0, 0, ("integer", 0, 8, True, None, ())),
        ("items", 0, 0, ("value", 0, 8, True, ((1, 1),))),
        ("items", 0, 0, ("character", 0)),
        ("items", 0, 0, ("text", 0)),
        ("items", 0, 0, ("group", 0, item)),
        ("until", 0, b"\0", True, ("text", 0)),
        ("until", 0, b"\xff\xfe", False, ("group", 0, item)),
        ("choices", 0, 1, 0, b"t", b"n", 8),
    ):
        # The measure -1 of bytes is no value.
        measure = ("measure", 0, 8, True, operation[0] != "bytes")
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
    of_logicalrep = table(LOGICALREP, 4, vars(v4), v4.message)
    of_pgwire = table(PGWIRE, 2, vars(v3_2), v3_2.server_message)
    chance = random.Random(5)
    sent = [data for _, data, _ in _sessions(selected()[0])][:5]
    sent += [
        v3_2.DataRow(columns=(v3_2.ColumnValue(value=b"1"), v3_2.ColumnValue(value=None))).build(),
        v3_2.ErrorResponse(fields=(v3_2.ErrorField(code="S", text="ERROR"),)).build(),
        v3_2.AuthenticationSASL(mechanisms=("SCRAM-SHA-256",)).build(),
    ]
    refused = read_all = 0
    for number in range(5000):
        try:
            read = _reader(altered(of_pgwire if number % 2 else of_logicalrep, chance)).read
        except (TypeError, ValueError, OverflowError):
            refused += 1
            continue
        for data in sent:
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
        lambda: _reader(_one(class_, (), 0, (("constant", b"M"),))).read,
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
            _reader(_one(class_, (), 0, (("constant", b"M"),)))


@pytest.mark.slow
def test_nothing_is_leaked() -> None:
    messages = list(_sessions(selected()[0]))[:300]
    chance = random.Random(1)
    sent = [(data, version, state) for version, data, state in messages]
    sent += [(damaged(data, chance), version, state) for data, version, state in sent]
    message_table = table(PGWIRE, 2, vars(v3_2), v3_2.server_message)
    conversation = [(data, sender, "messages") for data, sender, _ in _conversation()]
    conversation += [(damaged(data, chance), sender, expected) for data, sender, expected in conversation]

    def everything() -> None:
        for data, version, state in sent:
            VERSIONS[version].native_read(data, state["encoding"], state["streaming"], state["parallel"])
        for data, sender, expected in conversation:
            _pgwire_read(sender)(data, "utf-8", expected)
        for _ in range(10):
            _reader(message_table)
            with pytest.raises(ValueError, match="out of range"):
                _reader((TABLE_NUMBER, (*message_table[1], (b"M", None, (), (Wide, DESCRIPTORS, 0, (("text", 3),))))))
        gc.collect()

    for _ in range(3):
        everything()
    old_counts = sys.getallocatedblocks(), sys.getrefcount(None)
    for _ in range(5):
        everything()
    new_counts = sys.getallocatedblocks(), sys.getrefcount(None)
    assert max(abs(new_count - old_count) for new_count, old_count in zip(new_counts, old_counts, strict=True)) < 100


def test_every_allocation_may_fail() -> None:
    message_table = table(PGWIRE, 2, vars(v3_2), v3_2.server_message)
    first = {data[:1]: (version, data, state) for version, data, state in _sessions(_with_all_messages())}
    assert len(first) == 19
    messages = [VERSIONS[4].native_read(data, "utf-8", False, False) for _, data, _ in first.values()]
    assert len(messages) == 19

    def failing(function: Any, *arguments: Any) -> int:
        """Call it with each allocation failing once; return how many there are."""
        expected = function(*arguments)
        for number, (returned, has_raised) in enumerate(failing_calls(function, *arguments)):
            # The allocator counts from 1 on.
            if number > 0 and not has_raised:
                assert type(returned) is type(expected)
                return number
        raise AssertionError("unreachable")

    allocations = sum(
        failing(VERSIONS[4].native_read, data, state["encoding"], state["streaming"], state["parallel"])
        for _, data, state in first.values()
    )
    assert allocations > 19 * 3
    for data, sender, expected in _conversation():
        assert failing(_pgwire_read(sender), data, "utf-8", expected) > 0
    assert failing(_reader(message_table).__class__, message_table) > 50


def _conversation() -> list[tuple[bytes, str, str]]:
    """The first message of each kind in recorded conversations, its sender, and what the session expected."""
    seen = {
        (type(message).__name__, sender): (whole, sender, facts["expected"])
        for path in RECORDED
        for chunks in connections(path)
        for sender, whole, message, _, facts in decoded(chunks)
    }
    return list(seen.values())


def _pgwire_read(sender: str) -> Any:
    return v3_2.native_read_of_server if sender == "server" else v3_2.native_read_of_client


def _with_all_messages() -> Path:
    return next(path for path in collected() if capture_name(path) == "pg18/twophase/v4-live.walsender")
