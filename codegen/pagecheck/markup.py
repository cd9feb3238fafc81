"""Definition lists in HTML or DocBook, with line numbers, in whole pages and fragments.

The parser treats both alike: HTML's `<dl><dt><dd>` is DocBook's `<variablelist><varlistentry><term><listitem>`. In a
fragment, unmatched end tags show which elements were open before it, and open elements continue after it; such lists
and entries have a missing head or tail.

One expression splits the text into tags in linear time. The standard library's parser is unsuitable: it takes quadratic
time for unfinished tags, raises AssertionError for some declarations, and ignores SGML's `</>`, which PostgreSQL's
sources used until release 10.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import unescape

MAX_DEPTH = 250
"""The maximum depth of open elements; real pages have about twenty."""


class MarkupError(ValueError):
    """A text that cannot be a page, with the reason."""


@dataclass(slots=True)
class Text:
    """A paragraph, or text between lists, with white space folded."""

    line: int
    text: str


@dataclass(slots=True)
class DefinitionList:
    """A list of terms and their definitions."""

    line: int
    entries: list[Entry] = field(default_factory=list)
    head_missing: bool = False
    tail_missing: bool = False


@dataclass(slots=True)
class Entry:
    """A term and its definition. The term is None if the fragment does not contain all of it."""

    line: int
    anchor: str | None = None
    term: str | None = None
    body: list[Text | DefinitionList] = field(default_factory=list)
    head_missing: bool = False
    tail_missing: bool = False


@dataclass(slots=True)
class Section:
    """A section with its heading, or the text before the first section."""

    line: int
    anchor: str | None = None
    title: str = ""
    body: list[Text | DefinitionList] = field(default_factory=list)
    head_missing: bool = False
    tail_missing: bool = False


_TAG = re.compile(
    r"""<(?P<end>/?)(?P<name>[A-Za-z][\w:.-]*+)(?P<attributes>(?:[^<>"']|"[^"<]*+"|'[^'<]*+')*+)>
    |   (?P<short></>)
    |   <!--.*?(?:-->|\Z)
    |   <[!?][^<>]*+>""",
    re.VERBOSE | re.DOTALL,
)
_ATTRIBUTE = re.compile(r"""(?<![\w:-])([\w:-]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++))""")
_TAG_CUT_AT_THE_START = re.compile(r"[^<>]*+>")
_TAG_CUT_AT_THE_END = re.compile(r"<[/!?A-Za-z]?[^<>]*+\Z")

_LISTS = {"variablelist", "dl"}
_ENTRIES = {"varlistentry", "term", "dt", "dd"}
_OTHER_LISTS = {"itemizedlist", "orderedlist", "simplelist", "procedure", "calloutlist"}
_SECTIONS = {"chapter", "section", "sect1", "sect2", "sect3", "sect4", "sect5", "refsect1", "refsect2"}
_SECTION_CLASSES = _SECTIONS | {"refentry", "preface", "appendix"}
_TITLES = {"title", "h1", "h2", "h3", "h4", "h5", "h6"}
_DOCUMENTS = {"html", "body"}
_PARAGRAPHS = {"p", "para", "simpara", "programlisting", "pre", "div", "note", "li", "tr"}
_SKIPPED = {"indexterm", "head", "script", "style", "comment", "remark"}
_SKIPPED_CLASSES = {"id_link", "indexterm"}
_EMPTY = {
    "anchor", "area", "base", "br", "co", "col", "colspec", "footnoteref", "hr", "img", "input", "link", "meta", "sbr",
    "source", "wbr", "xref",
}  # fmt: skip
_CLOSED_BY_THE_NEXT = {"p", "li", "tr", "td", "th", "option"}


@dataclass(slots=True)
class _Tag:
    """A start or end tag. The end tag with the name "" is SGML's `</>`, which ends the last open element."""

    line: int
    name: str
    is_end: bool
    attributes: str

    def attribute(self, name: str) -> str:
        for key, *values in _ATTRIBUTE.findall(self.attributes):
            if key.lower() == name:
                return unescape("".join(values))
        return ""


def _tokens(text: str) -> Iterator[_Tag | Text]:
    """Yield tags and the text between them, without comments and declarations."""
    position, line = 0, 1
    if cut := _TAG_CUT_AT_THE_START.match(text):
        position = cut.end()
        line += text.count("\n", 0, position)
    end = len(text)
    last = text.rfind("<")
    if last >= position and _TAG_CUT_AT_THE_END.match(text, last):
        end = last
    for match in _TAG.finditer(text, position, end):
        if match.start() > position:
            yield Text(line, unescape(text[position : match.start()]))
            line += text.count("\n", position, match.start())
        if match["name"]:
            name, is_end = match["name"].lower(), bool(match["end"])
            yield _Tag(line, name, is_end, match["attributes"])
            if not is_end and match["attributes"].endswith("/") and name not in _EMPTY:
                yield _Tag(line, name, True, "")
        elif match["short"]:
            yield _Tag(line, "", True, "")
        line += text.count("\n", match.start(), match.end())
        position = match.end()
    if end > position:
        yield Text(line, unescape(text[position:end]))


@dataclass(slots=True)
class _Open:
    """An open element; `node` is the element's result."""

    name: str
    node: Section | DefinitionList | Entry | None = None
    holds: str = ""
    """The use of the element's text: "body", "term", "title", "nothing"; "" for the surrounding element's use."""
    is_frame: bool = False
    """True if end tags of ordinary elements cannot close elements outside of it."""
    is_cut: bool = False
    """True if the element began before the fragment."""


class _Builder:
    """Converts tags to sections, lists and entries."""

    def __init__(self, opened_before: list[str]) -> None:
        self.sections = [Section(1, head_missing=True, tail_missing=True)]
        self.ended_before: list[str] = []
        """End tags of elements that were open before the fragment, innermost first."""
        self._open: list[_Open] = [_Open("", self.sections[0], "body", is_frame=True)]
        self._text: list[Text] = []
        self._whole = False
        """True after an element that can have nothing before it: nothing is missing from there on."""
        for name in opened_before:
            self._start(_Tag(1, name, False, ""), seen=False)

    def run(self, tokens: Iterator[_Tag | Text]) -> None:
        for token in tokens:
            if isinstance(token, Text):
                self._text.append(token)
            elif token.is_end:
                self._end(token)
            else:
                self._start(token)
        self._flush()
        for element in self._open[1:]:
            if element.node is not None and element.holds != "title":
                element.node.tail_missing = True
            if element.holds == "term" and isinstance(element.node, Entry):
                element.node.term = None

    def _flush(self) -> None:
        """Add the text since the last significant tag to its element."""
        if not self._text:
            return
        chunks, self._text = self._text, []
        text = " ".join("".join(chunk.text for chunk in chunks).split())
        if not text:
            return
        holder = next(element for element in reversed(self._open) if element.holds)
        node = holder.node
        if holder.holds == "nothing" or node is None:
            return
        line = _first_line(chunks)
        if holder.holds == "title" and isinstance(node, Section):
            node.title = f"{node.title} {text}".strip()
        elif holder.holds == "term" and isinstance(node, Entry):
            if holder.is_cut:
                return
            if node.term is None:
                node.term, node.line, node.head_missing = text, line, False
            else:
                node.term += f" {text}"
        elif holder.holds == "body" and isinstance(node, Section | Entry):
            node.body.append(Text(line, text))

    def _push(self, element: _Open) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise MarkupError(f"has more than {MAX_DEPTH} elements within each other")
        self._open.append(element)

    def _pop_to(self, index: int) -> None:
        self._flush()
        del self._open[index:]

    def _frame(self) -> _Open:
        index = len(self._open) - 1
        while not self._open[index].is_frame:
            index -= 1
        return self._open[index]

    def _start(self, tag: _Tag, *, seen: bool = True) -> None:
        name = tag.name
        if name in _EMPTY:
            return
        classes = set(tag.attribute("class").lower().split()) if tag.attributes else set()
        if name in _SKIPPED or classes & _SKIPPED_CLASSES:
            self._flush()
            self._push(_Open(name, holds="nothing"))
        elif name in _DOCUMENTS:
            self.sections[0].head_missing = False
            self._whole = True
            self._push(_Open(name))
        elif name in _SECTIONS or (name == "div" and classes & _SECTION_CLASSES):
            self._start_section(tag)
        elif name in _LISTS:
            self._start_list(tag, seen)
        elif name == "varlistentry":
            self._leave("varlistentry", "term", "listitem", unless="variablelist")
            self._start_entry(tag, seen)
        elif name in ("dt", "term"):
            self._start_term(tag, seen)
        elif name == "dd" or (name == "listitem" and self._frame().name not in _OTHER_LISTS):
            self._start_definition(tag)
        elif name in _TITLES and isinstance(self._frame().node, Section):
            self._flush()
            self._push(_Open(name, self._frame().node, "title"))
        else:
            self._start_other(tag)

    def _start_other(self, tag: _Tag) -> None:
        name = tag.name
        frame = self._frame()
        if name == "a" and frame.holds == "term" and isinstance(frame.node, Entry) and frame.node.anchor is None:
            frame.node.anchor = tag.attribute("id") or tag.attribute("name") or None
        if name in _PARAGRAPHS:
            self._flush()
        if name in _CLOSED_BY_THE_NEXT:
            self._close(name, until=lambda element: element.is_frame)
        self._push(_Open(name, is_frame=name in _OTHER_LISTS))

    def _start_section(self, tag: _Tag) -> None:
        """Start a section. It closes all open lists, so that a mistake does not spread to the next section."""
        innermost = max(index for index, element in enumerate(self._open) if isinstance(element.node, Section))
        self._pop_to(innermost + 1)
        self._whole = True
        section = Section(tag.line, tag.attribute("id") or tag.attribute("xml:id") or None)
        self.sections.append(section)
        self._push(_Open(tag.name, section, "body", is_frame=True))

    def _start_list(self, tag: _Tag, seen: bool) -> None:
        self._flush()
        new = DefinitionList(tag.line, head_missing=not (seen or self._whole))
        around = next(element.node for element in reversed(self._open) if isinstance(element.node, Section | Entry))
        assert isinstance(around, Section | Entry)
        around.body.append(new)
        self._push(_Open(tag.name, new, "nothing", is_frame=True))

    def _start_entry(self, tag: _Tag, seen: bool) -> Entry:
        self._flush()
        frame = self._frame()
        if not isinstance(frame.node, DefinitionList):
            self._start_list(_Tag(tag.line, "", False, ""), seen=False)
            frame = self._frame()
        assert isinstance(frame.node, DefinitionList)
        entry = Entry(
            tag.line, tag.attribute("id") or tag.attribute("xml:id") or None, head_missing=not (seen or self._whole)
        )
        frame.node.entries.append(entry)
        self._push(_Open(tag.name if tag.name == "varlistentry" else "", entry, "nothing", is_frame=True))
        return entry

    def _start_term(self, tag: _Tag, seen: bool) -> None:
        if tag.name == "dt":
            self._leave("", "dt", "dd", unless="dl")
        entry = self._entry_around(tag, seen)
        if entry.term is not None:
            entry.term += ","
        self._push(_Open(tag.name, entry, "term", is_frame=True, is_cut=not seen))

    def _start_definition(self, tag: _Tag) -> None:
        self._leave("dt", "dd", "term", unless="dl")
        self._push(_Open(tag.name, self._entry_around(tag, seen=False), "body", is_frame=True))

    def _entry_around(self, tag: _Tag, seen: bool) -> Entry:
        """Return the entry of a term or definition; a new entry if there is none."""
        self._flush()
        frame = self._frame()
        if isinstance(frame.node, Entry) and frame.holds == "nothing":
            return frame.node
        return self._start_entry(tag, seen)

    def _leave(self, *names: str, unless: str) -> None:
        """Close elements that a new entry of the same list ends, in HTML or if an end tag is missing."""
        while len(self._open) > 1:
            frame = self._frame()
            if frame.name == unless or frame.name not in names or isinstance(frame.node, DefinitionList | Section):
                return
            self._pop_to(max(index for index, element in enumerate(self._open) if element is frame))

    def _end(self, tag: _Tag) -> None:
        name = tag.name
        if name in _EMPTY:
            return
        if name in _DOCUMENTS:
            self._pop_to(1)
            self.sections[0].tail_missing = False
        elif not name:
            if not self._open[-1].is_frame:
                self._pop_to(len(self._open) - 1)
        elif name in _LISTS or name in _ENTRIES or (name == "listitem" and self._frame().name not in _OTHER_LISTS):
            if not self._close(name, until=lambda element: isinstance(element.node, Section)):
                self._flush()
                self.ended_before += [] if self._whole else [name]
        elif name in _SECTIONS:
            self._close(name, until=lambda element: False)
        else:
            if name in _PARAGRAPHS:
                self._flush()
            self._close(name, until=lambda element: element.is_frame)

    def _close(self, name: str, until: Callable[[_Open], bool]) -> bool:
        """Close the innermost element of a name and all elements in it; False if a frame is in the way."""
        for index in range(len(self._open) - 1, 0, -1):
            element = self._open[index]
            if element.name == name:
                if element.holds:
                    self._flush()
                del self._open[index:]
                return True
            if until(element):
                return False
        return False


def _first_line(chunks: list[Text]) -> int:
    for chunk in chunks:
        if stripped := chunk.text.lstrip():
            return chunk.line + chunk.text[: len(chunk.text) - len(stripped)].count("\n")
    return chunks[0].line


def read_markup(text: str) -> list[Section]:
    """Return a text's sections with their content. Raises MarkupError if elements are nested too deeply."""
    builder = _Builder([])
    builder.run(_tokens(text))
    if builder.ended_before:
        opened_before = builder.ended_before[::-1]
        builder = _Builder(opened_before)
        builder.run(_tokens(text))
    return builder.sections
