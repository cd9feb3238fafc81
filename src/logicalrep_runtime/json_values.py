"""Bytes in JSON, in one form for all printing of messages and changes."""

from __future__ import annotations

import base64

JsonValue = str | dict[str, str] | None


def json_value(value: bytes | None, encoding: str, *, binary: bool = False) -> JsonValue:
    """Return a value as text; null for NULL; `{"base64": ...}` if it is binary or not text in the encoding."""
    if value is None:
        return None
    if not binary:
        try:
            return value.decode(encoding)
        except UnicodeDecodeError:
            pass
    return base64_value(value)


def base64_value(value: bytes) -> dict[str, str]:
    return {"base64": base64.b64encode(value).decode("ascii")}
