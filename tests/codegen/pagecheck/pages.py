"""Pages for the tests: the documentation's, and others drawn up from the spec's layouts.

The drawn pages have the markup of several releases, and descriptions that are made of the fields' names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from codegen.model.model import Protocol
from codegen.model.versions import view
from codegen.pagecheck.expected import ExpectedBoundary, ExpectedRow, Layout, layouts
from tests.codegen.diff.specs import PROTOCOLS
from tests.conftest import ROOT

PAGES = ROOT / "spec" / "pages"
PAGE_18 = PAGES / "postgresql-18-logicalrep-message-formats.html"
TYPES_18 = PAGES / "postgresql-18-message-data-types.html"
ERROR_FIELDS_18 = PAGES / "postgresql-18-error-fields.html"
PGWIRE_PAGE_18 = PAGES / "postgresql-18-message-formats.html"
COPY_PAGE_15 = PAGES / "postgresql-15-copy.html"
REPLICATION_PAGE_15 = PAGES / "postgresql-15-streaming-replication-protocol.html"
STATUS_19 = PAGES / "postgresql-19-primary-status.sgml"
FRAGMENTS = tuple(sorted((PAGES / "fragments").glob("*.sgml")))

BASEBACKUP, COPY_BINARY, LOGICALREP, PGWIRE, WALSENDER = PROTOCOLS


@dataclass(frozen=True)
class Style:
    """The markup of a release."""

    name: str
    docbook: bool
    old: bool
    """As before PostgreSQL 15: no anchors, no names in parentheses, terms on lines of their own."""
    short_tags: bool = False
    """As before PostgreSQL 11: `</>` ends an element."""


HTML = Style("html", docbook=False, old=False)
OLD_HTML = Style("old html", docbook=False, old=True)
DOCBOOK = Style("docbook", docbook=True, old=False)
OLD_DOCBOOK = Style("old docbook", docbook=True, old=True)
SGML = Style("sgml", docbook=True, old=True, short_tags=True)
STYLES = (HTML, OLD_HTML, DOCBOOK, OLD_DOCBOOK, SGML)

_WORDS_OF_TYPE = {
    "XLogRecPtr": ", a place in the WAL",
    "TimestampTz": ", as microseconds since midnight on 2000-01-01",
    "FullTransactionId": ", along with its epoch",
    "TransactionId": ": the global xmin, that is",
}
"""How pages describe an integer's named type that they do not print."""

_BEGINNING_OF_HTML = """<?xml version="1.0" encoding="UTF-8" standalone="no"?>
<!DOCTYPE html><html><head><title>Formats</title><meta charset="utf-8" /></head><body id="docContent">
<div class="navheader"><a href="index.html" title="PostgreSQL 99.1 Documentation">Home</a><hr /></div>
"""


def draw(protocol: Protocol, version: int, style: Style) -> str:
    """A page with the layouts of one version."""
    writer = _Writer(style, protocol, version)
    section = writer.section()
    if style.docbook:
        return f"<!-- doc/src/sgml/protocol.sgml -->\n{section}\n"
    return f"{_BEGINNING_OF_HTML}{section}<div class='navfooter'><hr /></div></body></html>"


class _Writer:
    def __init__(self, style: Style, protocol: Protocol, version: int) -> None:
        self._style = style
        self._protocol = protocol
        self._layouts = layouts(view(protocol, version))
        self._entries = 0

    def section(self) -> str:
        anchor, title = self._protocol.anchor.rstrip("-"), self._protocol.title
        body = self._text("What follows describes each message. See <xref>.") + "".join(self._groups())
        if self._style.docbook:
            return f'<sect1 id="{anchor.lower()}">\n<title>{title}</title>\n{body}</sect1>'
        heading = f'<h2 class="title">54.9. {title} <a href="#{anchor}" class="id_link">#</a></h2>'
        return f'<div class="sect1" id="{anchor}"><div class="titlepage">{heading}</div>{body}</div>'

    def _groups(self) -> list[str]:
        groups: dict[tuple[int, bool], list[Layout]] = {}
        for layout in self._layouts:
            groups.setdefault((layout.since, layout.is_part), []).append(layout)
        written = []
        for (since, are_parts), members in groups.items():
            if since > 1:
                names = ", ".join(layout.name for layout in members)
                written.append(
                    self._text(f"The following messages ({names})\nare available since protocol version {since}.")
                )
            if are_parts:
                written.append(self._text("The following message parts are shared by the above messages."))
            written.append(self._list([self._message(layout) for layout in members]))
        return written

    def _message(self, layout: Layout) -> str:
        tables: list[str] = []
        rows: list[str] = []
        between = ""
        elements = [row for row in layout.elements if isinstance(row, ExpectedBoundary) or row.printed_under is None]
        for element in elements:
            if isinstance(element, ExpectedRow):
                rows.append(self._row(element))
                continue
            tables.append(between + self._list(rows))
            between, rows = self._between(element), []
        tables.append(between + self._list(rows))
        tables += [
            self._text(
                f"The {layout.name} message may contain either a '{choice.constants[0]}' message part or an "
                f"'{choice.constants[1]}' message part{' or neither of them' if choice.may_be_none else ''}, "
                "but never both of them."
            )
            for choice in layout.choices
        ]
        name = f"{layout.name} ({layout.direction})" if layout.direction else layout.name
        return self._entry(name, "".join(tables), None if self._style.old else layout.anchor)

    def _row(self, row: ExpectedRow) -> str:
        printed = row.plain_type if self._style.old else row.type
        description = f"The {row.field.name.replace('_', ' ')}{_WORDS_OF_TYPE.get(row.field.is_named or '', '')}."
        if row.measured and row.measured.repeat == row.field.name:
            description = f"The number of {row.field.name.replace('_', ' ')}."
        if row.field.is_named == "Epoch":
            description = f"The epoch of the {row.field.name}."
        if self._style.old and (constant := re.fullmatch(r"Int8\((\d)\)", printed)):
            printed, description = "Int8", f"The flags; currently unused (must be {constant[1]})."
        if row.field.bits:
            names = [f"{bit} for {name.replace('_', ' ')}" for bit, name in row.field.bits.items()]
            description = f"Flags: 0 for none, {', '.join(names)}."
        if row.field.boolean:
            description = f"The {row.field.name.replace('_', ' ')}: 1 if so, 0 otherwise."
        if row.condition == "streamed":
            description = description[:-1] + " (only present for streamed\n  transactions)."
        elif row.condition == "parallel":
            description = description[:-1] + ", present only when streaming is set to parallel."
        elif row.condition == "previous":
            tags = " or ".join(f"'{constant}'" for constant in reversed(row.constants))
            description += f" Only present if the previous {tags} part\n  is present."
        elif row.condition == "optional":
            description += " This field is optional and is only present if the table is set to it."
        elif row.condition == "depends":
            description += " This field is present if the table is set to it."
        if row.repeated_for:
            description += f" This field is repeated for each {row.repeated_for.removesuffix('_count')}."
        if row.since:
            description += f"\n  This field is available since protocol version {row.since}."
        return self._entry(self._variable(printed), self._text(description), None)

    def _variable(self, printed: str) -> str:
        """The n of Byten is marked up."""
        if printed != "Byten":
            return printed
        if self._style.short_tags:
            return "Byte<replaceable>n</>"
        if self._style.docbook:
            return "Byte<replaceable>n</replaceable>"
        return 'Byte<em class="replaceable"><code>n</code></em>'

    def _between(self, boundary: ExpectedBoundary) -> str:
        subject = (boundary.repeated_for or "").removesuffix("_count")
        if boundary.kind == "or":
            return self._text("Or")
        if boundary.kind == "one of":
            return self._text(f"Next, one of the following submessages appears for each published {subject}:")
        return self._text(f"Next, the following message part appears for each {subject} (except\n  some):")

    def _text(self, text: str) -> str:
        text = text.replace("<xref>", '<xref linkend="x">' if self._style.short_tags else '<a href="x">there</a>')
        if not self._style.docbook:
            return f"<p>\n  {text}\n </p>"
        return f"<para>\n  {text}\n</>\n" if self._style.short_tags else f"<para>\n  {text}\n</para>\n"

    def _list(self, entries: list[str]) -> str:
        if self._style.docbook:
            return f"<variablelist>\n{''.join(entries)}</variablelist>\n"
        return f'<div class="variablelist"><dl class="variablelist">{"".join(entries)}</dl></div>'

    def _entry(self, term: str, body: str, anchor: str | None) -> str:
        printed = f"\n  {term}\n" if self._style.old else term
        if self._style.docbook:
            attribute = f' id="{anchor.lower()}"' if anchor else ""
            return (
                f"<varlistentry{attribute}>\n<term>{printed}</term>\n<listitem>\n{body}</listitem>\n</varlistentry>\n"
            )
        attribute = f' id="{anchor}"' if anchor else ""
        link = f' <a href="#{anchor}" class="id_link">#</a>' if anchor else ""
        return f'<dt{attribute}><span class="term">{printed}</span>{link}</dt><dd>{body}</dd>'


def read(path: Path) -> str:
    """The text of one of the documentation's pages."""
    return path.read_text(encoding="utf-8")
