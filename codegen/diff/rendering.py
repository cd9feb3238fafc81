"""A comparison as text: lines for a terminal, annotations for a pull request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from codegen.diff.change import Change
from codegen.diff.compare import Comparison
from codegen.diff.rules import Severity
from codegen.diff.sides import Side
from codegen.diff.wording import one_line


@dataclass(frozen=True)
class Report:
    """A comparison with its two sides."""

    comparison: Comparison
    old: Side
    new: Side

    @property
    def title(self) -> str:
        return f"From {self.old.label} to {self.new.label}"

    def place(self, change: Change) -> str:
        """Return a change's place: `spec/logicalrep/update.yaml:12:7`."""
        return self.new.shown(change.spot.place)

    def old_place(self, change: Change) -> str:
        """Return the old place of something removed, in parentheses; "" for other changes."""
        return f" (was {self.old.shown(change.spot.old_place)})" if change.spot.old_place else ""


def render_text(report: Report) -> str:
    """Return one finding a line, then the counts, then each version's status."""
    lines = [
        f"{report.place(change)}: {change.severity} {change.rule.id}: {_sentence(report, change)}"
        for change in report.comparison.changes
    ]
    return _lines(report, lines)


def render_github(report: Report) -> str:
    """Return one annotation a finding, as GitHub's runners read them, and the summary."""
    lines = []
    for change in report.comparison.changes:
        path, line, column = report.place(change).replace("%", "%25").rsplit(":", 2)
        path = path.replace(":", "%3A").replace(",", "%2C")
        level = "warning" if change.severity in (Severity.WIRE, Severity.API) else "notice"
        about = f"file={path},line={line},col={column},title={change.severity} {change.rule.id}"
        lines.append(f"::{level} {about}::{_sentence(report, change).replace('%', '%25')}")
    return _lines(report, lines)


def render_json(report: Report) -> str:
    """Return an object with the findings, the number of each severity, and each version's status."""
    comparison = report.comparison
    findings = []
    for change in comparison.changes:
        path, line, column = report.place(change).rsplit(":", 2)
        was = change.spot.old_place
        findings.append(
            {
                "severity": change.severity,
                "rule": change.rule.id,
                "protocol": change.protocol,
                "subject": change.spot.subject,
                "text": one_line(change.text),
                "versions": change.versions,
                "path": path,
                "line": int(line),
                "column": int(column),
                "was": report.old.shown(was) if was else None,
            }
        )
    counted = {severity: len(comparison.of(severity)) for severity in Severity}
    return f"{json.dumps({'findings': findings, 'counts': counted, 'versions': statuses(report)}, indent=2)}\n"


def _lines(report: Report, findings: list[str]) -> str:
    every = [*findings, counts(report.comparison), *summary(report)]
    return "".join(f"{one_line(line)}\n" for line in every)


def _sentence(report: Report, change: Change) -> str:
    versions = f" [{change.versions}]" if change.versions else ""
    return f"{change.spot.subject} {change.text}{versions}{report.old_place(change)}"


def counts(comparison: Comparison) -> str:
    """Return the number of findings of each severity."""
    return ", ".join(f"{len(comparison.of(severity))} {severity}" for severity in Severity)


def statuses(report: Report) -> dict[str, dict[str, str]]:
    """Return the status of each version by its name, by protocol; judged only by bytes."""
    comparison = report.comparison
    by_number = {pair.new.name: comparison.statuses(pair) for pair in comparison.pairs}
    for what, protocols in (("added", comparison.added), ("gone", comparison.removed)):
        by_number |= {protocol.name: {version.number: what for version in protocol.versions} for protocol in protocols}
    called = {
        protocol.name: protocol.version_names
        for protocol in [*(pair.new for pair in comparison.pairs), *comparison.added, *comparison.removed]
    }
    return {
        name: {f"v{called[name].get(version, version)}": what for version, what in status.items()}
        for name, status in sorted(by_number.items())
    }


def summary(report: Report) -> Iterator[str]:
    """Yield the status of each protocol's versions."""
    for name, status in statuses(report).items():
        runs = groupby(status.items(), key=lambda item: item[1])
        texts = (" ".join(version for version, _ in run) + f" {what}" for what, run in runs)
        yield f"{name}: {', '.join(texts)}"
