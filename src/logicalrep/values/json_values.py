"""Column values in JSON: the same wherever messages or changes are printed."""

from __future__ import annotations

import base64


def json_value(value: bytes | None, encoding: str, *, binary: bool = False) -> str | dict[str, str] | None:
    """A value as text; null for NULL; `{"base64": ...}` where it is in binary format or no text in the encoding."""
    if value is None:
        return None
    if not binary:
        try:
            return value.decode(encoding)
        except UnicodeDecodeError:
            pass
    return {"base64": base64.b64encode(value).decode("ascii")}
