"""Ways to read a message: the Struct, the straight-line code, the walker, the decoder written by hand, the native reader.

`agree` reads bytes in all ways and fails unless they say the same; the native reader is there if it is installed.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from construct import ConstructError

from logicalrep import DecodeError
from logicalrep_protocol.layouts import LOGICALREP
from logicalrep_protocol.versions import PARSE
from logicalrep_runtime.layout_walk import Step, walk
from tests.protocol import hand_decoder
from tests.protocol.hand_decoder import Plain, RefusedError

VERSIONS = {number: sys.modules[parse.__module__] for number, parse in PARSE.items()}
"""The module of each version that there is."""


def plain(value: Any) -> Any:
    """A message of the package, or a part of one, as the decoder written by hand gives it."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if not dataclasses.is_dataclass(value):
        return value
    values = {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return Plain(type(value).__name__, {name: value for name, value in values.items() if value is not None})


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a message with the path that the walker gives it."""
    if not isinstance(value, Plain):
        yield path, value
        return
    prefix = f"{path}." if path else ""
    for name, inner in value.values.items():
        if name == "kinds":
            yield from ((f"{prefix}cells[{index}].kind", chr(kind)) for index, kind in enumerate(inner))
        elif name == "values":
            yield from ((f"{prefix}cells[{index}].value", item) for index, item in enumerate(inner) if item is not None)
        elif isinstance(inner, tuple):
            for index, item in enumerate(inner):
                yield from leaves(item, f"{prefix}{name}[{index}]")
        else:
            yield from leaves(inner, prefix + name)


@contextmanager
def in_python(version: int) -> Iterator[None]:
    """Without the native reader for a while."""
    module: Any = VERSIONS[version]
    read, module.native_read = module.native_read, None
    try:
        yield
    finally:
        module.native_read = read


def attempt(data: bytes, version: int, *, streaming: bool, parallel: bool, encoding: str) -> Any:
    """What `parse` gives in Python, or its error."""
    try:
        with in_python(version):
            return VERSIONS[version].parse(data, streaming=streaming, parallel=parallel, encoding=encoding)
    except DecodeError as error:
        return error


def natively_alike(data: bytes, version: int, result: Any, *, streaming: bool, parallel: bool, encoding: str) -> None:
    """Fail unless the native reader reads the same object, down to the types of its values, or nothing."""
    module: Any = VERSIONS[version]
    if module.native_read is None:
        return
    message = module.native_read(data, encoding, streaming, parallel)
    if isinstance(result, DecodeError):
        assert message is None, f"{result}, yet the native reader takes {data.hex()}"
        return
    assert type(message) is type(result)
    assert message == result
    assert value_types(message) == value_types(result)


def value_types(message: Any) -> list[type]:
    """The type of every value in a message, in order."""
    return list(map(type, _values(message)))


def _values(message: Any) -> Iterator[Any]:
    """Every value in a message, in order, the parts before what they hold."""
    yield message
    if isinstance(message, tuple):
        for item in message:
            yield from _values(item)
    elif dataclasses.is_dataclass(message):
        for field in dataclasses.fields(message):
            yield from _values(getattr(message, field.name))


def walked(data: bytes, version: int, facts: dict[str, bool], encoding: str) -> tuple[list[Step], DecodeError | None]:
    """The walker's steps, and the error that ended them."""
    steps: list[Step] = []
    try:
        for step in walk(LOGICALREP, version, data, facts=facts, encoding=encoding, strict=True):
            steps.append(step)
    except DecodeError as error:
        return steps, error
    return steps, None


def agree(
    data: bytes, version: int, *, streaming: bool = False, parallel: bool = False, encoding: str = "utf-8"
) -> Any:
    """The message that all ways read and three write back, or the DecodeError where all refuse the bytes."""
    facts = {"streaming": streaming, "parallel": parallel}
    state: dict[str, Any] = {**facts, "encoding": encoding}
    result = attempt(data, version, **state)
    natively_alike(data, version, result, **state)
    steps, walk_error = walked(data, version, facts, encoding)
    assert b"".join(step.data for step in steps) == data[: sum(len(step.data) for step in steps)]
    try:
        by_hand = hand_decoder.decode(data, version, **state)
    except RefusedError:
        by_hand = None
    struct = VERSIONS[version].message
    try:
        by_struct = struct.parse(data, **state)
    except ConstructError:
        by_struct = None
    if isinstance(result, DecodeError):
        assert walk_error is not None
        assert result.args == walk_error.args
        assert (by_hand, by_struct) == (None, None), f"{result}, yet others take {data.hex()}"
        assert 0 <= result.offset <= len(data)
        return result
    assert walk_error is None
    message = plain(result)
    assert message == by_hand
    assert by_struct == result
    assert repr(by_struct) == repr(result)
    offset = 0
    for step in steps:
        assert step.offset == offset
        offset += len(step.data)
    assert offset == len(data)
    values = {step.path: step.value for step in steps}
    assert len(values) == len(steps)
    for path, value in leaves(message):
        assert values[path] == value
    assert result.build(encoding=encoding) == data
    assert struct.build(result, **state) == result.struct.build(result, encoding=encoding) == data
    return result
