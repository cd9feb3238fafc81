"""The fit of descriptions and fields: rows of one type can be told apart by their words alone.

Two rows "Int64 (XLogRecPtr)" that change places leave the types as they were. The names and the `doc` of the spec's
fields are in other words than the page, but near enough to tell which of two descriptions belongs to which field.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

from codegen.spec.layouts import Field

_COMMON = re.compile(
    r"a|all|an|and|any|are|as|at|be|been|but|by|can|for|from|had|has|have|if|in|is|it|its|no|not|of|on|only|or|so|that|"
    r"the|then|there|these|this|to|was|were|which|will|with"
)
_STEM = 5


@lru_cache(maxsize=4096)
def words(text: str) -> frozenset[str]:
    """The words that matter, cut to their stems; what begins with "sub" counts as that prefix too."""
    significant = [word for word in re.findall(r"[a-z]+", text.lower()) if not _COMMON.fullmatch(word)]
    return frozenset(word[:_STEM] for word in significant) | {"sub" for word in significant if word.startswith("sub")}


def likeness(field: Field, description: str) -> float:
    """Return the share of a description that speaks of a field, from 0 for no common word to 1 for the same words."""
    return _likeness(field.name, field.doc, description)


def change_places(first: Field, second: Field, of_first: str, of_second: str) -> bool:
    """Return whether the descriptions of two fields fit better in exchange; only words that differ count."""
    first_words, second_words = words(of_first), words(of_second)
    first_words, second_words = first_words - second_words, second_words - first_words
    as_it_is = _fit(first, first_words) + _fit(second, second_words)
    return _fit(first, second_words) + _fit(second, first_words) > as_it_is


def _fit(field: Field, described: frozenset[str]) -> int:
    weights = _weights(field.name, field.doc)
    return sum(weights.get(word, 0) for word in described)


@lru_cache(maxsize=4096)
def _weights(name: str, doc: str) -> dict[str, int]:
    """The words that speak of a field; those of its name count twice."""
    weights = dict.fromkeys(words(doc), 1)
    for word in words(name.replace("_", " ")):
        weights[word] = weights.get(word, 0) + 2
    return weights


@lru_cache(maxsize=65536)
def _likeness(name: str, doc: str, description: str) -> float:
    weights, described = _weights(name, doc), words(description)
    length = math.hypot(*weights.values()) * math.sqrt(len(described))
    return sum(weights.get(word, 0) for word in described) / length if length else 0.0
