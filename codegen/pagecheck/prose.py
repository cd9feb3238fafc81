"""Comparison with a page that describes a format in sentences: each row of the spec quotes its words.

The quotations must be on the page, in the order of the rows. Widths, constants, repetitions and nulls in a quotation
are facts of its row. Every width and bit on the page between the first and the last quotation belongs to one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from codegen.model.layouts import Field
from codegen.model.model import Protocol
from codegen.model.notation import Byten, Int, PartName
from codegen.model.places import Place
from codegen.model.versions import View, view
from codegen.pagecheck.facts import NULL
from codegen.pagecheck.page import Page
from codegen.pagecheck.quoting import NOTHING, Difference, quoted

_BITS = re.compile(r"\bBits (\d+)\u2013(\d+)")
_INTEGER = re.compile(r"\b(\d+)-bit (?:integer|length word)")
_SEQUENCE = re.compile(r"\b(\d+)-byte sequence (\S+)")
_CONTAINING = re.compile(r"\bcontaining (-?\d+)")
_REPEATED = re.compile(r"\brepeated for each\b|^Each\b")
_MENTION = re.compile(r"\b\d+-(?:bit|byte)\b(?!-)|\bBits? \d+")
"""A width or a bit, which a quotation must contain."""


@dataclass(frozen=True)
class _Quotation:
    what: str
    row: Field


def is_quoted(protocol: Protocol) -> bool:
    """Return whether a protocol's page prints no tables, so that its rows quote the page."""
    return any(row.printed_as for layout in protocol.layouts for row in layout.fields)


def quotes(protocols: Iterable[Protocol]) -> frozenset[str]:
    """Return the quotations of all protocols."""
    layouts = [layout for protocol in protocols for layout in protocol.layouts]
    return frozenset(row.printed_as for layout in layouts for row in layout.fields if row.printed_as)


def compare_prose(page: Page, protocol: Protocol) -> list[Difference]:
    """Return the differences between a page's sentences and the rows that quote them, in the page's order."""
    return list(_differences(page, protocol))


def _differences(page: Page, protocol: Protocol) -> Iterator[Difference]:
    newest = view(protocol, len(protocol.versions))
    spans: list[tuple[int, int]] = []
    end = 0
    for message in newest.messages:
        for quotation in _quotations(newest, message.name, message.fields):
            row = quotation.row
            start = page.text.find(row.printed_as, end) if row.printed_as else -1
            if start < 0:
                printed = (
                    f'no "{row.printed_as}" after what the row before quotes' if row.printed_as else "no quotation"
                )
                yield _difference(page, end, quotation, printed, quoted(str(row.type)))
                continue
            end = start + len(row.printed_as)
            spans.append((start, end))
            for specified in _facts_that_differ(row):
                yield _difference(page, start, quotation, quoted(row.printed_as), specified)
    for match in _MENTION.finditer(page.text, *((spans[0][0], end) if spans else ())):
        if not any(start <= match.start() < stop for start, stop in spans):
            around = page.text[match.start() : match.start() + 60]
            place = Place(Path(page.source), page.line_at(match.start()))
            yield Difference(place, protocol.place, protocol.title, quoted(around), NOTHING)


def _quotations(newest: View, owner: str, fields: tuple[Field, ...]) -> Iterator[_Quotation]:
    """Yield the rows in the order of their bytes: the rows of a part after the row that contains the part."""
    for row in fields:
        yield _Quotation(f"{owner}.{row.name}", row)
        if isinstance(row.type, PartName):
            part = newest.part(row.type.name)
            yield from _quotations(newest, part.name, part.fields)


def _difference(page: Page, at: int, quotation: _Quotation, printed: str, specified: str) -> Difference:
    place = Place(Path(page.source), page.line_at(at))
    return Difference(place, quotation.row.place, quotation.what, printed, specified)


def _facts_that_differ(row: Field) -> Iterator[str]:
    """Yield the facts of a row that its quotation contradicts."""
    width = None
    if match := _BITS.search(row.printed_as):
        width = int(match[2]) - int(match[1]) + 1
    elif match := _INTEGER.search(row.printed_as):
        width = int(match[1])
    if width != (8 * row.width or None):
        yield quoted(str(row.type))
    sequence = _SEQUENCE.search(row.printed_as)
    if sequence is not None or (isinstance(row.type, Byten) and row.type.constant):
        printed = f"Byte{sequence[1]}('{sequence[2]}')" if sequence else ""
        if str(row.type) != printed:
            yield quoted(str(row.type))
    containing = _CONTAINING.search(row.printed_as)
    if containing is not None and not (isinstance(row.type, Int) and row.type.constant == int(containing[1])):
        yield quoted(str(row.type))
    if (_REPEATED.search(row.printed_as) is not None) != (row.repeat is not None):
        yield quoted(f"repeat: {row.repeat}") if row.repeat else "no repetition"
    if (NULL.search(row.printed_as) is not None) != row.may_be_null:
        yield quoted("may be null: true") if row.may_be_null else f"{row.name} without may be null"
