"""Wording of differences between texts, and between orders of names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_KEYS = {"sender": "from", "callbacks": "callback", "places": "place"}
"""The YAML's keys whose attributes of the model have other names."""

_CONTEXT = 3
"""The number of equal words around the differing words."""


def key_of(attribute: str) -> str:
    """Return the YAML's key of an attribute of the model."""
    return _KEYS.get(attribute, attribute.replace("_", " "))


def says(what: str, old_text: str, new_text: str) -> str:
    """Return the differing words of two texts, with a few words around them."""
    if not old_text:
        return f'now has a {what}: "{new_text}"'
    if not new_text:
        return f'no longer has a {what}, which was "{old_text}"'
    old_words, new_words = old_text.split(), new_text.split()
    head = _equal_words(old_words, new_words)
    tail = _equal_words(old_words[head:][::-1], new_words[head:][::-1])
    return f"'{what}' says {_excerpt(new_words, head, tail)}, said {_excerpt(old_words, head, tail)}"


def _equal_words(old_words: list[str], new_words: list[str]) -> int:
    pairs = enumerate(zip(old_words, new_words, strict=False))
    return next(
        (index for index, (old_word, new_word) in pairs if old_word != new_word), min(len(old_words), len(new_words))
    )


def _excerpt(words: list[str], head: int, tail: int) -> str:
    start, end = max(head - _CONTEXT, 0), min(len(words) - tail + _CONTEXT, len(words))
    return '"' + ("... " if start else "") + " ".join(words[start:end]) + (" ..." if end < len(words) else "") + '"'


def listed(names: Iterable[str]) -> str:
    """Return names separated by commas; `none` for no names."""
    return ", ".join(names) or "none"


def one_line(text: str) -> str:
    """Return a text with all white space folded."""
    return " ".join(text.split())


def place_in(names: Sequence[str], name: str) -> str:
    """Return a name's position: after its predecessor, or first."""
    index = names.index(name)
    return f"after {names[index - 1]}" if index else "first"
