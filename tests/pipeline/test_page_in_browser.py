"""The page of `logicalrep replicate --listen` in a real browser."""

from __future__ import annotations

import base64
import math
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from logicalrep.observe.counts import Observed, Sample
from logicalrep.observe.events import CheckpointSaved, RunPrepared, WaitReported, WarningIssued
from logicalrep.observe.figures import LoadProgress
from logicalrep.observe.page import page
from logicalrep.observe.serving import serve
from logicalrep_runtime.scalars import Lsn
from tests.browsers import NEEDS_BROWSER, OVERFLOWS, running, show
from tests.pipeline.figures import SCRIPT, SLOT, table_figures

pytest.importorskip("selenium.webdriver", reason="selenium is not installed (pip install selenium)")
pytestmark = NEEDS_BROWSER

PHONE, DESKTOP = 380, 1400
LONG = f"public.{'a_long_name_' * 5}abc"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with running(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    observed = Observed()
    observed.on_event(RunPrepared("logicalrep_lake_0f3c2a11"))
    observed.on_event(
        CheckpointSaved(
            4000,
            {
                "public.orders": table_figures("following", 812, rows=12_345_678),
                "public.events": table_figures(
                    "loading", progress=LoadProgress(3_400_000, 10_000_000, "2026-01-01T11:59:00Z")
                ),
                str(SCRIPT): table_figures("loading", progress=LoadProgress(70_000, 0, "2026-01-01T11:59:00Z")),
                "public.waits": table_figures("loading"),
                LONG: table_figures("following", 3, rows=1),
                "public.payments": table_figures(
                    "stopped",
                    17,
                    rows=99,
                    error="[COLUMN_VALUE] public.payments.paid is 'infinity', which the column's type cannot hold; run "
                    "logicalrep resync public.payments with the same --dsn and --to",
                ),
            },
        )
    )
    observed.on_event(
        WaitReported("the slot waits for the transaction of process 4711 (psql), which began 2026-01-01 11:00:00+00:00")
    )
    observed.on_event(WarningIssued("public.bare is not replicated: ALTER TABLE public.bare REPLICA IDENTITY FULL"))
    observed.sample(replace(SLOT, head=Lsn(123_456_789), sent_up_to=Lsn(123_456_789)))
    start, changes = observed.samples[-1].time, 0
    for number in range(1000):
        changes += int(4000 + 3000 * math.sin(number / 60))
        observed.samples.append(Sample(start + 5 * number, int(5e6 * (1 + math.sin(number / 90)) ** 2), changes))
    observed.changes = changes
    with serve("0", observed.figures, {"/": partial(page, observed, "s3://lake-of-the-shop/production/shop")}) as url:
        yield url


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, 820, DESKTOP])
def test_nothing_leaves_its_box_and_all_can_be_read(browser: Any, address: str, width: int, scheme: str) -> None:
    browser.get_log("browser")
    show(browser, address, width, scheme)
    assert browser.execute_script(OVERFLOWS) == []
    assert browser.execute_script(PALE) == []
    # A name that fits into the window stands in one line.
    heights = browser.execute_script("return [...document.querySelectorAll('.name')].map(one => one.clientHeight)")
    assert len(heights) == 6
    assert sorted(heights)[3] < 30
    assert [entry for entry in browser.get_log("browser") if "favicon" not in entry["message"]] == []
    folder = os.environ.get("LOGICALREP_SCREENSHOTS")
    if folder:
        picture = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
        Path(folder, f"page-{width}-{scheme}.png").write_bytes(base64.b64decode(picture["data"]))


def test_a_load_is_a_bar_as_long_as_it_is_done(browser: Any, address: str) -> None:
    show(browser, address, DESKTOP)
    bars = browser.execute_script(
        "return [...document.querySelectorAll('progress')].map(bar => [bar.position, bar.clientWidth, bar.clientHeight])"
    )
    # How much of one without an estimate is done is unknown.
    assert [position for position, _, _ in bars] == [-1, 0.34]
    assert all(width > 300 and height > 4 for _, width, height in bars)


def test_a_dark_screen_gets_a_dark_page(browser: Any, address: str) -> None:
    def brightness(scheme: str) -> float:
        show(browser, address, DESKTOP, scheme)
        return float(
            browser.execute_script(f"{LUMINANCE} return luminance(getComputedStyle(document.body).backgroundColor)")
        )

    assert brightness("light") > 0.8
    assert brightness("dark") < 0.1


def test_names_are_text_and_no_script_runs(browser: Any, address: str) -> None:
    show(browser, address, DESKTOP)
    assert browser.execute_script("return document.scripts.length") == 0
    assert str(SCRIPT) in browser.execute_script("return document.body.innerText")
    links = browser.execute_script("return [...document.links].map(link => link.href)")
    assert {link.partition("?")[0] for link in links} == {address, f"{address}metrics"}


# The luminance of a colour, as the Web Content Accessibility Guidelines define it.
LUMINANCE = """
const luminance = color => {
  const [red, green, blue] = color.match(/[\\d.]+/g).slice(0, 3).map(part => part / 255)
    .map(part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
"""
# The texts whose contrast with what is behind them is less than 4.5.
PALE = f"""
{LUMINANCE}
const behind = element => {{
  for (; element; element = element.parentElement) {{
    const color = getComputedStyle(element).backgroundColor;
    if (color !== "rgba(0, 0, 0, 0)") return luminance(color);
  }}
  return 1;
}};
const problems = [];
for (const element of document.querySelectorAll("body *")) {{
  if (![...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim())) continue;
  const [one, other] = [luminance(getComputedStyle(element).color), behind(element)];
  const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  if (contrast < 4.5) problems.push(element.textContent.trim().slice(0, 40) + " " + contrast.toFixed(1));
}}
return problems;
"""
