"""A real browser without a window, for tests of pages; they are skipped where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")

NEEDS_BROWSER = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="no browser: chromium and chromedriver must be on PATH (apt-get install chromium chromium-driver)",
)

# Every text that leaves its box, as sentences: blocks of the page, then the boxes of pictures.
OVERFLOWS = """
const problems = [];
const name = element => element.tagName + "." + (element.getAttribute("class") || "") + " " +
  element.textContent.trim().slice(0, 40);
const shown = element => element.getClientRects().length > 0 && !element.closest(".hidden, .skip");
const width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth > width) problems.push("the page is wider than the window");
for (const element of document.querySelectorAll("body *:not(svg *)")) {
  if (!shown(element) || element.closest("pre, .scrolls")) continue;
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


@contextmanager
def running(profile: Path) -> Iterator[Any]:
    """Yield a browser with its profile in a folder."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    assert CHROMIUM is not None
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
        f"--user-data-dir={profile}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def show(browser: Any, address: str, width: int, scheme: str = "light") -> None:
    """Load a page in a window of a width in pixels, on a light or a dark screen."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(address)
