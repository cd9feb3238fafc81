"""The reference in a real browser: pages load without errors, no text leaves its box, links resolve."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlparse

import pytest

from codegen.model.model import Protocol
from codegen.reference.site import standalone_picture
from tests.browsers import NEEDS_BROWSER, OVERFLOWS, running, show

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed (pip install selenium)")

pytestmark = [pytest.mark.thorough, NEEDS_BROWSER]

PROTOCOLS = ["basebackup.html", "copy_binary.html", "logicalrep.html", "pgwire.html", "walsender.html"]
PAGES = ["index.html", *PROTOCOLS, "changes.html", "types.html"]
WIDTHS = [400, 820, 1400]


@pytest.fixture(scope="module")
def folder(files: dict[str, str], messages: Protocol, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference")
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "stream-abort.svg").write_text(standalone_picture(messages, "Stream Abort"), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with running(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def visit(browser: Any, path: Path, width: int, scheme: str = "light") -> None:
    show(browser, path.as_uri(), width, scheme)


@pytest.mark.parametrize("name", PAGES)
def test_no_text_leaves_its_box(browser: Any, folder: Path, name: str) -> None:
    for width in WIDTHS:
        visit(browser, folder / name, width)
        assert browser.execute_script("return document.documentElement.clientWidth") == width
        assert browser.execute_script(OVERFLOWS) == [], width


@pytest.mark.parametrize("name", PAGES)
def test_pages_load_without_errors(browser: Any, folder: Path, name: str) -> None:
    browser.get_log("browser")
    visit(browser, folder / name, 1400)
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.styleSheets.length") == 1


def test_links_resolve(browser: Any, folder: Path) -> None:
    ids: dict[str, set[str]] = {}
    links: dict[str, list[str]] = {}
    for name in PAGES:
        visit(browser, folder / name, 1400)
        ids[name] = set(browser.execute_script("return [...document.querySelectorAll('[id]')].map(one => one.id)"))
        links[name] = browser.execute_script("return [...document.links].map(link => link.href)")
    for name, addresses in links.items():
        for address in addresses:
            target, fragment = urldefrag(address)
            if urlparse(target).scheme == "file":
                path = Path(unquote(urlparse(target).path))
                assert path.parent == folder, address
                assert not fragment or unquote(fragment) in ids[path.name], (name, address)
            else:
                assert target.startswith("https://www.postgresql.org/docs/"), (name, address)


@pytest.mark.parametrize("width", WIDTHS)
def test_each_figure_shows_one_picture(browser: Any, folder: Path, width: int) -> None:
    visit(browser, folder / "logicalrep.html", width)
    counts = browser.execute_script(
        "return [...document.querySelectorAll('figure.layout')].map("
        "figure => [...figure.querySelectorAll('svg')].filter(one => one.getClientRects().length).length)"
    )
    assert set(counts) == {1}


def test_dark_screens_get_a_dark_page(browser: Any, folder: Path) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    visit(browser, folder / "index.html", 1400)
    light = browser.execute_script(ground)
    visit(browser, folder / "index.html", 1400, "dark")
    assert browser.execute_script(ground) != light


def test_keyboard_focus_is_visible(browser: Any, folder: Path) -> None:
    visit(browser, folder / "index.html", 1400)
    keys = webdriver.ActionChains(browser)
    for _ in range(3):
        keys.send_keys(webdriver.Keys.TAB)
    keys.perform()
    style = "const style = getComputedStyle(document.activeElement); return [style.outlineStyle, style.outlineWidth]"
    assert browser.execute_script(style) == ["solid", "2px"]


def test_a_message_is_printed_on_one_page(browser: Any, folder: Path) -> None:
    """A4 at 96 dots an inch, less the margins of the style."""
    visit(browser, folder / "logicalrep.html", 688)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": []})
    heights = browser.execute_script(
        "return [...document.querySelectorAll('article')].map("
        "one => [one.id, one.getBoundingClientRect().height, one.querySelectorAll('section').length])"
    )
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    assert [name for name, height, sections in heights if height > 1016 and not sections] == []


def test_the_picture_alone_keeps_its_text_inside(browser: Any, folder: Path) -> None:
    visit(browser, folder / "stream-abort.svg", 1400)
    assert browser.execute_script(OVERFLOWS.replace('"body *:not(svg *)"', '"none"')) == []
