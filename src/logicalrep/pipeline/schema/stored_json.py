"""Stored JSON: objects with the names of their attributes; reading checks the types."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import msgspec

from logicalrep_runtime.scalars import Lsn

_Object = TypeVar("_Object")

Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Number32 = Annotated[int, msgspec.Meta(ge=0, le=(1 << 32) - 1)]
_DESCRIBING = threading.Lock()
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def parse_json(data: bytes | str) -> Any:
    """Raises ValueError for invalid JSON, or a text with a NUL character."""
    data = data.encode() if isinstance(data, str) else data
    if b"\\u0000" in data and _NUL.search(data):
        raise ValueError("a text of it has a character of code 0")
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None


def encode(value: object) -> bytes:
    return msgspec.json.encode(value, enc_hook=_plain)


def plain(value: object) -> Any:
    return msgspec.to_builtins(value, enc_hook=_plain)


def decode(content: object, kind: type[_Object]) -> _Object:
    """Raise ValueError for a value of another type, and for an absent or unknown key: dropping it could lose data.

    A dataclass must have slots: otherwise msgspec accepts an absent attribute if the class has a default.
    """
    # At the first use of a dataclass, msgspec 0.22 publishes its description of the class before the description is
    # complete: a second thread that uses it then crashes the process.
    with _DESCRIBING:
        msgspec.json.Decoder(kind)
    try:
        value = msgspec.convert(content, kind, str_keys=True, dec_hook=_object)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
    written = msgspec.json.decode(encode(value))
    if content != written:
        differing = sorted(set(_keys(content)) ^ set(_keys(written)))
        raise ValueError(f"it has or lacks {', '.join(differing) or 'a value that this version does not write'}")
    return value


def check_times(*texts: str | None) -> None:
    """Raise ValueError unless the texts are ISO 8601 times with a time zone, or None."""
    for text in texts:
        if text is not None:
            if (time := datetime.fromisoformat(text)).tzinfo is None:
                raise ValueError("a time of it has no time zone")
            # Fails if the time is before the year 1 in UTC.
            time.astimezone(UTC)


def _plain(value: object) -> object:
    if isinstance(value, Lsn):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError


def _object(kind: type, content: object) -> object:
    if kind is Lsn and isinstance(content, str):
        return Lsn(content)
    raise ValueError(f"Expected `{kind.__name__}`")


def _keys(content: object, path: str = "$") -> list[str]:
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    return [key for name, value in items for key in (f"{path}.{name}", *_keys(value, f"{path}.{name}"))]
