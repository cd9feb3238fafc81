"""The keys of stored JSON objects, apart from the names of the attributes that have their values."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

_Object = TypeVar("_Object")
_SURROGATE = re.compile("[\ud800-\udfff]")


class StoredKeys:
    """The keys under which an object's attributes are stored, so that a renamed attribute keeps its key.

    Example:
        >>> StoredKeys("rows lsn=position").arguments({"rows": 3, "lsn": "0/10"})
        {'rows': 3, 'position': '0/10'}
    """

    def __init__(self, keys: str) -> None:
        """Take the keys in the order in which they are written, with `=attribute` where its name is another one."""
        pairs = (each.partition("=") for each in keys.split())
        self._attributes = {key: attribute or key for key, _, attribute in pairs}

    def content(self, value: object) -> dict[str, Any]:
        """Return an object's attributes by their keys."""
        return {key: getattr(value, attribute) for key, attribute in self._attributes.items()}

    def arguments(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that make the object again; those without a key are left to their defaults.

        Raises ValueError for an unknown key, which a later version may have written: to drop it could lose something.
        """
        for key in content.keys() - self._attributes.keys():
            raise ValueError(f"it has {key!r}, which is unknown")
        return {self._attributes[key]: value for key, value in content.items()}


def typed(value: _Object) -> _Object:
    """Return an object that was made of stored JSON. Raises ValueError unless its attributes have their types.

    Example:
        >>> typed(LoadProgress(rows="3", estimate=0, snapshot_since=""))
        Traceback (most recent call last):
        ValueError: its rows is of another type than it should be
    """
    kind: Any = type(value)
    for name, hint in _hints(kind).items():
        if not _matches(getattr(value, name), hint):
            raise ValueError(f"its {name} is of another type than it should be")
    return value


def check_times(*texts: Any) -> None:
    """Raise ValueError unless texts are times with a time zone, ISO 8601, or None."""
    for text in texts:
        if text is not None:
            if not isinstance(text, str) or (time := datetime.fromisoformat(text)).tzinfo is None:
                raise ValueError("a time of it is no text in ISO 8601 with a time zone")
            # It has no time in UTC if it is before year 1 there.
            time.astimezone(UTC)


def to_json(content: Mapping[str, object]) -> bytes:
    """Return the bytes of a destination's file."""
    return json.dumps(content, indent=2, ensure_ascii=False).encode()


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _matches(value: Any, hint: Any) -> bool:
    kind, arguments = get_origin(hint) or hint, get_args(hint)
    if kind in (Any, object):
        return True
    if kind in (Union, types.UnionType):
        return any(_matches(value, argument) for argument in arguments)
    if kind is Literal:
        return isinstance(value, str) and value in arguments
    if kind is str:
        # A server takes no others.
        return isinstance(value, str) and "\0" not in value and not _SURROGATE.search(value)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is Mapping:
        key, item = arguments
        return isinstance(value, Mapping) and all(_matches(k, key) and _matches(v, item) for k, v in value.items())
    if kind in (Sequence, tuple):
        return isinstance(value, list | tuple) and all(_matches(item, arguments[0]) for item in value)
    return isinstance(value, kind)
