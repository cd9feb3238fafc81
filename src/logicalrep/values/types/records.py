"""Composite values, also called records or rows, in the text format."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["parse_record"]

# A field is quoted as a whole or not at all.
_FIELD = re.compile(r'"((?:[^"\\]|\\.|"")*)"|([^"\\(),\s]*)', re.DOTALL | re.ASCII)
_DOUBLED = re.compile(r'\\(.)|"(")', re.DOTALL)
_TO_QUOTE = re.compile(r'["\\(),\s]', re.ASCII)


def parse_record(text: str) -> tuple[str | None, ...]:
    """Return the fields of a composite value's text, such as `(1,"a b",)`: each as text, None for NULL.

    The text `()` stands for no columns or for one NULL. It is read as one NULL, as the server's own input function
    does for a type of one column; a type of no columns has no other value.

    Raises:
        ValueError: the argument is not the text of a composite value.

    Example:
        >>> parse_record('(1,"a b",)')
        ('1', 'a b', None)
    """
    if not (text.startswith("(") and text.endswith(")") and len(text) > 1):
        raise ValueError("not the text of a composite value")
    fields: list[str | None] = []
    position, end = 1, len(text) - 1
    while True:
        match = _FIELD.match(text, position, end)
        assert match is not None  # the pattern matches the empty string
        if match[1] is not None:
            fields.append(_DOUBLED.sub(lambda inner: inner[1] or inner[2], match[1]))
        else:
            fields.append(match[2] or None)
        position = match.end()
        if position == end:
            return tuple(fields)
        if text[position] != ",":
            raise ValueError(f"no comma at character {position}")
        position += 1


def format_record(fields: Iterable[str | None]) -> str:
    return f"({','.join(map(_format_field, fields))})"


def _format_field(text: str | None) -> str:
    if text is None:
        return ""
    if text and not _TO_QUOTE.search(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '""')
    return f'"{escaped}"'
