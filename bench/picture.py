"""A bar chart of the rates for the README, with a logarithmic axis, as they span four orders of magnitude."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

from bench.measure import Row

mpl.use("svg")

_SHOWN = {
    "pypgoutput": "pypgoutput",
    "construct": "construct Structs",
    "parse": "parse",
    "wide tables, typed": "typed tables",
    "columnar, batches of 10,000": "columnar",
    "copy of the bytes": "copying the bytes",
}


def draw(table: Sequence[Row], path: Path) -> None:
    """Write the picture as SVG; the last of several rows with the same name is shown."""
    from matplotlib import pyplot

    rates = {row.name: row.value for row in table if row.unit == "messages/s"}
    bars = [(label, rates[name]) for name, label in _SHOWN.items() if name in rates]
    mpl.rcParams["svg.hashsalt"] = "logicalrep"
    figure, axes = pyplot.subplots(figsize=(8, 0.45 * len(bars) + 0.9), layout="constrained")
    colours = ["#336791" if label in ("parse", "columnar", "typed tables") else "#9db3c4" for label, _ in bars]
    drawn = axes.barh([label for label, _ in bars], [rate for _, rate in bars], color=colours)
    axes.bar_label(drawn, [f"{rate:,.0f}" for _, rate in bars], padding=4, fontsize=9)
    axes.set_xscale("log")
    axes.set_xlim(right=max(rate for _, rate in bars) * 6)
    axes.set_xlabel("messages per second, one core")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
