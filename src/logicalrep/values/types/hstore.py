"""The extension hstore: a dict of texts, NULL as None."""

from __future__ import annotations

import re

from logicalrep.values.types.binary import BinaryReader

_PAIR = re.compile(r'"((?:[^"\\]|\\.)*)"=>(?:"((?:[^"\\]|\\.)*)"|NULL)', re.DOTALL)
_BACKSLASH = re.compile(r"\\(.)", re.DOTALL)


def hstore_text(text: str) -> dict[str, str | None]:
    pairs: dict[str, str | None] = {}
    position, end = 0, len(text)
    while position < end:
        match = _PAIR.match(text, position)
        if match is None:
            raise ValueError(f"not the text of an hstore, at character {position}")
        key = _BACKSLASH.sub(r"\1", match[1])
        if key in pairs:
            raise ValueError("a key occurs twice")
        pairs[key] = None if match[2] is None else _BACKSLASH.sub(r"\1", match[2])
        position = match.end()
        if position < end:
            if text[position : position + 2] != ", " or position + 2 == end:
                raise ValueError(f"no comma at character {position}")
            position += 2
    return pairs


def hstore_binary(value: bytes, encoding: str) -> dict[str, str | None]:
    reader = BinaryReader(value)
    pairs: dict[str, str | None] = {}
    for _ in range(reader.count(8)):
        key_bytes = reader.field()
        if key_bytes is None:
            raise ValueError("a key is NULL")
        key = str(key_bytes, encoding)
        if key in pairs:
            raise ValueError("a key occurs twice")
        field = reader.field()
        pairs[key] = None if field is None else str(field, encoding)
    reader.end()
    return pairs


def format_hstore(value: dict[str, str | None]) -> str:
    return ", ".join(f"{_quoted(key)}=>{'NULL' if text is None else _quoted(text)}" for key, text in value.items())


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
