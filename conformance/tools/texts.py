"""The texts of arrays."""

from __future__ import annotations

from collections.abc import Iterable


def array_text(texts: Iterable[str | None]) -> str:
    """Return an array of values' texts as PostgreSQL reads it.

    Example:
        >>> array_text(["1", None, "a b"])
        '{"1",NULL,"a b"}'
    """
    quoted = ("NULL" if text is None else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts)
    return "{" + ",".join(quoted) + "}"


__all__ = ["array_text"]
