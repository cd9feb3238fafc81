"""The measured part of docs/reference/readers.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from bench.pages import table, write_part

PAGE = Path(__file__).parents[2] / "docs/reference/readers.md"
FEATURES: Mapping[str, str] = {
    "types": "every type",
    "changed": "changed columns",
    "marked": "merge-on-read",
    "partitions": "partitions",
    "past": "old version",
    "changes": "change data feed",
    "version 3": "Iceberg version 3",
}
"""The columns of the page by the features of tables."""


def write_page(answers: Sequence[Mapping[str, Any]]) -> None:
    """Replace the measured part of the page."""
    write_part(PAGE, "readers", measured_text(answers))


def measured_text(answers: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of readers, and the list of their faults."""
    rows, faults = [], []
    for answer in answers:
        for format_ in dict.fromkeys(result["format"] for result in answer["results"]):
            results = [result for result in answer["results"] if result["format"] == format_]
            cells = [_cell([result for result in results if result["feature"] == feature]) for feature in FEATURES]
            filters = sum(result["filters"] for result in results)
            rows.append([answer["reader"], answer["version"], format_.capitalize(), *cells, f"{filters:,}"])
            faults += [f"- {answer['reader']}, {format_.capitalize()}: {fault}." for fault in _faults(results)]
        if answer.get("ended"):
            faults.append(f"- {answer['reader']}: {answer['ended']}, and no other process read the other tables.")
    head = ["reader", "version", "format", *FEATURES.values(), "filters"]
    return "\n".join([f"Run on {date.today():%-d %B %Y}.", "", table(head, rows), "", *dict.fromkeys(faults)])


def _cell(results: Sequence[Mapping[str, Any]]) -> str:
    if not results:
        return ""
    if any(result["ended"] for result in results):
        return "**crash**"
    if any(result["wrong_rows"] or result["wrong_columns"] or result["wrong_filters"] for result in results):
        return "**wrong**"
    if all(result["error"] for result in results):
        return "refused"
    is_partial = any(result["error"] or result["refused_columns"] or result["refused_filters"] for result in results)
    return "right, or refused" if is_partial else "right"


def _faults(results: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    """Yield each kind of fault once, the faults that return wrong rows first."""
    for result in results:
        if result["ended"]:
            yield f"**crash** in {_place(result)}: {result['ended']}"
    for result in results:
        if result["wrong_rows"]:
            yield f"**wrong rows** of the table `{result['table']}`: {result['wrong_rows'][:120]}"
    values: dict[str, list[str]] = {}
    for result in results:
        for name, example in result["wrong_columns"].items():
            names = values.setdefault(example, [])
            names += [] if name in names else [name]
    for example, names in values.items():
        yield f"**wrong values** in {_listed(names)}: `{example}`"
    for result in results:
        if result["wrong_filters"]:
            count, first = len(result["wrong_filters"]), result["wrong_filters"][0]
            columns = dict.fromkeys(text.split()[0] for text in result["wrong_filters"])
            yield (
                f"**wrong rows** under {count} filters of {_place(result)} on {_listed([*columns])}, such as "
                f"`{_short(first)}`"
            )
    refusals: dict[str, list[str]] = {}
    for result in results:
        if result["error"]:
            refusals.setdefault(result["error"], []).append(_place(result))
        for name, error in result["refused_columns"].items():
            refusals.setdefault(error, []).append(f"`{name}`")
        for text in result["refused_filters"]:
            name, error = text.split()[0], text.partition(": ")[2]
            refusals.setdefault(error, []).append(f"a filter on `{name}`")
    for error, places in list(refusals.items())[:_MOST_REFUSALS]:
        yield f"refuses {', '.join(list(dict.fromkeys(places))[:4])}: `{_short(error)}`"
    if len(refusals) > _MOST_REFUSALS:
        yield f"refuses more, with {len(refusals) - _MOST_REFUSALS} other errors"


_MOST_REFUSALS = 4


def _place(result: Mapping[str, Any]) -> str:
    return f"the table `{result['table']}` ({FEATURES[result['feature']]})"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 4} other columns" if len(names) > 4 else ""
    return ", ".join(f"`{name}`" for name in names[:4]) + more


def _short(text: str) -> str:
    text = text.replace("`", "'").replace("\n", " ").replace("zoneinfo.ZoneInfo(key='UTC')", "UTC")
    return text if len(text) <= 150 else f"{text[:149]}…"


__all__ = ["FEATURES", "PAGE", "measured_text", "write_page"]
