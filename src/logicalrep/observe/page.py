"""The status page of `logicalrep replicate`: HTML without scripts."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import pairwise
from typing import Any

from logicalrep.error_codes import CODES
from logicalrep.observe.counts import Observed, Sample
from logicalrep.observe.figures import LoadProgress, Standing, TableFigures
from logicalrep_runtime.visible import visible

_WIDTH, _HEIGHT = 600, 120
_CODE = re.compile(r"\[([A-Z_]+)\]")
_POINTS = 200

STYLE = """
:root{color-scheme:light dark;--paper:#f6f7f9;--card:#fff;--ink:#1b2430;--pale:#5d6979;--line:#dde2e8;--blue:#2563b8;
--good:#1a7f45;--busy:#8a5a00;--bad:#b3261e}
@media(prefers-color-scheme:dark){:root{--paper:#14181d;--card:#1d232b;--ink:#e6eaef;--pale:#9aa6b5;--line:#323b46;
--blue:#6ca8f0;--good:#5ec88a;--busy:#e3b04b;--bad:#f28b82}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:70rem;background:var(--paper);color:var(--ink);
font:1rem/1.45 system-ui,sans-serif}
h1{font-size:1.3rem;margin:0;overflow-wrap:anywhere}h2{font-size:1rem;margin:0 0 .6rem}
p{margin:.2rem 0 1rem}small,.pale{color:var(--pale)}
.tiles,.charts{display:grid;gap:.8rem;margin-bottom:.8rem;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr))}
.charts{grid-template-columns:repeat(auto-fit,minmax(min(100%,22rem),1fr))}
.card{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.8rem;margin-bottom:.8rem;
min-width:0}
.tiles .card,.charts .card{margin:0}.tiles b{display:block;font-size:1.35rem;font-variant-numeric:tabular-nums}
svg{display:block;width:100%;height:auto}svg path{fill:none;stroke:var(--blue);stroke-width:2}
svg line{stroke:var(--line)}
.ends{display:flex;justify-content:space-between;font-size:.8rem;color:var(--pale)}
.row{display:flex;flex-wrap:wrap;justify-content:space-between;gap:.2rem 1rem;padding:.5rem 0;
border-top:1px solid var(--line)}
.row>*{overflow-wrap:anywhere;min-width:0}.wide{flex:1 0 100%}
.following{color:var(--good)}.loading{color:var(--busy)}.stopped,.bad{color:var(--bad)}
progress{display:block;width:100%;height:.8rem;accent-color:var(--blue)}
.search{display:flex;flex-wrap:wrap;gap:.4rem;margin-bottom:.6rem}.search input{flex:1 1 12rem;min-width:0}
.search *{font:inherit;color:inherit;background:var(--paper);border:1px solid var(--line);border-radius:.3rem;
padding:.2rem .5rem}
a{color:var(--blue)}.row:last-child{padding-bottom:0}
"""


def as_text(text: str) -> str:
    """Return a text escaped for HTML, with visible escapes in place of invisible characters."""
    return escape(visible(text))


def page(observed: Observed, uri: str, query: Mapping[str, str] | None = None) -> str:
    """Return the page as HTML.

    `query` may have `q`, a part of names or states, and `sort`, a key of `_ORDERS`; without `q` the page refreshes.
    """
    time_now, query = time.time(), query or {}
    search_text = query.get("q", "")
    # A refresh would clear the search field.
    refresh = "" if "q" in query else '<meta http-equiv="refresh" content="5">'
    samples, tables = observed.all_samples(), observed.tables
    counts = [f"{sum(table.state is state for table in tables.values()):,} {state}" for state in Standing]
    checkpoint_at = observed.checkpoint_at
    checkpoint_age = (
        "no checkpoint is saved yet"
        if checkpoint_at is None
        else f"checkpoint saved {seconds_text(time_now - checkpoint_at)} ago"
    )
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
{refresh}<title>logicalrep: {as_text(uri)}</title><style>{STYLE}</style></head><body>
<h1>{as_text(uri)}</h1>
<p class="pale">{", ".join(counts)}; {checkpoint_age}; {clock_text(time_now)} UTC; <a href="metrics">metrics</a></p>
{_needed_actions(observed, tables)}
<div class="tiles">{_figure_tiles(observed, samples)}</div>
<div class="charts">
{_chart("Lag", [(sample.time, float(sample.lag_bytes)) for sample in samples], bytes_text)}
{_chart("Changes per second", _rates(samples), _number_text)}
</div>
{_messages(observed, tables)}
<section class="card"><h2>Tables</h2>{_search_form(query)}{
        "".join(_table(name, tables[name]) for name in _matching_names(tables, search_text, query.get("sort", "")))
        or f'<p class="pale">{"No table matches." if tables else "No tables yet."}</p>'
    }</section>
</body></html>
"""


def _figure_tiles(observed: Observed, samples: Sequence[Sample]) -> str:
    lag, seconds, slot = observed.lag_bytes, observed.lag_seconds, observed.slot
    rates = _rates(samples[-13:])
    rate = sum(value for _, value in rates) / len(rates) if rates else None
    headroom = ""
    if slot is not None:
        headroom = "no limit" if slot.safe_wal_size is None else f"{bytes_text(slot.safe_wal_size)} to the limit"
    tiles = (
        ("lag", "unknown" if lag is None else bytes_text(lag), "" if seconds is None else seconds_text(seconds)),
        ("changes per second", "unknown" if rate is None else _number_text(rate), "in the last minute"),
        ("WAL retained by the slot", "unknown" if slot is None else bytes_text(slot.retained_bytes), headroom),
        ("changes since the start", f"{observed.changes:,}", f"in {observed.batches:,} batches"),
    )
    return "".join(
        f'<div class="card"><small>{name}</small><b>{value}</b><small>{detail}</small></div>'
        for name, value, detail in tiles
    )


def _rates(samples: Sequence[Sample]) -> list[tuple[float, float]]:
    return [
        (sample.time, (sample.changes - previous_sample.changes) / max(sample.time - previous_sample.time, 0.001))
        for previous_sample, sample in pairwise(samples)
    ]


def _chart(title: str, points: Sequence[tuple[float, float]], value_text: Callable[[float], str]) -> str:
    if len(points) < 2:
        return f'<section class="card"><h2>{title}</h2><p class="pale">No figures yet.</p></section>'
    size = -(-len(points) // _POINTS)
    parts = [points[start : start + size] for start in range(0, len(points), size)]
    # The highest of each part, so that no peak is lost.
    peaks = [(part[-1][0], max(value for _, value in part)) for part in parts]
    first, last, top = points[0][0], points[-1][0], max(value for _, value in points)
    span, height = max(last - first, 1), top or 1
    ends = [
        f"{(moment - first) / span * _WIDTH:.1f} {_HEIGHT - value / height * (_HEIGHT - 4) - 1:.1f}"
        for moment, value in peaks
    ]
    return f"""<section class="card"><h2>{title} <small>at most {value_text(top)}</small></h2>
<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{title} over time, at most {value_text(top)}">
<line x1="0" x2="{_WIDTH}" y1="{_HEIGHT - 1}" y2="{_HEIGHT - 1}"/><path d="M{" L".join(ends)}"/></svg>
<div class="ends"><span>{clock_text(first)}</span><span>{clock_text(last)} UTC</span></div></section>"""


_STATES = (Standing.STOPPED, Standing.LOADING, Standing.FOLLOWING)
_NEVER = datetime.min.replace(tzinfo=UTC)
_ORDERS: Mapping[str, Callable[[str, TableFigures], tuple[Any, ...]]] = {
    "state": lambda name, table: (_STATES.index(table.state), name),
    "name": lambda name, table: (name,),
    "rows": lambda name, table: (-(table.rows or 0), name),
    "commit": lambda name, table: (_NEVER - (table.committed or _NEVER), name),
}
"""The sort keys: stopped tables first, by name, the largest first, the last changed first."""


def _matching_names(tables: Mapping[str, TableFigures], search_text: str, sort: str) -> list[str]:
    order, folded_text = _ORDERS.get(sort, _ORDERS["state"]), search_text.casefold()
    names = [
        name for name, table in tables.items() if folded_text in f"{name} {table.state} {table.phase or ''}".casefold()
    ]
    return sorted(names, key=lambda name: order(name, tables[name]))


def _search_form(query: Mapping[str, str]) -> str:
    if "q" not in query:
        return '<p class="pale"><a href="?q=">search and sort</a></p>'
    search_text, sort = query["q"], query.get("sort", "")
    options = "".join(
        f'<option value="{name}"{" selected" * (name == sort)}>{"last commit" if name == "commit" else name}</option>'
        for name in _ORDERS
    )
    return (
        f'<form class="search"><input type="search" name="q" value="{as_text(search_text)}" aria-label="name or state" '
        f'placeholder="a name or a state"><select name="sort" aria-label="sorted by">{options}</select>'
        '<button>Show</button></form><p class="pale"><a href="./">all, every five seconds</a></p>'
    )


def _table(name: str, table: TableFigures) -> str:
    figures = [] if table.rows is None else [f"{table.rows:,} rows"]
    figures += [] if table.version is None else [f"version {table.version}"]
    words = [table.state.value, *([] if table.phase is None else [table.phase.value])]
    state = ": ".join(dict.fromkeys(words))
    return (
        f'<div class="row"><div class="name">{as_text(name)}</div>'
        f'<div><span class="{as_text(table.state)}">{as_text(state)}</span> <small>{", ".join(figures)}</small></div>'
        f"{_bar(name, table.progress)}</div>"
    )


def _bar(name: str, progress: LoadProgress | None) -> str:
    if progress is None:
        return ""
    attributes, copied = "", f"{progress.rows:,} rows copied"
    if progress.estimate > 0:
        attributes = f' value="{min(progress.rows, progress.estimate)}" max="{progress.estimate}"'
        share = min(progress.rows / progress.estimate, 1)
        copied = f"{progress.rows:,} of about {progress.estimate:,} rows copied, {share:.0%}"
    since = datetime.fromisoformat(progress.snapshot_since).astimezone(UTC)
    return (
        f'<div class="wide"><progress{attributes} aria-label="rows of {as_text(name)} that are copied"></progress>'
        f"<small>{copied}; the snapshot has been held since {since:%Y-%m-%d %H:%M} UTC</small></div>"
    )


def _needed_actions(observed: Observed, tables: Mapping[str, TableFigures]) -> str:
    """Return the section of what a person has to do; it comes first."""
    rows = [
        _message_row(f'<b class="bad">{message.problem}</b><br>{as_text(message.text)}', message.text)
        for message in observed.all_messages()
        if message.problem is not None
    ]
    return _messages_section("Action needed", [*rows, *_table_errors(tables, "is stopped", is_stopped=True)])


def _messages(observed: Observed, tables: Mapping[str, TableFigures]) -> str:
    rows = [
        _message_row(f"<small>{clock_text(message.time)} UTC</small><br>{as_text(message.text)}", message.text)
        for message in observed.all_messages()
        if message.problem is None
    ]
    waiting = _table_errors(tables, "waits for its reload", is_stopped=False)
    return _messages_section("Warnings and waits", [*waiting, *rows])


def _table_errors(tables: Mapping[str, TableFigures], state_text: str, *, is_stopped: bool) -> list[str]:
    return [
        _message_row(f'<b class="bad">{as_text(name)} {state_text}</b><br>{as_text(table.error)}', table.error)
        for name, table in sorted(tables.items())
        if table.error is not None and (table.state is Standing.STOPPED) == is_stopped
    ]


def _message_row(content: str, text: str) -> str:
    return f'<div class="row"><div class="wide">{content}{_remedies(text)}</div></div>'


def _messages_section(title: str, rows: Sequence[str]) -> str:
    return f'<section class="card"><h2>{title}</h2>{"".join(rows)}</section>' if rows else ""


def _remedies(text: str) -> str:
    codes = dict.fromkeys(code for code in _CODE.findall(text) if code in CODES)
    return "".join(
        f"<br><small>{code}: {as_text(CODES[code][1].replace('`', ''))} See docs/reference/errors.md.</small>"
        for code in codes
    )


def _number_text(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 or number == 0 else f"{number:.1f}"


def bytes_text(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if abs(count) < 1000:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} GB"


def seconds_text(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def clock_text(moment: float) -> str:
    """Return the time of day (UTC) of a time in seconds since 1970."""
    return f"{datetime.fromtimestamp(moment, UTC):%H:%M:%S}"
