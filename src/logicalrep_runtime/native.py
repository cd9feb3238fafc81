"""The native reader of `logicalrep-native`, where that is installed: layouts as a table that it reads messages by.

It is found by itself, and `LOGICALREP_NATIVE=0` in the environment turns it off. Each generated `parse` asks it first
and reads in Python what it refuses, so that errors are those of Python. A message with an operation that it does not
know, or with anything said of one that it does not know, is read in Python alone; so is a protocol whose messages are
told apart by more than their tags.

A table is a pair of its number and its messages, each a pair of its tag and its program. A program has a class, the
descriptors of the class's attributes, the number of its measures, and its operations, which name attributes and
measures by their indexes:

    ("constant", bytes)                                    ("text", attribute)
    ("integer", attribute, width, signed, wrapper,         ("bytes", attribute, measure)
        refused values)                                    ("rest", attribute)
    ("value", attribute, width, signed,                    ("group", attribute, program)
        pairs of a value and its object)                   ("groups", attribute, measure, program)
    ("measure", measure, width, signed)                    ("choices", kinds, values, measure, valued kinds,
    ("integers", attribute, measure, width, signed,            bare kinds, width of a value's size)
        wrapper, refused values)                           ("fact", number, operations, absent attributes)
                                                           ("ahead", bytes, operations, absent attributes)
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from enum import EnumMeta
from typing import Any

from logicalrep_runtime.layout import MessageLayout, PartLayout, ProtocolLayout
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

TABLE_NUMBER = 1
"""The number of the table's form; the native reader has the same one, or is not used."""

_LOG = logging.getLogger("logicalrep")


def reader(
    protocol: ProtocolLayout, version: int, namespace: Mapping[str, Any], sender: str = "server"
) -> Callable[..., Any] | None:
    """Return the native `read(data, encoding, *facts)` of a version's messages; None where there is no native reader.

    It returns None for bytes that are no message. `namespace` has the version's classes; facts are given in the order
    of `parse`.
    """
    module = _module()
    tags = [layout.tag for layout in _sent_by(protocol, sender)]
    if module is None or len(tags) != len(set(tags)) or any(len(tag) != 1 for tag in tags):
        return None
    read: Callable[..., Any] = module.Reader(table(protocol, version, namespace, sender)).read
    return read


@functools.cache
def _module() -> Any:
    """The module of the native reader, if it is to be used."""
    if os.environ.get("LOGICALREP_NATIVE") == "0":
        return None
    try:
        module = importlib.import_module("logicalrep_native")
    except ImportError as error:
        if not isinstance(error, ModuleNotFoundError):
            _LOG.warning("messages are read in Python: logicalrep-native cannot be loaded: %s", error)
        return None
    if module.TABLE_NUMBER != TABLE_NUMBER:
        _LOG.warning(
            "messages are read in Python: logicalrep-native reads tables of number %s, and this logicalrep has number "
            "%s; install the same release of both",
            module.TABLE_NUMBER,
            TABLE_NUMBER,
        )
        return None
    return module


def _sent_by(protocol: ProtocolLayout, sender: str) -> list[MessageLayout]:
    """The messages of one side, some of which both sides may send."""
    return [layout for layout in protocol.messages if layout.sender in (sender, "both")]


class _UnknownError(Exception):
    """An operation that tables have no form for."""


_KNOWN = frozenset(
    {
        "name", "type", "since", "doc", "width", "signed", "is_character", "allowed", "refused", "flags", "wrapper",
        "code", "of", "count", "part", "body", "fact", "ahead", "is_text",
    }
)  # fmt: skip
"""The attributes of an operation that the native reader knows; it refuses an operation with any other."""


def _check(operation: Operation) -> None:
    for field in fields(operation):
        if field.name not in _KNOWN and getattr(operation, field.name) != field.default:
            raise _UnknownError(field.name)


def table(protocol: ProtocolLayout, version: int, namespace: Mapping[str, Any], sender: str) -> tuple[Any, ...]:
    """Return the table of a version's messages that one side sends."""
    source = _Source(protocol, version, namespace)
    messages = []
    for layout in _sent_by(protocol, sender):
        if layout.since <= version:
            class_ = namespace["".join(word[0].upper() + word[1:] for word in layout.name.split())]
            try:
                messages.append((ord(layout.tag), source.program(class_, layout.operations)))
            except _UnknownError:
                continue
    return TABLE_NUMBER, tuple(messages)


class _Source:
    """Makes the programs of one version's layouts."""

    def __init__(self, protocol: ProtocolLayout, version: int, namespace: Mapping[str, Any]) -> None:
        self.protocol = protocol
        self.version = version
        self.namespace = namespace
        self.facts = [name for name in protocol.parse_arguments if name != "encoding"]

    def program(self, class_: type[Any], operations: Operations) -> tuple[Any, ...]:
        layout = _ClassProgram(self, class_)
        made = tuple(layout.operations(operations))
        return class_, layout.descriptors, len(layout.measures), made

    def known(self, items: Iterable[Any]) -> list[Any]:
        """The operations or alternatives that the version has."""
        return [item for item in items if item.since <= self.version]


class _ClassProgram:
    """Makes the operations of one class."""

    def __init__(self, source: _Source, class_: type[Any]) -> None:
        self.source = source
        self.types = {field.name: str(field.type).removesuffix(" | None") for field in fields(class_)}
        self.attributes = {name: index for index, name in enumerate(self.types)}
        self.descriptors = tuple(getattr(class_, name) for name in self.types)
        self.measures: dict[str, int] = {}

    def operations(self, operations: Operations) -> list[tuple[Any, ...]]:
        entries = (self.operation(entry) for entry in self.source.known(operations))
        return [entry for entry in entries if entry is not None]

    def measure(self, name: str) -> int:
        if name not in self.measures:
            raise _UnknownError("a measure of something else")
        return self.measures[name]

    def operation(self, one: Operation) -> tuple[Any, ...] | None:
        _check(one)
        match one:
            case Constant():
                return "constant", one.code.to_bytes(one.width, "big", signed=one.signed)
            case Measure() if one.of:
                self.measures[one.name] = len(self.measures)
                return "measure", self.measures[one.name], one.width, one.signed
            case Take() if one.allowed:
                codes = tuple((code, self.value(one, code)) for code in one.allowed)
                return "value", self.attributes[one.name], one.width, one.signed, codes
            case Take():
                return "integer", self.attributes[one.name], *_integer(one)
            case Text():
                return "text", self.attributes[one.name]
            case Bytes() if one.count:
                return "bytes", self.attributes[one.name], self.measure(one.count)
            case Bytes():
                return "rest", self.attributes[one.name]
            case Group():
                return "group", self.attributes[one.name], self.part(one.part)
            case Repeat():
                return self.repeat(one)
            case Conditional():
                return self.conditional(one)
        raise _UnknownError(one.kind)

    def value(self, integer: Take, code: int) -> object:
        """The object of a value that is legal."""
        if integer.is_character:
            members = self.source.namespace.get(self.types[integer.name])
            return members(chr(code)) if isinstance(members, EnumMeta) else chr(code)
        return code if integer.wrapper is None else integer.wrapper(code)

    def part(self, name: str) -> tuple[Any, ...]:
        return self.source.program(self.source.namespace[name], self.source.protocol.parts[name].operations)

    def repeat(self, operation: Repeat) -> tuple[Any, ...]:
        measure, body = self.measure(operation.count), operation.body
        _check(body)
        match body:
            case Take() if not body.allowed:
                return "integers", self.attributes[operation.name], measure, *_integer(body)
            case Group():
                return "groups", self.attributes[operation.name], measure, self.part(body.part)
            case Choose():
                return self.choices(measure, self.source.protocol.parts[body.part])
        raise _UnknownError(body.kind)

    def choices(self, measure: int, part: PartLayout) -> tuple[Any, ...]:
        """A row's values: tags, and after some of them a value with its size."""
        kinds: dict[bool, bytes] = {True: b"", False: b""}
        width = 4
        for alternative in self.source.known(part.alternatives):
            tag, *rest = self.source.known(alternative.operations)
            for operation in (tag, *rest):
                _check(operation)
            kinds[bool(rest)] += bytes([tag.code])
            match rest:
                case []:
                    continue
                case [Measure() as size, Bytes(count=count)] if count == size.name:
                    width = size.width
                case _:
                    raise _UnknownError("choose")
        return "choices", self.attributes["kinds"], self.attributes["values"], measure, kinds[True], kinds[False], width

    def conditional(self, operation: Conditional) -> tuple[Any, ...] | None:
        body = self.source.known(operation.body)
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
    """The width, sign, wrapper and refused values; what is no class changes no number."""
    wrapper = integer.wrapper if isinstance(integer.wrapper, type) else None
    return integer.width, integer.signed, wrapper, integer.refused
