"""No edit of the real spec goes unseen, and the summary agrees with the findings."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from codegen.diff.change import Case
from codegen.diff.compare import Comparison, compare
from codegen.diff.rules import Severity
from codegen.spec.model import Protocol
from codegen.spec.reader import load
from tests.codegen.diff.edits import EDITS, RowOf, alone, rows_of
from tests.codegen.diff.running import SPEC

PROTOCOLS = {protocol.name: protocol for protocol in load(SPEC)}
ROWS = [(protocol, row) for protocol in PROTOCOLS.values() for row in rows_of(protocol)]


def _summary_agrees(comparison: Comparison) -> bool:
    """A version is called changed if, and only if, there is a finding of its bytes."""
    (pair,) = comparison.pairs
    touched = {case for change in comparison.of(Severity.WIRE) for case in change.cases} & pair.common
    for version in range(1, min(len(pair.old.versions), len(pair.new.versions)) + 1):
        status = pair.status(version)
        facts = [fact for fact in pair.facts if Case(version, fact) in touched]
        if Case(version) in touched:
            expected = "changed"
        else:
            expected = f"changed where {' or '.join(facts)}" if facts else "unchanged"
        if status != expected:
            return False
    return True


@pytest.mark.parametrize("edit", list(EDITS))
def test_an_edited_row_is_found_and_named(edit: str) -> None:
    edited = 0
    for protocol, row in ROWS:
        before = alone(protocol, row.layout)
        after = row.edited(before, EDITS[edit])
        if after == before:  # a row without a neighbour, or one that is since the newest version anyway
            continue
        edited += 1
        comparison = compare([before], [after])
        subjects = {change.spot.subject for change in comparison.changes}
        named = f"{row.subject}_renamed" if edit == "renamed" else row.subject
        neighbours = {
            other.subject for _, other in ROWS if other.layout == row.layout and abs(other.index - row.index) < 2
        }
        seen = subjects & neighbours if edit.startswith("swapped") else named in subjects
        assert seen, f"{row.subject}, {edit}: {subjects}"
        assert _summary_agrees(comparison), f"{row.subject}, {edit}"
    assert edited >= len(ROWS) - 3


def test_several_edits_at_once_leave_the_summary_right() -> None:
    chance = random.Random(1)
    protocol = PROTOCOLS["logicalrep"]
    rows = [row for row in rows_of(protocol) if row.index > 1]  # a tag stays the first
    for _ in range(25):
        chosen: Sequence[RowOf] = chance.sample(rows, 3)
        after: Protocol = protocol
        for row in sorted(chosen, key=lambda row: -row.index):
            after = row.edited(after, EDITS[chance.choice(list(EDITS))])
        if chance.random() < 0.5:
            message = chance.choice(after.messages)
            after = replace(after, messages=tuple(other for other in after.messages if other is not message))
        if chance.random() < 0.5:
            message = chance.choice(after.messages)
            places = tuple(dict.fromkeys(("stream", *message.places[1:])))
            later = replace(message, since=chance.randint(1, 4), places=places)
            after = replace(after, messages=tuple(later if other is message else other for other in after.messages))
        before, after = (protocol, after) if chance.random() < 0.5 else (after, protocol)
        assert _summary_agrees(compare([before], [after])), chosen


def test_the_same_spec_twice_has_no_finding() -> None:
    assert compare(load(SPEC), load(SPEC)).changes == ()


def test_the_order_of_findings_is_that_of_severity_and_place_whatever_the_order_of_protocols() -> None:
    first, second = PROTOCOLS.values()
    changed = []
    for protocol in (first, second):
        after = protocol
        for row in list(rows_of(protocol))[::3]:
            after = row.edited(after, EDITS["of another type"])
            after = row.edited(after, EDITS["explained otherwise"])
        changed.append(after)
    one = compare([first, second], changed)
    other = compare([second, first], changed[::-1])
    assert one.changes == other.changes
    assert len(one.changes) > 60
    ranks = [list(Severity).index(change.severity) for change in one.changes]
    assert ranks == sorted(ranks)
