"""Changes of one value of a stored file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

SQL = "'); SELECT public.trap(); --"

VALUES: tuple[Any, ...] = (
    None, True, -1, 1.5, 10**30, "", "x", SQL, "../../outside/secret", "/etc/passwd", "a\0b", "\ud800", "9" * 10_000,
    [], [1], {}, {"a": 1}, [[]], "2026-01-01T00:00:00", "0001-01-01T00:00:00+14:00", "0/0", "FFFFFFFF/FFFFFFFF", 0,
)  # fmt: skip
"""Values in the place of any value of a stored file."""


def mutations(content: Any, values: tuple[Any, ...] = VALUES) -> Iterator[tuple[str, Any]]:
    """Yield copies of a JSON value with one value replaced, removed or under another key, and the path of that value."""
    for path in _paths(content):
        for value in values:
            yield f"{path} = {value!r:.40}", _changed(content, path, value)
        if path:
            yield f"{path} is absent", _changed(content, path, None, how="absent")
            yield f"{path} has another key", _changed(content, path, None, how="renamed")


def _paths(content: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    keys = content.keys() if isinstance(content, dict) else range(len(content)) if isinstance(content, list) else ()
    for key in keys:
        yield from _paths(content[key], (*path, key))


def _changed(content: Any, path: tuple[str | int, ...], value: Any, how: str = "value") -> Any:
    if not path:
        return value
    copied = json.loads(json.dumps(content))
    parent = copied
    for key in path[:-1]:
        parent = parent[key]
    if how == "value":
        parent[path[-1]] = value
        return copied
    previous = parent.pop(path[-1])
    if how == "renamed" and isinstance(parent, dict):
        parent[f"{path[-1]}{SQL}"] = previous
    return copied
