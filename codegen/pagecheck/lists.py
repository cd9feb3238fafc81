"""Comparison of lists of terms with the spec: the notation's types, and a row's named values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from codegen.model import notation
from codegen.model.layouts import Field
from codegen.model.model import Protocol
from codegen.model.places import Place
from codegen.pagecheck.page import Term, TermList
from codegen.pagecheck.quoting import NOTHING, Difference, quoted
from codegen.shared import ROOT, relative

_NOTATION = Place(relative(ROOT / "codegen" / "model" / "notation.py"), 1)
_EXAMPLES = re.compile(r"\bEg\. ([^.]*)\.")


def listed(protocols: Iterable[Protocol]) -> dict[str, Field | None]:
    """Return the sections to compare, by anchor: a row with named values, or None for the types."""
    layouts = (layout for protocol in protocols for layout in protocol.layouts)
    rows = {row.listed_in: row for layout in layouts for row in layout.fields if row.listed_in is not None}
    return {notation.SECTION: None, **rows}


def compare_list(source: Path, page: TermList, row: Field | None) -> list[Difference]:
    """Return a list's differences from a row's values, or from the notation's types."""
    return list(_compare_types(source, page) if row is None else _compare_values(source, page, row))


def _compare_types(source: Path, page: TermList) -> Iterator[Difference]:
    yield from _compare_terms(source, page, list(notation.PRINTED), _NOTATION, "the types")
    for term in page.terms:
        here = Place(source, term.line)
        for words in notation.PRINTED.get(term.name, ()):
            if words not in term.text.lower():
                yield Difference(here, _NOTATION, term.name, quoted(term.text), quoted(words))
        for example in ", ".join(_EXAMPLES.findall(term.text)).split(", "):
            if example and example not in notation.UNUSED and not _is_type(example):
                yield Difference(here, _NOTATION, term.name, quoted(example), "no such type")


def _is_type(text: str) -> bool:
    try:
        return not isinstance(notation.parse_type(text), notation.PartName)
    except notation.NotationError:
        return False


def _compare_values(source: Path, page: TermList, row: Field) -> Iterator[Difference]:
    yield from _compare_terms(source, page, list(row.values), row.place, f"the values of {row.name}")
    names = Counter(map(_name, page.terms))
    for term in page.terms:
        name = row.values.get(term.name, "").replace("_", " ").capitalize()
        # The spec has two names for values that share a name on the page.
        is_same = name == _name(term) or (names[_name(term)] > 1 and name.startswith(f"{_name(term)} "))
        if name and not is_same:
            yield Difference(Place(source, term.line), row.place, term.name, quoted(_name(term)), quoted(name))


def _name(term: Term) -> str:
    return term.text.partition(":")[0]


def _compare_terms(source: Path, page: TermList, wanted: list[str], place: Place, what: str) -> Iterator[Difference]:
    printed = [term.name for term in page.terms]
    if printed != (wanted[: len(printed)] if page.tail_missing else wanted):
        lacks = ", ".join(name for name in wanted if name not in printed) or NOTHING
        more = ", ".join(name for name in printed if name not in wanted) or NOTHING
        both = f"{quoted(', '.join(printed))}, of which {more} is new and {lacks} is missing"
        yield Difference(Place(source, page.line), place, what, both, quoted(", ".join(wanted)))
