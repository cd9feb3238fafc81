"""Similarity of descriptions and fields, which alone distinguishes rows of one type.

If two rows "Int64 (XLogRecPtr)" change places, the types stay the same. Names and `doc` of the spec's fields use other
words than the page, but similar enough to assign two descriptions to two fields.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

from codegen.model.layouts import Field

_COMMON = re.compile(
    r"a|all|an|and|any|are|as|at|be|been|but|by|can|for|from|had|has|have|if|in|is|it|its|no|not|of|on|only|or|so|that|"
    r"the|then|there|these|this|to|was|were|which|will|with"
)
_STEM = 5


@lru_cache(maxsize=4096)
def words(text: str) -> frozenset[str]:
    """Return the significant words, cut to stems. A word that begins with "sub" counts as that prefix too."""
    significant = [word for word in re.findall(r"[a-z]+", text.lower()) if not _COMMON.fullmatch(word)]
    return frozenset(word[:_STEM] for word in significant) | {"sub" for word in significant if word.startswith("sub")}


def likeness(field: Field, description: str) -> float:
    """Return the share of a description's words that describe a field, 0 to 1."""
    return _likeness(field.name, field.doc, description)


def change_places(first: Field, second: Field, of_first: str, of_second: str) -> bool:
    """Return whether two fields' descriptions fit better when exchanged. Only differing words count."""
    first_words, second_words = words(of_first), words(of_second)
    first_words, second_words = first_words - second_words, second_words - first_words
    as_it_is = _fit(first, first_words) + _fit(second, second_words)
    return _fit(first, second_words) + _fit(second, first_words) > as_it_is


def _fit(field: Field, described: frozenset[str]) -> int:
    weights = _weights(field.name, field.doc)
    return sum(weights.get(word, 0) for word in described)


@lru_cache(maxsize=4096)
def _weights(name: str, doc: str) -> dict[str, int]:
    """Return the words that describe a field; words of its name count twice."""
    weights = dict.fromkeys(words(doc), 1)
    for word in words(name.replace("_", " ")):
        weights[word] = weights.get(word, 0) + 2
    return weights


@lru_cache(maxsize=65536)
def _likeness(name: str, doc: str, description: str) -> float:
    weights, described = _weights(name, doc), words(description)
    length = math.hypot(*weights.values()) * math.sqrt(len(described))
    return sum(weights.get(word, 0) for word in described) / length if length else 0.0
