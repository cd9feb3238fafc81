"""The wording of differences: of texts by the words that differ, of names in another order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_KEYS = {"sender": "from", "callbacks": "callback", "places": "place"}
"""The keys of the YAML that the model has under another name."""

_CONTEXT = 3
"""The number of equal words that are shown around those that differ."""


def key_of(attribute: str) -> str:
    """The key of the YAML for an attribute of the model."""
    return _KEYS.get(attribute, attribute.replace("_", " "))


def says(what: str, old_text: str, new_text: str) -> str:
    """Return the words that differ in a text, and a few around them."""
    if not old_text:
        return f'has a {what} now: "{new_text}"'
    if not new_text:
        return f'has no {what} any more, which said "{old_text}"'
    old_words, new_words = old_text.split(), new_text.split()
    head = _equal_words(old_words, new_words)
    tail = _equal_words(old_words[head:][::-1], new_words[head:][::-1])
    return f"'{what}' says {_excerpt(new_words, head, tail)}, said {_excerpt(old_words, head, tail)}"


def _equal_words(old_words: list[str], new_words: list[str]) -> int:
    """Return the number of equal words at the beginning."""
    pairs = enumerate(zip(old_words, new_words, strict=False))
    return next(
        (index for index, (old_word, new_word) in pairs if old_word != new_word), min(len(old_words), len(new_words))
    )


def _excerpt(words: list[str], head: int, tail: int) -> str:
    start, end = max(head - _CONTEXT, 0), min(len(words) - tail + _CONTEXT, len(words))
    return '"' + ("... " if start else "") + " ".join(words[start:end]) + (" ..." if end < len(words) else "") + '"'


def listed(names: Iterable[str]) -> str:
    """Names one after the other; `none` if there are none."""
    return ", ".join(names) or "none"


def one_line(text: str) -> str:
    """A text without line breaks and the like."""
    return " ".join(text.split())


def place_in(names: Sequence[str], name: str) -> str:
    """Return the place of a name among others."""
    index = names.index(name)
    return f"after {names[index - 1]}" if index else "first"
