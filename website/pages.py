"""The repository's Markdown as pages of the site: where each comes to stand, and where its links lead."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from codegen.shared import ROOT


@dataclass(frozen=True)
class Page:
    """A page: its file in the repository, and its place in the site, both relative."""

    source: str
    target: str


_ELSEWHERE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "examples/README.md": "examples.md",
    "src/logicalrep/README.md": "modules.md",
    "spec/README.md": "notation.md",
    "codegen/README.md": "generator.md",
    "native/README.md": "native-reader.md",
    "tests/captures/README.md": "captures.md",
    "conformance/README.md": "conformance-kit.md",
}
"""Pages that stand beside what they are about."""


def _pages() -> list[Page]:
    docs = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))
    return [
        *(Page(source, target) for source, target in _ELSEWHERE.items()),
        *(Page(f"docs/{name}", re.sub(r"README\.md$", "index.md", name)) for name in docs),
    ]


PAGES = _pages()
_TARGETS = {page.source: page.target for page in PAGES}
_TEST = re.compile(r"^<!-- (?:test|not run): .* -->\n", re.MULTILINE)
"""A comment that names the test of the blocks below it."""
_LINK = re.compile(r"(!?)\[((?:[^][]|\[[^]]*\])*)\]\((?!\w+:)([^)#\s]*)((?:#[^)\s]*)?)\)")


def anchor(heading: str) -> str:
    """Return the name of a heading in addresses, as forges write it.

    Example:
        >>> anchor("Deleted rows, history, changes")
        'deleted-rows-history-changes'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def page_text(page: Page) -> str:
    """Return a page's Markdown for the site.

    A link to another page leads there. One to a file that is no page becomes the file's path, as the repository's
    address is not known yet. A diagram becomes its picture. Comments on tests are removed.
    """
    text = (ROOT / page.source).read_text("utf-8")
    pieces = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    diagrams = 0
    for index, piece in enumerate(pieces):
        if piece.startswith("```mermaid\n"):
            diagrams += 1
            picture = f"{_up(page)}{diagram_name(page.source, diagrams)}.svg"
            pieces[index] = f"[![Diagram of this page]({picture}){{: .diagram }}]({picture})"
        elif not piece.startswith("```"):
            pieces[index] = _LINK.sub(lambda link: _led(page, link), _TEST.sub("", piece))
    return "".join(pieces)


def diagrams() -> dict[str, str]:
    """Return the texts of the pages' diagrams by the names of their pictures."""
    texts = {}
    for page in PAGES:
        blocks = re.findall(r"^```mermaid\n(.*?)^```$", (ROOT / page.source).read_text("utf-8"), re.M | re.S)
        for number, text in enumerate(blocks, start=1):
            texts[diagram_name(page.source, number)] = text
    return texts


def diagram_name(source: str, number: int) -> str:
    """Return the name of the picture of a page's diagram; the diagrams of a page are counted from 1.

    Example:
        >>> diagram_name("docs/explanation/concepts.md", 2)
        'concepts-diagram-2'
    """
    return f"{Path(source).stem}-diagram" + (f"-{number}" if number > 1 else "")


def _up(page: Page) -> str:
    """Return the way from a page to the site's folder."""
    return "../" * page.target.count("/")


def _led(page: Page, link: re.Match[str]) -> str:
    mark, text, file, heading = link.groups()
    if not file:
        return link[0]
    path = os.path.normpath(os.path.join(os.path.dirname(page.source), file))
    if mark:
        return f"![{text}]({_up(page)}{os.path.basename(path)})"
    if os.path.isdir(ROOT / path):
        path = f"{path}/README.md"
    if path in _TARGETS:
        target = os.path.relpath(_TARGETS[path], os.path.dirname(page.target) or ".")
        return f"[{text}]({target}{heading})"
    shown = path.removesuffix("/README.md")
    code = f"<code>{shown.replace('/', '/<wbr>')}</code>"
    return text if "`" in text else code if text == shown else f"{text} ({code})"
