"""Colour and the progress bar, which only terminals get."""

from __future__ import annotations

import io

import pytest

from logicalrep.cli.terminal import ProgressBar, TerminalStyle
from tests.terminals import Terminal


@pytest.mark.parametrize(
    ("stream", "choice", "environment", "coloured"),
    [
        (Terminal(), "auto", {}, True),
        (Terminal(), "auto", {"NO_COLOR": "1"}, False),
        (Terminal(), "auto", {"TERM": "dumb"}, False),
        (Terminal(), "never", {}, False),
        (io.StringIO(), "auto", {}, False),
        (io.StringIO(), "always", {"NO_COLOR": "1"}, True),
    ],
)
def test_colour(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, choice: str, environment: dict[str, str], coloured: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert TerminalStyle(stream, choice).red("x") == ("\x1b[31mx\x1b[0m" if coloured else "x")


def test_a_bar_appears_after_a_second_and_goes_away(clock: list[float]) -> None:
    stream = Terminal()
    progress = ProgressBar(2_000_000, stream)
    progress.show(500_000)
    assert stream.getvalue() == ""
    clock[0] += 1
    progress.show(1_000_000)
    progress.show(1_000_001)  # within a tenth of a second: not drawn again
    assert stream.getvalue() == f"\r{'#' * 15 + ' ' * 15}  50% of 2.0 MB\x1b[K"
    progress.clear()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_a_pipe_gets_no_bar(clock: list[float]) -> None:
    stream = io.StringIO()
    progress = ProgressBar(10, stream)
    clock[0] += 5
    progress.show(5)
    progress.clear()
    assert stream.getvalue() == ""
