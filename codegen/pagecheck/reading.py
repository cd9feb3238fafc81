"""A page's text -> messages: distinguishes messages' tables from other lists."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

from codegen.pagecheck import remarks
from codegen.pagecheck.markup import DefinitionList, Entry, MarkupError, Section, Text, read_markup
from codegen.pagecheck.page import Block, Group, Message, Page, Remark, Row, Term, TermList


class DocPageError(Exception):
    """A text that is not a page with messages' tables, with the reason."""

    def __init__(self, source: str, reason: str) -> None:
        self.source = source
        self.reason = reason
        super().__init__(f"{source}: {reason}")


_FIELD_TYPE = re.compile(r"(?:Int\d+|Byte(?:\d+|n)|String)(?:\[\w*\])?(?: ?\([^()]*\))?(?: ?\([^()]*\))?", re.ASCII)
_DIRECTION = re.compile(r"(.+?) \(([BF](?: & [BF])?)\)")
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")


def read_page(path: Path, lists: Collection[str] = (), quotes: Collection[str] = ()) -> Page:
    """Read a page from a file, with the lists of the given anchors. Raises DocPageError if that is impossible.

    A page without tables must contain one of `quotes`.
    """
    source = str(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DocPageError(source, f"cannot be read: {error.strerror or error}") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("iso-8859-1")
    return parse_page(text, source, lists, quotes)


def parse_page(text: str, source: str = "page", lists: Collection[str] = (), quotes: Collection[str] = ()) -> Page:
    """Parse a page. Raises DocPageError if the text is not a page."""
    if not text.strip():
        raise DocPageError(source, "is empty")
    if _CONTROL_CHARACTERS.search(text):
        raise DocPageError(source, "is not text")
    try:
        sections = read_markup(text.replace("\r\n", "\n"))
    except MarkupError as error:
        raise DocPageError(source, str(error)) from error
    messages = tuple(message for section in sections for message in _Reader(section).messages)
    candidates = [_terms(section) for section in sections if (section.anchor or "").upper() in lists]
    terms = tuple(terms_of_section for terms_of_section in candidates if terms_of_section is not None)
    paragraphs = [paragraph for section in sections for paragraph in _paragraphs(section.body)]
    words = " ".join(paragraph.text for paragraph in paragraphs)
    if not messages and not terms and not any(quote in words for quote in quotes):
        raise DocPageError(source, "has no table of message fields, neither in HTML nor in DocBook")
    starts = accumulate((len(paragraph.text) + 1 for paragraph in paragraphs), initial=0)
    lines = zip(starts, (paragraph.line for paragraph in paragraphs), strict=False)
    return Page(source, messages, terms, words, tuple(lines))


def _paragraphs(body: list[Text | DefinitionList]) -> Iterator[Text]:
    """Yield all texts of a section, including terms of lists."""
    for item in body:
        if isinstance(item, Text):
            yield item
            continue
        for entry in item.entries:
            if entry.term is not None:
                yield Text(entry.line, entry.term)
            yield from _paragraphs(entry.body)


def _terms(section: Section) -> TermList | None:
    """Return a section's first list of terms; None if there is none."""
    definitions = next((item for item in section.body if isinstance(item, DefinitionList)), None)
    if definitions is None:
        return None
    terms = tuple(
        Term(entry.line, entry.term, " ".join(item.text for item in entry.body if isinstance(item, Text)))
        for entry in definitions.entries
        if entry.term is not None
    )
    return TermList(definitions.line, str(section.anchor).upper(), terms, definitions.tail_missing)


class _Reader:
    def __init__(self, section: Section) -> None:
        self.messages: list[Message] = []
        self._section = section
        self._walk(section.body, (), section.head_missing)

    def _walk(self, body: list[Text | DefinitionList], entries: tuple[str, ...], head_missing: bool) -> None:
        above: list[Text] = []
        loose: list[Text | DefinitionList] = []
        for item in body:
            if isinstance(item, Text):
                above.append(item)
                loose.append(item)
            elif _is_table(item):
                loose.append(item)
            else:
                self._read_loose(loose, entries)
                self._read_list(item, above, entries, head_missing)
                above, loose, head_missing = [], [], False
        self._read_loose(loose, entries)

    def _read_loose(self, loose: list[Text | DefinitionList], entries: tuple[str, ...]) -> None:
        """Read tables outside of any message: their message begins before the page and ends after it."""
        tables = [item for item in loose if isinstance(item, DefinitionList)]
        if tables:
            head_missing, tail_missing = self._section.head_missing, self._section.tail_missing
            group = replace(self._group(tables[0], [], entries, head_missing), tail_missing=tail_missing)
            entry = Entry(tables[0].line, body=loose, head_missing=head_missing, tail_missing=tail_missing)
            self.messages.append(_message(entry, group))

    def _read_list(self, item: DefinitionList, above: list[Text], entries: tuple[str, ...], head_missing: bool) -> None:
        if not any(_is_message(entry) for entry in item.entries):
            for entry in item.entries:
                self._walk(entry.body, (*entries, entry.anchor or entry.term or "?"), entry.head_missing)
            return
        group = self._group(item, above, entries, head_missing)
        self.messages += [_message(entry, group) for entry in item.entries if entry.term or entry.body]

    def _group(self, item: DefinitionList, above: list[Text], entries: tuple[str, ...], head_missing: bool) -> Group:
        heading = next((text for text in reversed(above) if remarks.is_about_the_following(text.text)), None)
        return Group(
            line=heading.line if heading else item.line,
            since=remarks.since(heading.text) if heading else None,
            names=remarks.listed_names(heading.text) if heading else (),
            heading_missing=heading is None and (item.head_missing or head_missing),
            tail_missing=item.tail_missing,
            section=self._section.anchor,
            section_title=self._section.title,
            section_head_missing=self._section.head_missing,
            section_tail_missing=self._section.tail_missing,
            entries=entries,
        )


def _is_field_type(term: str | None) -> bool:
    return term is not None and _FIELD_TYPE.fullmatch(term) is not None


def _is_table(item: Text | DefinitionList) -> bool:
    """Return whether a list is a table of fields. One known type is enough, so that a wrong type is still a row."""
    return isinstance(item, DefinitionList) and any(_is_field_type(entry.term) for entry in item.entries)


def _is_message(entry: Entry) -> bool:
    return not _is_field_type(entry.term) and any(_is_table(item) for item in entry.body)


def _message(entry: Entry, group: Group) -> Message:
    name = None if entry.term is None else entry.term.translate(_QUOTES)
    direction = None
    if name is not None and (match := _DIRECTION.fullmatch(name)):
        name, direction = match[1], match[2]
    blocks: list[Block] = []
    texts: list[Text] = []
    beside: list[Text] = []
    for item in entry.body:
        if isinstance(item, Text):
            texts.append(item)
        else:
            beside += texts[:-1]
            blocks.append(_block(item, texts[-1] if texts else None, first=not blocks, after_a_gap=entry.head_missing))
            texts = []
    beside += texts
    return Message(
        line=entry.line,
        name=name,
        group=group,
        direction=direction,
        anchor=entry.anchor,
        blocks=tuple(blocks),
        remarks=tuple(
            Remark(text.line, text.text, remarks.choice(text.text), remarks.older_row(text.text)) for text in beside
        ),
        head_missing=entry.head_missing,
        tail_missing=entry.tail_missing,
    )


def _block(item: DefinitionList, text: Text | None, *, first: bool, after_a_gap: bool) -> Block:
    """Return a table. A message's first table needs no text before it, unless the message begins before the page."""
    rows = tuple(_row(entry) for entry in item.entries)
    line = text.line if text else item.line
    words = text.text if text else ""
    bounds = remarks.boundary(words)
    if first and bounds.kind == "other":
        bounds = remarks.Boundary("unknown" if after_a_gap else "fields")
    if bounds.kind in ("fields", "unknown"):
        return Block(line, bounds.kind, words, rows)
    return Block(line, bounds.kind, words, rows, remarks.since(words), remarks.condition(words), bounds.repeated_for)


def _row(entry: Entry) -> Row:
    description = " ".join(item.text for item in entry.body if isinstance(item, Text)).translate(_QUOTES)
    is_cut = entry.term is None and (entry.head_missing or entry.tail_missing)
    sentences = remarks.sentences(description)
    if is_cut:
        sentences = sentences[1:]
    if entry.tail_missing and not description.endswith("."):
        sentences = sentences[:-1]
    whole = " ".join(sentences)
    return Row(
        line=entry.line,
        type=None if is_cut else (entry.term or "").translate(_QUOTES),
        description=description,
        since=remarks.since(whole),
        condition=remarks.condition(whole),
        repeated_for=remarks.repeated(whole),
        fixed_value=remarks.fixed_value(whole),
        tail_missing=entry.tail_missing,
    )
