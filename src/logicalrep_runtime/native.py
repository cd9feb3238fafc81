"""The native reader of `logicalrep-native`, if installed, which also writes: conversion of layouts to its tables.

`LOGICALREP_NATIVE=0` in the environment turns the native reader off. Each generated `parse` calls the native reader
first, and reads in Python the bytes that it refuses, so that Python raises all errors; so does each `build` with the
attributes that the native reader does not write. Python alone reads and writes messages with an operation, or an
attribute of an operation, that the native reader does not support, and writes messages with a frame.

A table is a pair of its number and its messages. A message has its legal first bytes (none for any), the number of a
session fact with the value that it must have (or None), pairs of the offset and bytes of constants, and its program,
None if Python reads the message. The first message whose conditions hold is read. A program has a class, the
descriptors of the class's attributes, the number of measures, and operations, which refer to attributes and measures by
index:

    ("constant", bytes)                                    ("character", attribute)
    ("integer", attribute, width, signed, wrapper,         ("text", attribute)
        refused values)                                    ("bytes", attribute, measure)
    ("value", attribute, width, signed,                    ("fixed", attribute, size)
        pairs of a value and its object)                   ("rest", attribute)
    ("length", width, signed)                              ("group", attribute, program)
    ("measure", measure, width, signed, nullable)          ("choices", kinds, values, measure, valued kinds,
    ("items", attribute, measure, operation)                   bare kinds, width of a value's size)
    ("until", attribute, bytes at the end, whether         ("fact", number, operations, absent attributes)
        they belong to the list, operation)                ("ahead", bytes, operations, absent attributes)

A session has a table too: see `session_table`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from enum import EnumMeta
from typing import Any, TypeVar, cast

from logicalrep_runtime.any_message import StructChoice, Whole
from logicalrep_runtime.layout import OUTSIDE, MessageLayout, PartLayout, ProtocolLayout
from logicalrep_runtime.layout_words import of_version, tag_of
from logicalrep_runtime.operations import (
    Bytes,
    Choose,
    Conditional,
    Constant,
    Group,
    Measure,
    Operation,
    Operations,
    Repeat,
    Take,
    Text,
)

TABLE_NUMBER = 5
"""The version of the table's format and of the loaders' arguments. A module with another number is not used."""

_LOG = logging.getLogger("logicalrep")
_AnyMessage = TypeVar("_AnyMessage")


def reader(
    protocol: ProtocolLayout, version: int, namespace: Mapping[str, Any], struct: Whole[_AnyMessage]
) -> Callable[..., _AnyMessage | None] | None:
    """Return the native `read(data, encoding, *facts)`, or None. `read` returns None for invalid bytes.

    `struct` is the Struct of any message of one side, with the conditions that identify each.
    """
    module = native_module()
    if module is None:
        return None
    read: Callable[..., _AnyMessage | None] = module.Reader(table(protocol, version, namespace, struct)).read
    return read


def writer(read: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """Return the native `write(message, encoding)` beside a native `read`, or None. `write` returns None for messages
    that Python has to write or refuse."""
    write: Callable[..., Any] | None = None if read is None else cast(Any, read).__self__.write
    return write


SessionReaders = Sequence[tuple[MessageLayout, int, Callable[..., Any]]]
"""The messages of a session, each with its version and this version's `parse`."""


def session_decode(class_: type[Any], readers: SessionReaders) -> Callable[..., Any] | None:
    """Return the native `decode(decoder, data)` of a SessionDecoder's class, or None. `decode` returns None, and has
    changed nothing, for messages that Python has to decode or refuse."""
    module, session = native_module(), session_table(class_, readers)
    decode: Callable[..., Any] | None = None if module is None or session is None else module.Decoding(session).decode
    return decode


def session_table(class_: type[Any], readers: SessionReaders) -> tuple[Any, ...] | None:
    """Return the table of a session, or None if a message has no native reader, or if a subclass replaces a slot.

    A table has the decoder's class, the descriptors of its block, described objects, encoding and facts, the block
    outside of all, and messages. A message has its tag, reader and class, its legal blocks, pairs of a descriptor and
    the describing message for its references and its own description, the blocks that it opens and closes, and pairs of
    a fact's descriptor and the new value.
    """
    facts = tuple(getattr(class_, name) for name in class_.layouts.parse_arguments if name != "encoding")
    state = (class_.block, class_.described, class_.encoding)
    namespaces = [cast(Any, parse).__globals__ for _, _, parse in readers]
    has_readers = all(namespace.get("native_read") is not None for namespace in namespaces)
    if not has_readers or not all(map(inspect.ismemberdescriptor, (*facts, *state))):
        return None
    messages = tuple(
        _session_message(class_, layout, version, namespace)
        for (layout, version, _), namespace in zip(readers, namespaces, strict=True)
    )
    return class_, *state, facts, OUTSIDE, messages


def _session_message(
    class_: type[Any], layout: MessageLayout, version: int, namespace: Mapping[str, Any]
) -> tuple[Any, ...]:
    message = namespace[layout.class_name]
    references = tuple((getattr(message, name), layout.looks_up[name]) for name in layout.reference_fields(version))
    description = ((getattr(message, layout.describes), layout.name),) if layout.describes else ()
    changes = tuple((getattr(class_, fact), value) for fact, value in layout.changes)
    return (
        ord(layout.tag),
        namespace["native_read"].__self__,
        message,
        layout.places,
        references,
        description,
        (layout.opens,) if layout.opens else (),
        layout.closes,
        changes,
    )


@functools.cache
def native_module() -> Any:
    if os.environ.get("LOGICALREP_NATIVE") == "0":
        return None
    try:
        module = importlib.import_module("logicalrep_native")
    except ImportError as error:
        if not isinstance(error, ModuleNotFoundError):
            _LOG.warning("logicalrep-native cannot be loaded (%s): messages are read in Python", error)
        return None
    if module.TABLE_NUMBER != TABLE_NUMBER:
        _LOG.warning(
            "logicalrep-native reads tables of format %s, and this logicalrep writes format %s: messages are read in "
            "Python; install the same release of both",
            module.TABLE_NUMBER,
            TABLE_NUMBER,
        )
        return None
    return module


class _UnknownError(Exception):
    """An operation without a form in tables."""


_KNOWN = frozenset(
    {
        "name", "type", "since", "until", "doc", "width", "signed", "is_character", "allowed", "refused", "flags",
        "wrapper", "code", "of", "count", "part", "body", "fact", "ahead", "is_text", "is_length", "nullable",
        "preceding", "size", "constant", "end",
    }
)  # fmt: skip


def _check(operation: Operation) -> None:
    for field in fields(operation):
        if field.name not in _KNOWN and getattr(operation, field.name) != field.default:
            raise _UnknownError(field.name)


def table(protocol: ProtocolLayout, version: int, namespace: Mapping[str, Any], struct: Whole[Any]) -> tuple[Any, ...]:
    source = _Source(protocol, version, namespace)
    layouts = {layout.class_name: layout for layout in protocol.messages}
    return TABLE_NUMBER, tuple(source.message(choice, layouts) for choice in struct.choices())


class _Source:
    def __init__(self, protocol: ProtocolLayout, version: int, namespace: Mapping[str, Any]) -> None:
        self.protocol = protocol
        self.version = version
        self.namespace = namespace
        self.facts = [name for name in protocol.parse_arguments if name != "encoding"]

    def message(self, choice: StructChoice, layouts: Mapping[str, MessageLayout]) -> tuple[Any, ...]:
        fact, value = choice.fact
        condition = (self.facts.index(fact), value) if fact else None
        class_ = choice.struct._class
        program = None
        with suppress(_UnknownError):
            program = self.program(class_, layouts[class_.__name__].operations)
        return choice.first, condition, choice.constants, program

    def program(self, class_: type[Any], operations: Operations) -> tuple[Any, ...]:
        layout = _ClassProgram(self, class_)
        converted = tuple(layout.operations(operations))
        return class_, layout.descriptors, len(layout.measures), converted


class _ClassProgram:
    def __init__(self, source: _Source, class_: type[Any]) -> None:
        self.source = source
        self.types = {field.name: str(field.type).removesuffix(" | None") for field in fields(class_)}
        self.attributes = {name: index for index, name in enumerate(self.types)}
        self.descriptors = tuple(getattr(class_, name) for name in self.types)
        self.measures: dict[str, int] = {}

    def operations(self, operations: Operations) -> list[tuple[Any, ...]]:
        entries = (self.operation(entry) for entry in of_version(operations, self.source.version))
        return [entry for entry in entries if entry is not None]

    def measure(self, name: str) -> int:
        if name not in self.measures:
            raise _UnknownError("a measure of something else")
        return self.measures[name]

    def operation(self, row: Operation) -> tuple[Any, ...] | None:
        _check(row)
        match row:
            case Constant():
                return "constant", row.code.to_bytes(row.width, "big", signed=row.signed)
            case Measure() if row.of:
                self.measures[row.name] = len(self.measures)
                return "measure", self.measures[row.name], row.width, row.signed, row.nullable
            case Measure():
                return "length", row.width, row.signed
            case Take() if row.allowed:
                codes = tuple((code, self.value(row, code)) for code in row.allowed)
                return "value", self.attributes[row.name], row.width, row.signed, codes
            case Take() if row.is_character:
                return "character", self.attributes[row.name]
            case Take():
                return "integer", self.attributes[row.name], *_integer(row)
            case Text():
                return "text", self.attributes[row.name]
            case Bytes() if row.constant:
                return "constant", row.constant
            case Bytes(size=size) if size:
                return "fixed", self.attributes[row.name], size
            case Bytes() if row.count:
                return "bytes", self.attributes[row.name], self.measure(row.count)
            case Bytes():
                return "rest", self.attributes[row.name]
            case Group():
                return "group", self.attributes[row.name], self.part(row.part)
            case Repeat():
                return self.repeat(row)
            case Conditional():
                return self.conditional(row)
        raise _UnknownError(row.kind)

    def value(self, integer: Take, code: int) -> object:
        if integer.is_character:
            members = self.source.namespace.get(self.types[integer.name])
            return members(chr(code)) if isinstance(members, EnumMeta) else chr(code)
        return code if integer.wrapper is None else integer.wrapper(code)

    def part(self, name: str) -> tuple[Any, ...]:
        return self.source.program(self.source.namespace[name], self.source.protocol.parts[name].operations)

    def repeat(self, operation: Repeat) -> tuple[Any, ...]:
        body = operation.body
        _check(body)
        if isinstance(body, Choose):
            return self.choices(self.measure(operation.count), self.source.protocol.parts[body.part])
        attribute, item = self.attributes[operation.name], self.operation(body)
        if operation.count:
            return "items", attribute, self.measure(operation.count), item
        return "until", attribute, operation.end or b"\0", not operation.end, item

    def choices(self, measure: int, part: PartLayout) -> tuple[Any, ...]:
        kinds: dict[bool, bytes] = {True: b"", False: b""}
        width = 4
        for alternative in of_version(part.alternatives, self.source.version):
            tag, *rest = of_version(alternative.operations, self.source.version)
            for operation in (tag, *rest):
                _check(operation)
            kinds[bool(rest)] += bytes([tag_of(alternative).code])
            match rest:
                case []:
                    continue
                case [Measure(nullable=False) as size, Bytes(count=count)] if count == size.name:
                    width = size.width
                case _:
                    raise _UnknownError("choose")
        return "choices", self.attributes["kinds"], self.attributes["values"], measure, kinds[True], kinds[False], width

    def conditional(self, operation: Conditional) -> tuple[Any, ...] | None:
        body = of_version(operation.body, self.source.version)
        if not body:
            return None
        absent = tuple(self.attributes[row.name] for row in body if row.is_attribute)
        entries = tuple(self.operations(operation.body))
        if not operation.ahead and operation.fact not in self.source.facts:
            raise _UnknownError("a fact that is no argument")
        if operation.ahead:
            return "ahead", bytes(operation.ahead), entries, absent
        return "fact", self.source.facts.index(operation.fact), entries, absent


def _integer(integer: Take) -> tuple[int, bool, object, tuple[int, ...]]:
    """Return the width, sign, wrapper and refused values. A wrapper that is not a class does not change the number."""
    wrapper = integer.wrapper if isinstance(integer.wrapper, type) else None
    return integer.width, integer.signed, wrapper, integer.refused
