"""Messages as dictionaries of JSON's types, and back."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from inspect import signature
from types import NoneType, UnionType
from typing import Any, Generic, Literal, NewType, TypeVar, Union, get_args, get_origin, get_type_hints

from logicalrep_runtime.errors import EncodeError, codec_name, shown
from logicalrep_runtime.json_values import JsonValue, base64_value, json_value
from logicalrep_runtime.layout import ProtocolLayout
from logicalrep_runtime.scalars import Lsn, TimestampTz

_AnyMessage = TypeVar("_AnyMessage")


class Dictionaries(Generic[_AnyMessage]):
    """The dictionaries of a protocol version's messages."""

    def __init__(self, layouts: ProtocolLayout, any_message: object) -> None:
        names = {layout.class_name: layout.name for layout in layouts.messages}
        self._names: dict[type, str] = {cls: names[cls.__name__] for cls in get_args(any_message) or (any_message,)}
        self._classes: dict[str, type[Any]] = {name: cls for cls, name in self._names.items()}

    def to_dict(self, message: _AnyMessage, *, encoding: str = "utf-8") -> dict[str, Any]:
        """Return a message as a dictionary for `json.dumps`; `from_dict` returns the message again.

        `message` is the message's name in the documentation, the other keys are its attributes, without absent ones. An
        LSN is text such as `16/B374D848`, a time ISO 8601 in UTC. Bytes are text if they are valid in `encoding`, the
        session's client_encoding as a Python codec, else `{"base64": ...}`.

        Raises EncodeError for an attribute of another type.
        """
        codec_name(encoding)
        name = self._names.get(type(message))
        if name is None:
            raise EncodeError("message", "message", "a message of this version", shown(message))
        try:
            return {"message": name, **_written(message, encoding)}
        except _UnfitError as error:
            path, unfit = error.args
            raise EncodeError(name, path, "a value of the attribute's type", shown(unfit)) from None

    def from_dict(self, values: Mapping[str, Any], *, encoding: str = "utf-8") -> _AnyMessage:
        """Return the message of a dictionary of `to_dict`, also after `json.dumps` and `json.loads`.

        Raises EncodeError for a missing or an unknown attribute, and for a value of another type. `build` checks the
        ranges of numbers.
        """
        codec_name(encoding)
        if not isinstance(values, Mapping):
            raise EncodeError("message", "message", "a dictionary", shown(values))
        attributes = dict(values)
        name = attributes.pop("message", None)
        if not isinstance(name, str) or name not in self._classes:
            raise EncodeError("message", "message", "the name of a message in this version", shown(name))
        message: _AnyMessage = _MessageReader(name, encoding).instance(self._classes[name], attributes, "")
        return message


@cache
def _hints(cls: Any) -> dict[str, Any]:
    """Return the types of a class's attributes."""
    hints = get_type_hints(cls)
    return {field.name: hints[field.name] for field in fields(cls)}


@cache
def _may_be_absent(cls: Any) -> set[str]:
    """Return the attributes that a class's constructor does not require, but for flags."""
    hints = _hints(cls)
    return {
        name
        for name, parameter in signature(cls).parameters.items()
        if parameter.default is None and NoneType in get_args(hints.get(name))
    }


class _UnfitError(TypeError):
    """A value that no attribute has: the path of its attribute, and the value."""


_JSON_TYPES = {bool, int, str, NoneType}


def _written(owner: Any, encoding: str) -> dict[str, Any]:
    cls: Any = type(owner)
    may_be_absent = _may_be_absent(cls)
    values: dict[str, Any] = {}
    for name in _hints(cls):
        value = getattr(owner, name)
        if value is None and name in may_be_absent:
            continue
        try:
            values[name] = value if type(value) in _JSON_TYPES else _plain(value, encoding)
        except _UnfitError as error:
            path, unfit = error.args
            raise _UnfitError(f"{name}.{path}" if path else name, unfit) from None
    return values


def _plain(value: Any, encoding: str) -> Any:
    if isinstance(value, bytes):
        return _text_of(value, encoding)
    if isinstance(value, tuple | list):
        return [item if type(item) in _JSON_TYPES else _plain(item, encoding) for item in value]
    if isinstance(value, Lsn | TimestampTz):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, int):
        return int(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _written(value, encoding)
    raise _UnfitError("", value)


def _text_of(value: bytes, encoding: str) -> JsonValue:
    text = json_value(value, encoding)
    # Some codecs decode several byte sequences to one text.
    if isinstance(text, str) and text.encode(encoding, "replace") != value:
        return base64_value(value)
    return text


@dataclass(frozen=True, slots=True)
class _MessageReader:
    message: str
    encoding: str

    def instance(self, cls: Any, values: Any, path: str) -> Any:
        hints, may_be_absent = _hints(cls), _may_be_absent(cls)
        if not isinstance(values, Mapping):
            raise self.fault(path, f"a dictionary with {', '.join(hints)}", values)
        prefix = f"{path}." if path else ""
        for name in values:
            if name not in hints:
                raise EncodeError(self.message, path or "attributes", ", ".join(hints) or "none", shown(name))
        for name in hints:
            if name not in values and name not in may_be_absent:
                raise EncodeError(self.message, prefix + name, "a value", "none")
        return cls(**{name: self.value(hints[name], value, prefix + name) for name, value in values.items()})

    def value(self, hint: Any, value: Any, path: str) -> Any:
        if isinstance(hint, NewType):
            return self.value(hint.__supertype__, value, path)
        arguments = get_args(hint)
        if get_origin(hint) in (Union, UnionType):
            (other,) = set(arguments) - {NoneType}
            return None if value is None else self.value(other, value, path)
        if get_origin(hint) is Literal:
            if not isinstance(value, str) or value not in arguments:
                raise self.fault(path, " or ".join(map(repr, arguments)), value)
            return value
        if get_origin(hint) is tuple:
            if not isinstance(value, list | tuple):
                raise self.fault(path, "a list", value)
            return tuple(self.value(arguments[0], item, f"{path}[{index}]") for index, item in enumerate(value))
        if is_dataclass(hint):
            return self.instance(hint, value, path)
        return self.scalar(hint, value, path)

    def scalar(self, cls: type, value: Any, path: str) -> Any:
        if cls is bytes:
            return self.bytes(value, path)
        make: Callable[[Any], Any] = cls
        types: tuple[type, ...] = (int,)
        expected = "a whole number"
        if issubclass(cls, Enum):
            legal = [member.value for member in cls]
            types, expected = (type(legal[0]),), " or ".join(map(repr, legal))
        elif issubclass(cls, Lsn | TimestampTz):
            types, expected = (str, int), f"{cls.__name__} as text"
            if issubclass(cls, TimestampTz) and isinstance(value, str):
                make = cls.from_text
        elif cls is bool:
            types, expected = (bool,), "true or false"
        elif issubclass(cls, str):
            types, expected = (str,), "a text"
        # True is an int too, but no number.
        if type(value) in types:
            with suppress(ValueError, OverflowError):
                return make(value)
        raise self.fault(path, expected, value)

    def bytes(self, value: Any, path: str) -> bytes:
        with suppress(ValueError):
            if isinstance(value, str):
                return value.encode(self.encoding)
            if isinstance(value, Mapping) and value.keys() == {"base64"} and isinstance(value["base64"], str):
                return base64.b64decode(value["base64"], validate=True)
        raise self.fault(path, f'a text in {self.encoding}, or {{"base64": ...}}', value)

    def fault(self, path: str, expected: str, value: object) -> EncodeError:
        return EncodeError(self.message, path, expected, shown(value))
