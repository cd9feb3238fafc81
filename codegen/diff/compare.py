"""Two specs -> everything that changed between them, in a fixed order.

The old side is first put into the names of the new one (names.py), so that what differs after that is no mere rename.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from codegen.diff.change import Change, Changes, Spot
from codegen.diff.layouts import Layouts
from codegen.diff.names import find_names, find_type_names
from codegen.diff.pair import Pair
from codegen.diff.protocols import compare_protocols, compare_types
from codegen.diff.rules import Severity
from codegen.spec.model import NamedType, Protocol

_SEVERITIES = list(Severity)


@dataclass(frozen=True)
class Comparison:
    """What changed from one spec to another."""

    changes: tuple[Change, ...]
    """The gravest first, then by place."""
    pairs: tuple[Pair, ...]
    """The protocols that both sides have."""
    gone: tuple[Protocol, ...]
    added: tuple[Protocol, ...]

    def of(self, severity: Severity) -> list[Change]:
        """The findings of one severity."""
        return [change for change in self.changes if change.severity is severity]


def compare(old: Iterable[Protocol], new: Iterable[Protocol]) -> Comparison:
    """Everything that changed between two loaded specs."""
    old, new = tuple(old), tuple(new)
    types_before, types_after = _types(old), _types(new)
    type_names = find_type_names(types_before, types_after)
    names = _protocol_names(old, new)
    pairs = tuple(
        Pair(before, after, find_names(before, after, type_names))
        for before in old
        for after in new
        if names.get(before.name) == after.name
    )
    changes: list[Change] = []
    type_changes: set[tuple[str, str]] = set()
    for pair in pairs:
        found = Changes(pair.new.name)
        compare_protocols(pair, found)
        layouts = Layouts(pair, found)
        layouts.compare()
        changes += found
        type_changes |= layouts.type_changes
    gone = tuple(protocol for protocol in old if protocol.name not in names)
    added = tuple(protocol for protocol in new if protocol.name not in names.values())
    for protocol in gone:
        found = Changes(protocol.name)
        found.add("protocol-gone", Spot(protocol.place, protocol.name, side="old"), "is gone", protocol.name)
        changes += found
    for protocol in added:
        found = Changes(protocol.name)
        found.add("protocol-new", Spot(protocol.place, protocol.name), f"is new: {protocol.doc}", "", protocol.name)
        changes += found
    changes += compare_types(types_before, types_after, type_names, type_changes)
    return Comparison(tuple(sorted(changes, key=_order)), pairs, gone, added)


def _order(change: Change) -> tuple[object, ...]:
    spot = change.spot
    return (
        _SEVERITIES.index(change.severity),
        change.protocol,
        spot.place.path.parts[-2:],
        spot.place.line,
        spot.side,
        change.rule.id,
        spot.subject,
        change.text,
    )


def _types(side: tuple[Protocol, ...]) -> Mapping[str, NamedType]:
    """The named types, which all protocols of a spec share."""
    return side[0].types if side else {}


def _protocol_names(old: tuple[Protocol, ...], new: tuple[Protocol, ...]) -> dict[str, str]:
    """A protocol is known by its name, or else by its folder."""
    names = {before.name: before.name for before in old for after in new if before.name == after.name}
    for before in old:
        for after in new:
            same_folder = before.place.path.parent.name == after.place.path.parent.name
            if same_folder and before.name not in names and after.name not in names.values():
                names[before.name] = after.name
    return names
