"""The pages that people read: their links lead somewhere, and each can be found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.contracts.pages import PAGES


def _prose(path: Path) -> str:
    """Return a page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def _links(path: Path) -> list[tuple[str, str]]:
    """Return the links within the repository: the file, empty for the page itself, and the heading."""
    links = re.findall(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)", _prose(path))
    return [(file, anchor) for file, anchor in links if file or anchor]


def _anchors(path: Path) -> set[str]:
    """Return the anchors that a page's headings have on GitHub."""
    headings = re.findall(r"^#+ (.*)$", _prose(path), re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)|`", r"\1", heading) for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES)
def test_links_of_pages_resolve(page: str) -> None:
    path = ROOT / page
    for file, anchor in _links(path):
        target = path.parent / file if file else path
        assert target.exists(), f"{page} links to {file}"
        assert not anchor or anchor in _anchors(target), f"{page} links to {file}#{anchor}"


def test_no_page_of_docs_is_long() -> None:
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in (ROOT / "docs").rglob("*.md")}
    assert {path.name: length for path, length in lengths.items() if length > 250} == {}, "split them by kind"


def test_each_picture_of_docs_is_shown() -> None:
    shown = {(ROOT / page).parent / file for page in PAGES for file, _ in _links(ROOT / page)}
    assert set((ROOT / "docs").rglob("*.svg")) <= {path.resolve() for path in shown}


def test_each_page_of_docs_is_found_from_the_readme() -> None:
    start = ROOT / "README.md"
    reached, queue = {start}, [start]
    while queue:
        path = queue.pop()
        for file, _ in _links(path):
            target = (path.parent / file).resolve()
            if target.suffix == ".md" and target.is_file() and target not in reached:
                reached.add(target)
                queue.append(target)
    assert {path.resolve() for path in (ROOT / "docs").rglob("*.md")} - reached == set()
