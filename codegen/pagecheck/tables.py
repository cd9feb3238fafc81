"""Comparison of a message's rows with its layout's fields."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

from codegen.model.places import Place
from codegen.pagecheck import quoting
from codegen.pagecheck.alignment import align
from codegen.pagecheck.expected import ExpectedBoundary, ExpectedRow, Layout
from codegen.pagecheck.facts import facts_that_differ
from codegen.pagecheck.page import Block, Message, Row
from codegen.pagecheck.quoting import NOTHING, Difference, quoted
from codegen.pagecheck.remarks import Condition
from codegen.pagecheck.wording import change_places, likeness, words

_GAP = 1.5
_OTHER_TYPE = 2.5
_OTHER_CONSTANT = 1.0
_OTHER_REMARK = 0.6
_OTHER_WORDS = 0.2
"""Costs of pairing two elements despite a difference. A different type costs less than an extra row and a missing row,
so that one altered row is one difference."""

Element = Row | Block
Expected = ExpectedRow | ExpectedBoundary


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read a page."""

    source: Path
    version: int
    is_old: bool
    """True for a page before PostgreSQL 15: no names in parentheses after types, no anchors of messages, constants in
    descriptions, other capitals in messages' names."""

    def is_later(self, since: int | None) -> bool:
        """Return whether the page dates an element after the compared version."""
        return since is not None and since > self.version


def distance(message: Message, layout: Layout, reading: Reading) -> float:
    """Return the distance of a message on the page from a layout; nearly 0 if they agree."""
    choices = [set(choice.constants) for choice in layout.choices]
    unknown = [remark for remark in message.remarks if remark.choice and set(remark.choice.constants) not in choices]
    return _pair(message, layout, reading)[0] + _GAP * len(unknown)


def compare_tables(message: Message, layout: Layout, reading: Reading) -> list[Difference]:
    """Return the differences between a message's tables and its layout."""
    return _Tables(message, layout, reading).differences


def _elements(message: Message) -> list[Element]:
    """Return rows, and tables that need a text before them."""
    elements: list[Element] = []
    for index, block in enumerate(message.blocks):
        if index or block.kind not in ("fields", "unknown"):
            elements.append(block)
        elements += block.rows
    return elements


def _expected(message: Message, layout: Layout) -> list[Expected]:
    """Return the expected elements without rows that this page prints under another tag."""
    printed = {row.type for row in message.rows}
    return [
        element
        for element in layout.elements
        if isinstance(element, ExpectedBoundary)
        or element.printed_under is None
        or f"Byte1('{element.printed_under}')" not in printed
    ]


def _pair(
    message: Message, layout: Layout, reading: Reading
) -> tuple[float, list[tuple[Element | None, Expected | None]]]:
    elements, expected = _elements(message), _expected(message, layout)
    cost, pairs = align(
        elements,
        expected,
        partial(_cost, reading=reading),
        cost_of_left=lambda element: 0 if _is_left_out(element, reading) else _GAP,
        cost_of_right=lambda element: 0 if _may_be_cut_off(element, message) else _GAP,
        head_of_right_is_free=message.head_missing,
        tail_of_right_is_free=message.tail_missing,
    )
    return cost, [(None if i is None else elements[i], None if j is None else expected[j]) for i, j in pairs]


def _is_left_out(element: Element, reading: Reading) -> bool:
    """Return whether a row needs no counterpart: it is newer, or the page has only its end."""
    return isinstance(element, Row) and (element.type is None or reading.is_later(element.since))


def _may_be_cut_off(element: Expected, message: Message) -> bool:
    """Return whether a row may follow under another tag, after the end of the page."""
    return message.tail_missing and isinstance(element, ExpectedRow) and element.printed_under is not None


def _cost(element: Element, wanted: Expected, *, reading: Reading) -> float | None:
    if isinstance(element, Block) and isinstance(wanted, ExpectedBoundary):
        return 0 if element.kind == wanted.kind else _OTHER_REMARK
    if not (isinstance(element, Row) and isinstance(wanted, ExpectedRow)):
        return None
    if _type_fits(element, wanted, reading):
        cost = _OTHER_WORDS * (1 - likeness(wanted.field, element.description))
    else:
        cost = _OTHER_CONSTANT if _base(element.type) == _base(wanted.type) else _OTHER_TYPE
    remarks = len(_remarks_that_differ(element, wanted)) + (not _values_fit(element, wanted))
    return cost + _OTHER_REMARK * remarks


def _base(printed: str | None) -> str:
    return (printed or "").partition("(")[0].rstrip()


def _is_cut(element: Element) -> bool:
    """Return whether remarks may be missing because the page begins or ends within a row."""
    return isinstance(element, Row) and (element.type is None or element.tail_missing)


def _type_fits(row: Row, wanted: ExpectedRow, reading: Reading) -> bool:
    if row.type is None:
        return True
    expected = wanted.plain_type if reading.is_old else wanted.type
    if "(" in row.type or not expected.startswith(f"{row.type}("):
        return row.type == expected
    # An old page has the constant in the description, which may be cut off.
    return expected == f"{row.type}({row.fixed_value})" or (row.fixed_value is None and row.tail_missing)


def _remarks_that_differ(element: Element, wanted: Expected) -> list[tuple[str, str]]:
    """Return the differing remarks, printed and specified. Ignores remarks that may be cut off."""
    cut = _is_cut(element)
    remarks_of_page = (element.since, element.condition, element.repeated_for)
    fits = (
        element.since == wanted.since,
        _condition_fits(element.condition, wanted),
        _counted_by(element.repeated_for, wanted.repeated_for),
    )
    printed, specified = quoting.printed_remarks(element), quoting.specified_remarks(wanted)
    every = zip(printed, specified, remarks_of_page, fits, strict=True)
    return [
        (printed_text, other) for printed_text, other, remark, fit in every if not fit and not (cut and remark is None)
    ]


def _values_fit(row: Row, wanted: ExpectedRow) -> bool:
    """Return whether a description lists the spec's values: bits with their names, or 0 and 1."""
    field = wanted.field
    if not (field.bits or field.boolean) or _is_cut(row):
        return True
    numbers = re.findall(r"\b(\d{1,3})\b([^0-9]*)", row.description, re.ASCII)
    listed = {int(number): words_after for number, words_after in numbers}
    if field.boolean:
        return 1 in listed and set(listed) <= {0, 1}
    return set(listed) - {0} == set(field.bits) and all(
        words(name.replace("_", " ")) <= words(listed[bit]) for bit, name in field.bits.items()
    )


def _condition_fits(printed: Condition | None, wanted: Expected) -> bool:
    if printed is None or wanted.condition is None:
        return printed is None and wanted.condition is None
    if wanted.condition == "previous":
        return printed.kind == "previous" and set(printed.constants) == set(wanted.constants)
    if wanted.condition == "other":
        return words((wanted.field.when or "").replace("_", " ")) <= words(printed.text)
    return printed.kind == wanted.condition


def _counted_by(subject: str | None, counter: str | None) -> bool:
    """Return whether `column_count` counts "for each published column"."""
    if subject is None or counter is None:
        return subject is counter
    return bool(words(counter.replace("_", " ")) & words(subject))


class _Tables:
    def __init__(self, message: Message, layout: Layout, reading: Reading) -> None:
        self.differences: list[Difference] = []
        self._reading = reading
        line, place, previous = message.line, layout.place, quoting.name_of(message)
        _, pairs = _pair(message, layout, reading)
        for element, wanted in pairs:
            line = line if element is None else element.line
            place = place if wanted is None else wanted.place
            if element is None and wanted is not None:
                if not _may_be_cut_off(wanted, message):
                    printed = quoting.nothing_beside("after", previous)
                    self._differ(line, wanted.place, wanted.what, printed, self._specified(wanted))
            elif element is not None and wanted is None:
                if not _is_left_out(element, reading):
                    self._differ(line, place, layout.name, quoting.whole(element), NOTHING)
            elif element is not None and wanted is not None:
                self._compare(element, wanted)
            previous = previous if element is None else quoting.whole(element)
        self._compare_neighbours(pairs)

    def _differ(self, line: int, spec: Place, what: str, printed: str, specified: str) -> None:
        self.differences.append(Difference(Place(self._reading.source, line), spec, what, printed, specified))

    def _specified(self, wanted: Expected) -> str:
        return quoting.whole_expected(wanted, plain=self._reading.is_old)

    def _compare(self, element: Element, wanted: Expected) -> None:
        differ = partial(self._differ, element.line, wanted.place, wanted.what)
        if isinstance(element, Row) and isinstance(wanted, ExpectedRow):
            if not _type_fits(element, wanted, self._reading):
                differ(quoted(element.type or ""), quoted(wanted.plain_type if self._reading.is_old else wanted.type))
            if not _values_fit(element, wanted):
                differ(quoted(element.description), quoting.specified_values(wanted))
            if not _is_cut(element):
                for printed, specified in facts_that_differ(element.description, wanted):
                    differ(printed, specified)
        elif isinstance(element, Block) and isinstance(wanted, ExpectedBoundary) and element.kind != wanted.kind:
            differ(quoting.whole(element), self._specified(wanted))
            return
        for printed, specified in _remarks_that_differ(element, wanted):
            differ(printed, specified)

    def _compare_neighbours(self, pairs: list[tuple[Element | None, Expected | None]]) -> None:
        """Find neighbouring rows of one type in the wrong order."""
        rows = [
            (element, wanted)
            for element, wanted in pairs
            if isinstance(element, Row) and isinstance(wanted, ExpectedRow) and not _is_cut(element)
        ]
        for (upper, first), (lower, second) in pairwise(rows):
            if upper.type != lower.type or first.field is second.field:
                continue
            if change_places(first.field, second.field, upper.description, lower.description):
                self._differ(
                    upper.line,
                    first.place,
                    first.what,
                    f"{quoted(upper.description)} before {quoted(lower.description)}",
                    f"{quoted(first.field.name)} before {quoted(second.field.name)}",
                )
