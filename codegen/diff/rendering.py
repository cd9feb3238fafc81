"""A comparison as text: lines for a terminal, annotations for a pull request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import groupby

from codegen.diff.accepted import Acceptance
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
    today: date
    """The day on which acceptances are valid or not."""

    @property
    def title(self) -> str:
        return f"From {self.old.label} to {self.new.label}"

    def place(self, change: Change) -> str:
        """Return a change's place: `spec/logicalrep/update.yaml:12:7`."""
        return self.new.shown(change.spot.place)

    def old_place(self, change: Change) -> str:
        """Return the old place of something removed, in parentheses; "" for other changes."""
        return f" (was {self.old.shown(change.spot.old_place)})" if change.spot.old_place else ""

    @property
    def ended(self) -> list[Acceptance]:
        """The acceptances that no longer apply."""
        return [entry for entry in self.new.accepted if entry.until < self.today]

    def acceptance(self, change: Change) -> Acceptance | None:
        """Return the valid acceptance of a change; None without one."""
        valid = (entry for entry in self.new.accepted if entry.until >= self.today)
        return next((entry for entry in valid if entry.covers(change)), None)

    def remarks(self) -> Iterator[tuple[str, str, str]]:
        """Yield a level, a place and a text for each acceptance that has ended or accepts no finding."""
        for entry in self.new.accepted:
            place, what = self.new.shown(entry.place), f"the acceptance of {entry.rule} of {entry.subject}"
            if entry in self.ended:
                yield "error", place, f"{what} ended on {entry.until}; remove it"
            elif not any(entry.covers(change) for change in self.comparison.changes):
                yield "warning", place, f"{what} accepts no finding; remove it"


def render_text(report: Report) -> str:
    """Return one finding a line, then the counts, then each version's status."""
    lines = [
        f"{report.place(change)}: {change.severity} {change.rule.id}: {_sentence(report, change)}"
        for change in report.comparison.changes
    ]
    return _lines(report, lines + [f"{place}: {level}: {text}" for level, place, text in report.remarks()])


def render_github(report: Report) -> str:
    """Return one annotation a finding, as GitHub's runners read them, and the summary."""
    lines = []
    for change in report.comparison.changes:
        is_loud = change.severity in (Severity.WIRE, Severity.API) and report.acceptance(change) is None
        title = f"{change.severity} {change.rule.id}"
        lines.append(
            _annotation("warning" if is_loud else "notice", report.place(change), title, _sentence(report, change))
        )
    lines += [_annotation(level, place, "accepted change", text) for level, place, text in report.remarks()]
    return _lines(report, lines)


def _annotation(level: str, place: str, title: str, text: str) -> str:
    path, line, column = place.replace("%", "%25").rsplit(":", 2)
    path = path.replace(":", "%3A").replace(",", "%2C")
    return f"::{level} file={path},line={line},col={column},title={title}::{text.replace('%', '%25')}"


def render_json(report: Report) -> str:
    """Return an object with the findings, the number of each severity, each version's status, and remarks."""
    comparison = report.comparison
    findings = []
    for change in comparison.changes:
        path, line, column = report.place(change).rsplit(":", 2)
        was, acceptance = change.spot.old_place, report.acceptance(change)
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
                "accepted": {"reason": acceptance.reason, "until": str(acceptance.until)} if acceptance else None,
            }
        )
    content = {
        "findings": findings,
        "counts": {severity: len(comparison.of(severity)) for severity in Severity},
        "versions": statuses(report),
        "remarks": [{"level": level, "place": place, "text": text} for level, place, text in report.remarks()],
    }
    return f"{json.dumps(content, indent=2)}\n"


def _lines(report: Report, findings: list[str]) -> str:
    every = [*findings, counts(report), *summary(report)]
    return "".join(f"{one_line(line)}\n" for line in every)


def _sentence(report: Report, change: Change) -> str:
    versions = f" [{change.versions}]" if change.versions else ""
    acceptance = report.acceptance(change)
    accepted = f" ({acceptance})" if acceptance else ""
    return f"{change.spot.subject} {change.text}{versions}{report.old_place(change)}{accepted}"


def counts(report: Report) -> str:
    """Return the number of findings of each severity, and of the accepted ones."""
    texts = []
    for severity in Severity:
        changes = report.comparison.of(severity)
        accepted = sum(report.acceptance(change) is not None for change in changes)
        texts.append(f"{len(changes)} {severity}" + (f" ({accepted} accepted)" if accepted else ""))
    return ", ".join(texts)


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
