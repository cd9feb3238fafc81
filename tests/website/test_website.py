"""The site: its links lead somewhere, it fetches nothing from elsewhere, and each page has a place in it."""

from __future__ import annotations

import functools
import os
import re
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import pytest

from tests.browsers import NEEDS_BROWSER, running, show
from tests.conftest import ROOT
from tests.waiting import eventually
from website import building
from website.building import build
from website.diagrams import FOLDER, mark
from website.pages import diagrams
from website.python_api import MODULES, python_api
from website.recording import COLUMNS, COMMANDS, PICTURE


class _Addresses(HTMLParser):
    """What a page links to, what it loads, and the names of its places."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.names |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        self.loaded += [values[name] for name in ("src", "srcset", "data") if name in values]
        if tag == "link":
            self.loaded.append(values["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the built site: the site of `make docs`, if LOGICALREP_SITE names it."""
    if built := os.environ.get("LOGICALREP_SITE"):
        return ROOT / built
    out = tmp_path_factory.mktemp("site")
    assert build(tmp_path_factory.mktemp("pages"), out) == []
    return out


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, _Addresses]:
    return {path: _Addresses(path.read_text("utf-8")) for path in site.rglob("*.html")}


def test_each_link_leads_to_a_place(site: Path, pages: dict[Path, _Addresses]) -> None:
    lost = []
    for path, page in pages.items():
        for address in page.links:
            parts = urlsplit(address)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchors = pages[target].names if target in pages else set()
            if not target.is_file() or (parts.fragment and unquote(parts.fragment) not in anchors):
                lost.append(f"{path.relative_to(site)} -> {address}")
    assert len(pages) > 40
    assert lost == []


def test_nothing_is_fetched_from_elsewhere(site: Path, pages: dict[Path, _Addresses]) -> None:
    loaded = {address for page in pages.values() for address in page.loaded}
    assert {address for address in loaded if re.match(r"\w+:|//", address)} <= {"data:,"}
    for path in site.rglob("*"):
        if path.suffix in {".css", ".svg", ".js", ".html"}:
            text = path.read_text("utf-8")
            assert not re.search(r"@import|@font-face|url\(\s*[\"']?(\w+:)?//", text), path
            assert path.suffix != ".js" or not re.search(r"[\"'](https?:)?//\w", text), path
            assert path.suffix != ".svg" or not re.search(r"<script|href=[\"'](https?:)?//", text), path


@pytest.mark.thorough
def test_a_link_to_nowhere_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        building, "python_api", lambda: "# The Python API\n\n[lost](nowhere.md), [here](#no-such-place)\n"
    )
    (nowhere, place) = build(tmp_path / "pages", tmp_path / "out")
    assert "nowhere.md" in nowhere
    assert "no-such-place" in place


def test_each_picture_is_that_of_its_diagram() -> None:
    drawn = {path.stem: path.read_text("utf-8").splitlines()[0] for path in FOLDER.glob("*.svg")}
    assert drawn == {name: mark(text) for name, text in diagrams().items()}, "make diagrams"


def test_each_public_name_is_explained() -> None:
    sections = re.split(r"^### ", python_api(), flags=re.MULTILINE)[1:]
    assert len(sections) > 60
    # What follows a name and its signature is its docstring.
    assert [section for section in sections if not re.search(r"```\n\n\S|^\S+\n\n```python\n\w+ = ", section)] == []
    assert {section.split("\n")[0].rpartition(".")[0] for section in sections} == set(MODULES)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with running(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@NEEDS_BROWSER
def test_no_page_is_wider_than_a_window(site: Path, browser: Any) -> None:
    width = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    wide: dict[str, Any] = {}
    names = ("index", "tutorial", "reference/types", "reference/errors", "python-api", "explanation/architecture")
    for name in (*names, "decisions/index"):
        show(browser, (site / f"{name}.html").as_uri(), 400)
        if browser.execute_script(width) > 0:
            wide[name] = browser.execute_script(width)
        assert browser.get_log("browser") == []
    assert wide == {}


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@NEEDS_BROWSER
def test_the_search_finds_a_page(site: Path, browser: Any) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        show(browser, f"http://127.0.0.1:{server.server_port}/how-to/replicate.html", 1400)
        (box,) = browser.find_elements("css selector", ".search input")
        # It is typed before the index is there, and found all the same.
        box.send_keys("LOADED_TOO_OFTEN")
        script = "return [...document.querySelectorAll('#properdocs-search-results a')].map(link => link.href)"
        eventually(lambda: browser.execute_script(script) != [])
        assert any("/reference/errors.html" in link for link in browser.execute_script(script))
        server.shutdown()


def test_the_recording_is_of_the_commands_and_fetches_nothing() -> None:
    text = PICTURE.read_text("utf-8")
    assert len(text) < 20_000
    for word in ("<script", "href", "url(", "@import", "@font-face", "http://", "https://"):
        assert word not in text.replace("http://www.w3.org/2000/svg", ""), word
    lines = [element for element in ElementTree.fromstring(text) if element.tag.endswith("text")]
    shown = "".join(line.text or "" for line in lines if line.get("class") == "command")
    assert shown == "".join(f"$ {command}" for command in COMMANDS)
    assert max(len(line.text or "") for line in lines) <= COLUMNS, "no line passes the edge"
    assert COMMANDS[0].replace("--quiet ", "") in (ROOT / "README.md").read_text("utf-8")
    assert "Ben      ┆ 9.99" in text
