"""Every way to alter one row, message, heading or table of a page's text, to see that each is found.

The text is cut up here by counting tags, not by the reader that is tested.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

_OPENING_OR_CLOSING = re.compile(r"<dt\b|</dd>|<varlistentry\b|</varlistentry>")
_TERM = re.compile(r'(?:<span class="term">|<term>)\s*(.*?)\s*(?:</span>|</term>)', re.DOTALL)
_TYPE = re.compile(r"Int\d|Byte|String|TupleData$")
_BYTEN = re.compile(r"Byte(?:<[^>]*>)+n(?:<[^>]*>)+(?=\s*</(?:span|term)>)")
_END_OF_DESCRIPTION = re.compile(r"\s*(?:</p>|</para>|</>)")

_SINCE = re.compile(r"\s*This field is available since protocol version (\d)\.")
_CONDITION = re.compile(
    r"\s*\(only present for streamed\s+transactions\)|,\s+present only when streaming is set to\s+parallel"
    r"|\s*Only present if the previous 'O' or 'K' part\s+is present\.|\s*This field is (?:optional|present)[^.]*\."
)
_REPEATED = re.compile(r"\s*This field is repeated for each (\w+)\.")


@dataclass
class _Entry:
    """An entry of a list, from its opening tag to its closing one."""

    start: int
    end: int = 0
    term: str = ""
    inner: list[_Entry] = field(default_factory=list)

    @property
    def is_row(self) -> bool:
        return not self.inner and _TYPE.match(self.term) is not None


@dataclass(frozen=True)
class Mutation:
    """A part of the text and what takes its place; the alteration shows between `shown_from` and `shown_to`."""

    what: str
    start: int
    end: int
    new: str
    message: int
    shown_from: int
    shown_to: int


def _all_entries(text: str) -> Iterator[_Entry]:
    """The entries that are there as a whole."""
    around: list[_Entry] = []
    for match in _OPENING_OR_CLOSING.finditer(text):
        if not match[0].startswith("</"):
            around.append(_Entry(match.start()))
        elif around:
            entry = around.pop()
            entry.end = match.end()
            term = _TERM.search(text, entry.start, entry.end)
            assert term is not None
            entry.term = re.sub(r"<[^>]*>", "", term[1])
            if around:
                around[-1].inner.append(entry)
            yield entry


class Mutations:
    """The mutations of one page."""

    def __init__(self, text: str, start: int = 0, end: int | None = None) -> None:
        """Only what lies between two positions is altered."""
        self.text = text
        whole = sorted(_all_entries(text), key=lambda entry: entry.start)
        everything = [entry for entry in whole if start <= entry.start and entry.end <= (end or len(text))]
        self.rows = [entry for entry in everything if entry.is_row]
        self.messages = [entry for entry in everything if any(inner.is_row for inner in entry.inner)]

    def apply(self, mutations: list[Mutation]) -> tuple[str, list[tuple[Mutation, int, int]]]:
        """The altered text, and for each alteration the first and the last line where it may be seen."""
        pieces: list[str] = []
        position = 0
        shift = 0
        where = []
        for mutation in sorted(mutations, key=lambda candidate: candidate.start):
            pieces += [self.text[position : mutation.start], mutation.new]
            position = mutation.end
            first = self.text.count("\n", 0, mutation.shown_from) + 1 + shift
            shift += mutation.new.count("\n") - self.text.count("\n", mutation.start, mutation.end)
            last = self.text.count("\n", 0, mutation.shown_to) + 1 + shift
            where.append((mutation, first, last))
        return "".join([*pieces, self.text[position:]]), where

    def batches(self) -> Iterator[list[Mutation]]:
        """All mutations, several at once where they are in messages far enough apart."""
        within = [*self.of_rows(), *self.of_texts()]
        yield from _apart(within, 1)
        yield from _apart(list(self.of_messages()), 4)

    def _mutation(self, what: str, start: int, end: int, new: str) -> Mutation:
        around = [row.start for row in self.rows] + [message.start for message in self.messages]
        message = max((index for index, entry in enumerate(self.messages) if entry.start <= start), default=-1)
        shown_from = max((position for position in around if position < start), default=0)
        shown_to = min((row.end for row in self.rows if row.start >= end), default=len(self.text))
        return Mutation(what, start, end, new, message, shown_from, shown_to)

    def of_rows(self) -> Iterator[Mutation]:
        """Each row altered, removed, doubled and swapped with the next."""
        for number, row in enumerate(self.rows, start=1):
            what = f"row {number}, {row.term}"
            body = self.text[row.start : row.end]
            yield self._mutation(f"{what}: removed", row.start, row.end, "")
            yield self._mutation(f"{what}: doubled", row.start, row.end, body + body)
            for new in _other_types(row.term):
                printed = _BYTEN.search(body) if row.term == "Byten" else re.search(re.escape(row.term), body)
                assert printed is not None
                changed = body[: printed.start()] + new + body[printed.end() :]
                yield self._mutation(f"{what}: printed as {new}", row.start, row.end, changed)
            for name, changed in _other_remarks(body):
                assert changed != body
                yield self._mutation(f"{what}: {name}", row.start, row.end, changed)
        for first, second in pairwise(self.rows):
            between = self.text[first.end : second.start]
            if not between.strip():
                new = self.text[second.start : second.end] + between + self.text[first.start : first.end]
                yield self._mutation(f"{first.term} and {second.term} swapped", first.start, second.end, new)

    def of_messages(self) -> Iterator[Mutation]:
        """Each message renamed, removed, doubled and swapped with the next."""
        for message in self.messages:
            body = self.text[message.start : message.end]
            what = f"message {message.term}"
            yield self._mutation(f"{what}: removed", message.start, message.end, "")
            yield self._mutation(f"{what}: doubled", message.start, message.end, body + body)
            name = body.index(message.term, body.index(">"))
            for new in (f"Other {message.term}", f"{message.term[0]}x{message.term[1:]}", ""):
                renamed = body[:name] + new + body[name + len(message.term) :]
                yield self._mutation(f"{what}: named {new!r}", message.start, message.end, renamed)
        for first, second in pairwise(self.messages):
            between = self.text[first.end : second.start]
            new = self.text[second.start : second.end] + between + self.text[first.start : first.end]
            yield self._mutation(f"{first.term} and {second.term} swapped", first.start, second.end, new)

    def of_texts(self) -> Iterator[Mutation]:
        """The headings above lists, the texts between tables and the sentences below them."""
        for pattern, replacements in _TEXTS:
            for match in re.finditer(pattern, self.text):
                for old, new in replacements:
                    changed = re.sub(old, new, match[0], count=1)
                    what = f"{' '.join(match[0].split())!r} to {' '.join(changed.split())!r}"
                    assert changed != match[0], what
                    yield self._mutation(what, match.start(), match.end(), changed)


def _apart(mutations: list[Mutation], distance: int) -> Iterator[list[Mutation]]:
    """Mutations of messages that are so many messages apart."""
    by_message: dict[int, list[Mutation]] = {}
    for mutation in mutations:
        by_message.setdefault(mutation.message, []).append(mutation)
    for first in range(distance):
        columns = [by_message[message] for message in sorted(by_message) if message % distance == first]
        for number in range(max(map(len, columns), default=0)):
            yield [column[number] for column in columns if number < len(column)]


_TEXTS = (
    (r"The following messages[^.]*\.", ((r".+(?s:.*)", ""), (r"version \d", "version 9"), (r"\w+ \w+, ", ""))),
    (r"Next,\s+the\s+following\s+message\s+part[^:]*:", ((r"(?s:.*)", ""), ("column", "row"), ("appears", "ends"))),
    (r"Next,\s+one\s+of[^:]*:", ((r"(?s:.*)", ""), ("column", "row"), ("one of", "all of"))),
    (r"(?<=\s)Or(?=\s)", (("Or", ""), ("Or", "And"))),
    (r"The \w+ message may contain either[^.]*\.", ((r"(?s:.*)", ""), ("'K'", "'N'"), ("never both", "often both"))),
    (r"\s+or neither of them", ((r"(?s:.*)", ""),)),
    (r"'O' message part(?=, but never)", (("part", "part or neither of them"),)),
)


def _other_types(term: str) -> Iterator[str]:
    """Types in place of a row's: unknown, of another kind or width, with another constant or name, or with none."""
    yield "Float8"
    if constant := re.fullmatch(r"Byte1\('(.)'\)", term):
        yield "Byte1('Z')"
        yield f"Byte1('{constant[1].swapcase()}')"
        yield "Byte1"
    elif integer := re.match(r"Int(\d+)", term):
        yield term.replace(integer[0], "Int16" if integer[0] == "Int8" else "Int8")
        yield f"{integer[0]} (Money)" if "(" in term else f"{integer[0]}(7)"
        if term != integer[0]:
            yield integer[0]
    else:
        yield "Int64" if term == "String" else "String"


def _other_remarks(body: str) -> Iterator[tuple[str, str]]:
    """Remarks removed, altered and added."""
    description = _END_OF_DESCRIPTION.search(body)
    assert description is not None
    end = description.start()
    if since := _SINCE.search(body):
        yield "without since", body[: since.start()] + body[since.end() :]
        yield "since the next version", body[: since.start(1)] + str(int(since[1]) + 1) + body[since.end(1) :]
        yield "since a later version", body[: since.start(1)] + "9" + body[since.end(1) :]
    else:
        yield "with since", f"{body[:end]} This field is available since protocol version 2.{body[end:]}"
    if condition := _CONDITION.search(body):
        yield "without its condition", body[: condition.start()] + body[condition.end() :]
        altered = re.sub(r"streamed|parallel|(?<=')O|is present only|is present if", "never", condition[0], count=1)
        if altered == condition[0]:
            altered = condition[0].replace("only present if", "never sent if")
        yield "with another condition", body[: condition.start()] + altered + body[condition.end() :]
        yield "with the opposite condition", body.replace("present", "not present")
    else:
        yield "with a condition", f"{body[:end]} This field is only present for streamed transactions.{body[end:]}"
    if repeated := _REPEATED.search(body):
        yield "not repeated", body[: repeated.start()] + body[repeated.end() :]
        yield "repeated otherwise", body[: repeated.start(1)] + "column" + body[repeated.end(1) :]
    else:
        yield "repeated", f"{body[:end]} This field is repeated for each relation.{body[end:]}"
