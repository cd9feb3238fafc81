"""A comparison as text: lines for a terminal, markdown for a review comment, JSON for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from codegen.diff.change import Case, Change, versions_by_fact
from codegen.diff.compare import Comparison
from codegen.diff.pair import Pair
from codegen.diff.rules import Severity
from codegen.diff.side_by_side import Line, Table, tables
from codegen.diff.sides import Side
from codegen.diff.wording import listed
from codegen.spec.model import Protocol


@dataclass(frozen=True)
class Report:
    """A comparison and what it compared."""

    comparison: Comparison
    old: Side
    new: Side
    versions: tuple[int, int] | None = None
    """The two versions of one spec, where these are compared."""

    @property
    def title(self) -> str:
        """What was compared."""
        if self.versions is not None:
            return f"From version {self.versions[0]} to version {self.versions[1]} ({self.new.label})"
        return f"From {self.old.label} to {self.new.label}"

    @property
    def columns(self) -> tuple[str, str]:
        """What to call the two sides of a layout."""
        return ("before", "after") if self.versions is None else (f"v{self.versions[0]}", f"v{self.versions[1]}")

    def place(self, change: Change) -> str:
        """Where a change stands, and on which side: `new spec/logicalrep/update.yaml:12`."""
        side = self.new if change.spot.side == "new" else self.old
        return f"{change.spot.side} {side.shown(change.spot.place)}"


def render_text(report: Report) -> str:
    """One finding a line, then how many there are, then what became of each version."""
    lines = [
        f"{report.place(change)}: {change.severity} {change.rule.id}: {change.spot.subject} {change.text}"
        + (f" [{change.versions}]" if change.versions else "")
        for change in report.comparison.changes
    ]
    return "".join(f"{_one_line(line)}\n" for line in [*lines, counts(report.comparison), *summary(report)])


def counts(comparison: Comparison) -> str:
    """How many findings there are of each severity."""
    return ", ".join(f"{len(comparison.of(severity))} {severity}" for severity in Severity)


def summary(report: Report) -> Iterator[str]:
    """What became of the versions of each protocol, by their bytes alone."""
    comparison = report.comparison
    if report.versions is not None:
        first, second = report.versions
        for pair in comparison.pairs:
            yield f"{pair.new.name} v{first} to v{second}: {_learnt(pair, first, second)}"
        return
    statuses = [(pair.new, _statuses(pair)) for pair in comparison.pairs]
    for what, protocols in (("new", comparison.added), ("gone", comparison.gone)):
        statuses += [(protocol, {version.number: what for version in protocol.versions}) for protocol in protocols]
    for protocol, status in sorted(statuses, key=lambda item: item[0].name):
        runs = groupby(status.items(), key=lambda item: item[1])
        yield f"{protocol.name}: " + ", ".join(
            " ".join(f"v{version}" for version, _ in run) + f" {what}" for what, run in runs
        )


def _statuses(pair: Pair) -> dict[int, str]:
    newest = max(len(pair.old.versions), len(pair.new.versions))
    return {version: pair.status(version) for version in range(1, newest + 1)}


def _learnt(pair: Pair, first: int, second: int) -> str:
    """The messages of a version against those of another."""
    before, after = Case(first), Case(second)
    changed, new, gone, same = [], [], [], 0
    for name, (was, now) in pair.messages(before, after).items():
        if was is None:
            new.append(name)
        elif now is None:
            gone.append(name)
        elif pair.same_layout(was, now, before, after):
            same += 1
        else:
            changed.append(name)
    named = [f"{listed(names)} {what}" for what, names in (("changed", changed), ("new", new), ("gone", gone)) if names]
    return ", ".join([*named, f"{same} unchanged"])


def render_markdown(report: Report) -> str:
    """The findings as a table, each affected layout before and after side by side, and the summary."""
    lines = ["### Spec diff", "", f"{_escaped(report.title)}: {counts(report.comparison)}.", ""]
    if report.comparison.changes:
        lines += ["| severity | rule | what changed | versions | where |", "|---|---|---|---|---|"]
        lines += [_markdown_row(report, change) for change in report.comparison.changes]
        lines.append("")
    for table in tables(report.comparison):
        lines += [*_markdown_table(table, report.columns), ""]
    lines += [f"- {_escaped(line)}" for line in summary(report)]
    return "\n".join(lines) + "\n"


def _markdown_row(report: Report, change: Change) -> str:
    severity = f"**{change.severity}**" if change.severity is Severity.WIRE else str(change.severity)
    cells = [
        severity,
        f"`{change.rule.id}`",
        f"{_escaped(change.spot.subject)} {_escaped(change.text)}",
        _escaped(change.versions),
        _escaped(report.place(change)),
    ]
    return f"| {' | '.join(cells)} |"


def _markdown_table(table: Table, columns: tuple[str, str]) -> Iterator[str]:
    was = f" (was {_escaped(table.old_name)})" if table.old_name != table.name else ""
    yield f"#### {_escaped(table.name)}{was}"
    yield ""
    yield f"| | {' | '.join(columns)} |"
    yield "|---|---|---|"
    for line in table.lines:
        yield f"| {_marked(line)} | {_code(line.before)} | {_code(line.after)} |"


def _marked(line: Line) -> str:
    return f"**{line.mark}**" if line.mark else ""


def _code(text: str) -> str:
    """Text as code in a cell of a table, where a bar would end the cell."""
    if not text:
        return ""
    fence = "``" if "`" in text else "`"
    return f"{fence}{_one_line(text)}{fence}".replace("|", "\\|")


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|#~])", r"\\\1", _one_line(text))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def render_json(report: Report) -> str:
    """Everything as data."""
    comparison = report.comparison
    return (
        json.dumps(
            {
                "old": report.old.label,
                "new": report.new.label,
                "compared_versions": report.versions,
                "findings": [_json_finding(report, change) for change in comparison.changes],
                "counts": {str(severity): len(comparison.of(severity)) for severity in Severity},
                "summary": _json_summary(report),
            },
            indent=2,
            ensure_ascii=False,
        )
        + "\n"
    )


def _json_finding(report: Report, change: Change) -> Mapping[str, object]:
    side = report.new if change.spot.side == "new" else report.old
    path, _, line = side.shown(change.spot.place).rpartition(":")
    versions = versions_by_fact(change.cases)
    return {
        "rule": change.rule.id,
        "severity": str(change.severity),
        "side": change.spot.side,
        "path": path,
        "line": int(line),
        "protocol": change.protocol,
        "layout": change.spot.layout,
        "subject": change.spot.subject,
        "text": change.text,
        "before": change.before,
        "after": change.after,
        "versions": versions.pop("", []),
        "versions_where": versions,
    }


def _json_summary(report: Report) -> Mapping[str, object]:
    if report.versions is not None:
        return {line.partition(": ")[0]: line.partition(": ")[2] for line in summary(report)}
    result: dict[str, object] = {}
    result |= {pair.new.name: _statuses(pair) for pair in report.comparison.pairs}
    for what, protocols in (("new", report.comparison.added), ("gone", report.comparison.gone)):
        result |= {protocol.name: _all(protocol, what) for protocol in protocols}
    return dict(sorted(result.items()))


def _all(protocol: Protocol, status: str) -> dict[int, str]:
    return {version.number: status for version in protocol.versions}


RENDERERS: Mapping[str, Callable[[Report], str]] = {
    "text": render_text,
    "markdown": render_markdown,
    "json": render_json,
}
"""By the name that --format has for it."""
