"""No edit of the real spec goes unseen, and the summary agrees with the findings."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from codegen.diff.compare import Comparison, compare
from codegen.diff.rules import Severity
from codegen.model.layouts import Field
from codegen.model.model import Protocol
from codegen.model.notation import PartName
from codegen.model.reader import load
from codegen.model.versions import view
from tests.codegen.diff.specs import PROTOCOLS, SPEC
from tests.codegen.edits import EDITS, RowOf, alone, rows_of

ROWS = [(protocol, row) for protocol in PROTOCOLS for row in rows_of(protocol)]


def _decoded(protocol: Protocol, version: int) -> dict[str, object]:
    """The messages that a decoder of a version takes, read from the model alone and not by the diff."""
    shown = view(protocol, version)
    sent = [
        *shown.messages,
        *(
            next(other for other in view(protocol, message.since).messages if other.name == message.name)
            for message in protocol.messages
            if message.since > version >= (message.also_since or message.since) and message.also_when is None
        ),
    ]
    parts = {part.name: part for part in shown.parts}
    opened = {message.opens for message in sent}

    def values_of_type(row: Field) -> set[object]:
        named_type = protocol.types.get(row.named_type or "")
        return set() if named_type is None else set(named_type.values)

    def layout(rows: tuple[Field, ...]) -> list[object]:
        implied = {row.name: index for index, row in enumerate(rows)}
        return [
            (
                row.name,
                [
                    layout(parts[row.type.name].fields),
                    *(layout(alternative.fields) for alternative in parts[row.type.name].alternatives),
                ]
                if isinstance(row.type, PartName)
                else (type(row.type).__name__, getattr(row.type, "width", 1), row.constants),
                protocol.signed(row),
                [implied.get(name or "", name) for name in (row.when, row.size, row.repeat)],
                (row.optional, row.nonzero, row.boolean, set(row.values), values_of_type(row)),
            )
            for row in rows
        ]

    return {
        message.name: (
            (message.sender, message.opens, message.closes, message.sets, message.clears),
            {place for place in message.places if place == "outside" or place in opened},
            layout(message.fields),
        )
        for message in sent
    }


def _summary_agrees(comparison: Comparison) -> bool:
    """A version is called changed if, and only if, a decoder makes something else of its bytes."""
    (pair,) = comparison.pairs
    statuses = comparison.statuses(pair)
    return all(
        (statuses[version.number] != "changed")
        == (_decoded(pair.old, version.number) == _decoded(pair.new, version.number))
        for version in pair.new.versions
    )


@pytest.mark.slow
@pytest.mark.parametrize("rows", [ROWS[::5], pytest.param(ROWS, marks=pytest.mark.thorough)], ids=["some", "all"])
@pytest.mark.parametrize("edit", list(EDITS))
def test_an_edited_row_is_found_and_named(edit: str, rows: list[tuple[Protocol, RowOf]]) -> None:
    edited = 0
    # No version has both rows of one name.
    twice = {row.subject.partition(" until ")[0] for _, row in ROWS if " until " in row.subject}
    for protocol, row in rows:
        old_protocol = alone(protocol, row.layout)
        new_protocol = row.edited(old_protocol, EDITS[edit])
        if edit.startswith("swapped") and row.subject.partition(" until ")[0] in twice:
            edited += 1
            continue
        if new_protocol == old_protocol:  # a row without a neighbour, or one that is since the newest version anyway
            continue
        edited += 1
        comparison = compare([old_protocol], [new_protocol])
        subjects = {change.spot.subject for change in comparison.changes}
        name, until, last = row.subject.partition(" until ")
        named = f"{name}_renamed{until}{last}" if edit == "renamed" else row.subject
        neighbours = {
            other.subject for _, other in ROWS if other.layout == row.layout and abs(other.index - row.index) < 2
        }
        seen = subjects & neighbours if edit.startswith("swapped") else named in subjects
        assert seen, f"{row.subject}, {edit}: {subjects}"
        assert _summary_agrees(comparison), f"{row.subject}, {edit}"
    # Rows that have no neighbour, and some that are since the newest version anyway.
    of_layout = Counter(row.layout for _, row in ROWS)
    without = sum(of_layout[row.layout] == 1 for _, row in rows) if edit.startswith("swapped") else 3
    assert edited >= len(rows) - without


def test_several_edits_at_once_leave_the_summary_right() -> None:
    chance = random.Random(1)
    protocol = next(protocol for protocol in PROTOCOLS if protocol.name == "logicalrep")
    rows = [row for row in rows_of(protocol) if row.index > 1]  # a tag stays the first
    for _ in range(25):
        chosen: Sequence[RowOf] = chance.sample(rows, 3)
        new_protocol: Protocol = protocol
        for row in sorted(chosen, key=lambda row: -row.index):
            new_protocol = row.edited(new_protocol, EDITS[chance.choice(list(EDITS))])
        if chance.random() < 0.5:
            message = chance.choice(new_protocol.messages)
            new_protocol = replace(
                new_protocol, messages=tuple(other for other in new_protocol.messages if other is not message)
            )
        if chance.random() < 0.5:
            message = chance.choice(new_protocol.messages)
            places = tuple(dict.fromkeys(("stream", *message.places[1:])))
            changed_message = replace(message, since=chance.randint(1, 4), places=places)
            new_protocol = replace(
                new_protocol,
                messages=tuple(changed_message if other is message else other for other in new_protocol.messages),
            )
        old_protocol, new_protocol = (protocol, new_protocol) if chance.random() < 0.5 else (new_protocol, protocol)
        assert _summary_agrees(compare([old_protocol], [new_protocol])), chosen


def test_the_same_spec_twice_has_no_finding() -> None:
    assert compare(load(SPEC), load(SPEC)).changes == ()


def test_the_order_of_findings_is_that_of_severity_and_place_whatever_the_order_of_protocols() -> None:
    first, second = (protocol for protocol in PROTOCOLS if protocol.name in ("logicalrep", "walsender"))
    changed = []
    for protocol in (first, second):
        after = protocol
        for row in list(rows_of(protocol))[::3]:
            after = row.edited(after, EDITS["of another type"])
            after = row.edited(after, EDITS["explained otherwise"])
        changed.append(after)
    comparison = compare([first, second], changed)
    reordered = compare([second, first], changed[::-1])
    assert comparison.changes == reordered.changes
    assert len(comparison.changes) > 60
    ranks = [list(Severity).index(change.severity) for change in comparison.changes]
    assert ranks == sorted(ranks)
