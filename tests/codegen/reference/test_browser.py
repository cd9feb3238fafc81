"""The reference in a real browser: pages load without errors, no text leaves its box, links resolve."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlparse

import pytest

from codegen.reference.site import standalone_picture
from codegen.spec.model import Protocol

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed (pip install selenium)")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="no browser: chromium and chromedriver must be on PATH (apt-get install chromium chromium-driver)",
)

PAGES = ["index.html", "logicalrep.html", "walsender.html", "changes.html", "types.html"]
WIDTHS = [400, 820, 1400]

# Every text that leaves its box, as sentences: blocks of the page, then the boxes of pictures.
OVERFLOWS = """
const problems = [];
const name = element => element.tagName + "." + (element.getAttribute("class") || "") + " " +
  element.textContent.trim().slice(0, 40);
const shown = element => element.getClientRects().length > 0 && !element.closest(".hidden, .skip");
const width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth > width) problems.push("the page is wider than the window");
for (const element of document.querySelectorAll("body *:not(svg *)")) {
  if (!shown(element) || element.closest("pre")) continue;
  const box = element.getBoundingClientRect();
  if (box.right > width + 0.5 || box.left < -0.5) problems.push("outside of the window: " + name(element));
  const display = getComputedStyle(element).display;
  if (display !== "inline" && element.clientWidth && element.scrollWidth > element.clientWidth + 1)
    problems.push("wider than its box: " + name(element));
}
const inside = (inner, outer) => inner.left >= outer.left - 0.5 && inner.right <= outer.right + 0.5 &&
  inner.top >= outer.top - 0.5 && inner.bottom <= outer.bottom + 0.5;
for (const picture of document.querySelectorAll("svg")) {
  if (!shown(picture)) continue;
  const frame = picture.getBoundingClientRect();
  for (const box of picture.querySelectorAll(".box")) {
    const body = box.querySelector(".body").getBoundingClientRect();
    const zero = box.querySelector(".zero");
    for (const text of box.querySelectorAll("text")) {
      const place = text.getBoundingClientRect();
      const outer = text.textContent === "00" && zero ? zero.getBoundingClientRect() : body;
      if (text.classList.contains("offset")) {
        if (place.right > body.right + 0.5) problems.push("offset beyond its box: " + text.textContent);
      } else if (!inside(place, outer)) problems.push("text beyond its box: " + text.textContent);
    }
  }
  const texts = [...picture.querySelectorAll("text")].map(text => [text, text.getBoundingClientRect()]);
  for (const [text, place] of texts) {
    if (!inside(place, frame)) problems.push("text beyond its picture: " + text.textContent);
    for (const [other, there] of texts) {
      const lap = 1.5;
      if (text !== other && place.left + lap < there.right && there.left + lap < place.right &&
          place.top + 4 < there.bottom && there.top + 4 < place.bottom)
        problems.push("texts upon each other: " + text.textContent + ", " + other.textContent);
    }
  }
}
return problems;
"""


@pytest.fixture(scope="module")
def folder(files: dict[str, str], messages: Protocol, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference")
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "stream-abort.svg").write_text(standalone_picture(messages, "Stream Abort"), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def visit(browser: Any, path: Path, width: int, scheme: str = "light") -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(path.as_uri())


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
        "return [...document.querySelectorAll('figure')].map("
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
