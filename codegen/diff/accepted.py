"""Accepted findings: entries of accepted-changes.yaml, which name a finding, a reason, and the last day.

The file is in the folder of the spec, or of another project's protocol. Only the new side's file applies.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from codegen.diff.change import Change
from codegen.diff.rules import RULES
from codegen.model.nodes import Entries, Findings, Items, Keys, read
from codegen.model.places import Place, SpecError
from codegen.model.reader import ACCEPTED_FILE

_KEYS = ["rule", "file", "subject", "reason", "until"]


@dataclass(frozen=True)
class Acceptance:
    """An entry of the file."""

    rule: str
    file: Path
    """The finding's file, in full."""
    subject: str
    reason: str
    until: date
    """The last day on which the entry applies."""
    place: Place

    def covers(self, change: Change) -> bool:
        """Return whether the entry names the change."""
        return (self.rule, self.file, self.subject) == (change.rule.id, change.spot.place.path, change.spot.subject)

    def __str__(self) -> str:
        return f"accepted until {self.until}: {self.reason}"


def read_accepted(folder: Path) -> tuple[Acceptance, ...]:
    """Return the entries of a folder's file; none without a file. Raises SpecError for any mistake."""
    if not (folder / ACCEPTED_FILE).is_file():
        return ()
    findings = Findings()
    root = read(folder / ACCEPTED_FILE, findings)
    keys = Keys(root or Entries({}, Place(folder / ACCEPTED_FILE, 1, 1)), "the file", ["accepted"], findings)
    node = keys.node("accepted", required=True)
    entries: list[Acceptance] = []
    if node is not None and not isinstance(node, Items):
        findings.add(node.place, "'accepted' must be a list of entries")
    for item in node.items if isinstance(node, Items) else ():
        if isinstance(item, Entries):
            entries.append(_entry(Keys(item, "the entry", _KEYS, findings), folder, findings))
        else:
            findings.add(item.place, "an entry of 'accepted' must be a mapping")
    if findings:
        raise SpecError(findings)
    return tuple(entries)


def _entry(keys: Keys, folder: Path, findings: Findings) -> Acceptance:
    for key in _KEYS:
        keys.node(key, required=True)
    return Acceptance(
        rule=keys.name("rule", RULES) or "",
        file=folder / keys.text("file"),
        subject=keys.text("subject"),
        reason=keys.prose("reason"),
        until=_date(keys, findings),
        place=keys.place,
    )


def _date(keys: Keys, findings: Findings) -> date:
    text = keys.text("until")
    try:
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
            return date.fromisoformat(text)
    except ValueError:
        pass
    if text:
        findings.add(keys.place_of("until"), f"'until' is {text!r}; a day is expected, such as 2027-03-31")
    return date.min
