"""Two specs -> all changes between them, in a fixed order.

First the old side gets the names of the new side (names.py), so that a rename is not reported as other changes. Then
things.py compares each attribute by the table of rules (rules.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from codegen.diff.change import Case, Change, Spot
from codegen.diff.fields import Row
from codegen.diff.names import find_names, find_type_names
from codegen.diff.owners import blocks_of
from codegen.diff.pair import Pair, pair_of
from codegen.diff.rules import Severity
from codegen.diff.things import Things
from codegen.model.model import Protocol
from codegen.model.places import Place
from codegen.model.reader import TYPES_FILE

_SEVERITIES = list(Severity)


@dataclass(frozen=True)
class Comparison:
    """The changes from one spec to another."""

    changes: tuple[Change, ...]
    """The most severe first, then by place."""
    pairs: tuple[Pair, ...]
    """The protocols on both sides."""
    removed: tuple[Protocol, ...]
    added: tuple[Protocol, ...]

    def of(self, severity: Severity) -> list[Change]:
        return [change for change in self.changes if change.severity is severity]

    def of_protocol(self, pair: Pair) -> list[Change]:
        """Return the findings on one protocol, except for wording."""
        return [
            change
            for change in self.changes
            if change.protocol == pair.new.name and change.severity is not Severity.DOC
        ]

    def statuses(self, pair: Pair) -> dict[int, str]:
        """Return each version's status: unchanged, changed, changed where a fact holds, added or gone."""
        wire = (change for change in self.of_protocol(pair) if change.severity is Severity.WIRE)
        touched = {case for change in wire for case in change.cases}
        result = {}
        for version in range(1, max(len(pair.old.versions), len(pair.new.versions)) + 1):
            case = Case(version)
            facts = [fact for fact in pair.facts if Case(version, fact) in touched]
            if case not in pair.old_presence.cases & pair.new_presence.cases:
                result[version] = "gone" if case in pair.old_presence.cases else "added"
            elif case in touched:
                result[version] = "changed"
            else:
                result[version] = f"changed where {' or '.join(facts)}" if facts else "unchanged"
        return result


def compare(old: Iterable[Protocol], new: Iterable[Protocol]) -> Comparison:
    """Compare two loaded specs, each with at least one protocol."""
    old, new = tuple(old), tuple(new)
    names = _protocol_names(old, new)
    types = find_type_names(old[0].types, new[0].types)  # all protocols of a spec share them
    pairs = tuple(
        pair_of(old_protocol, new_protocol, find_names(old_protocol, new_protocol, types))
        for new_protocol in new
        for old_protocol in old
        if names.get(old_protocol.name) == new_protocol.name
    )
    removed = tuple(protocol for protocol in old if protocol.name not in names)
    added = tuple(protocol for protocol in new if protocol.name not in names.values())
    root = Spot(new[0].place, "")
    rest = Things()
    rest.both("protocol", removed, added, {}, root)
    changes = [replace(change, protocol=change.spot.subject) for change in rest.changes]
    rest = Things()
    for pair in pairs:
        things = Things(pair)
        _compare_pair(things, pair)
        names_of_versions = tuple((pair.old.version_names | pair.new.version_names).items())
        changes += [replace(change, names=names_of_versions) for change in things.changes]
        rest.by_type |= things.by_type
    old_protocol = [replace(kind, name=types.get(name, name)) for name, kind in old[0].types.items()]
    types_file = root.place.path if new[0].is_alone else root.place.path.parent.parent / TYPES_FILE
    place = Place(types_file, 1)
    rest.both("type", old_protocol, new[0].types.values(), types, Spot(place, ""))
    rest.compare_order(Spot(place, types_file.name), "types", [kind.name for kind in old_protocol], list(new[0].types))
    return Comparison(tuple(sorted([*changes, *rest.changes], key=_order)), pairs, removed, added)


def _compare_pair(things: Things, pair: Pair) -> None:
    old, new, names = pair.old, pair.new, pair.names
    root = Spot(new.place, new.name)
    things.both("protocol", [replace(old, name=new.name)], [new], {pair.original.name: new.name}, root)
    things.both("version", old.versions, new.versions, {}, root)
    things.both("session-fact", old.session, new.session, names.facts, root)
    things.both("block", blocks_of(old), blocks_of(new), names.blocks, root)
    layouts = things.both("message", old.messages, new.messages, names.layouts, root)
    for old_thing, new_thing, spot in things.both("part", old.parts, new.parts, names.layouts, root):
        layouts += [
            (old_thing, new_thing, spot),
            *things.both("alternative", old_thing.alternatives, new_thing.alternatives, names.layouts, spot),
        ]
    for old_thing, new_thing, spot in layouts:
        rows = [Row(side, owner, row) for side, owner in ((old, old_thing), (new, new_thing)) for row in owner.fields]
        old_rows, new_rows = rows[: len(old_thing.fields)], rows[len(old_thing.fields) :]
        old_rows = _with_counterparts(old_rows, new_rows)
        things.old_keys |= {(new_thing.name, row.name): row.row.key for row in old_rows if row.counterpart}
        things.both("field", old_rows, new_rows, names.rows.get(new_thing.name, {}), spot, new_thing.name)
        things.compare_rows(spot, new_thing.name, old_rows, new_rows)
    things.add_types(pair)


def _with_counterparts(old_rows: list[Row], new_rows: list[Row]) -> list[Row]:
    """Return the old rows; the only row of a name has the key of the first new row of the name."""
    old_names = [row.row.name for row in old_rows]
    new_keys = {row.row.name: row.row.key for row in reversed(new_rows)}
    return [
        row._replace(counterpart=new_keys[row.row.name])
        if old_names.count(row.row.name) == 1 and new_keys.get(row.row.name, row.row.key) != row.row.key
        else row
        for row in old_rows
    ]


def _order(change: Change) -> tuple[object, ...]:
    place, spot = change.spot.place, change.spot
    where = (place.path.name == TYPES_FILE, place.path.parts[-2:], place.line, spot.old_place is not None)
    return (_SEVERITIES.index(change.severity), change.protocol, *where, change.rule.id, spot.subject, change.text)


def _protocol_names(old: tuple[Protocol, ...], new: tuple[Protocol, ...]) -> dict[str, str]:
    """Pair protocols by name, or else by folder."""
    names = {
        old_protocol.name: old_protocol.name
        for old_protocol in old
        for new_protocol in new
        if old_protocol.name == new_protocol.name
    }
    for old_protocol in old:
        for new_protocol in new:
            same_folder = old_protocol.place.path.parent.name == new_protocol.place.path.parent.name
            if same_folder and old_protocol.name not in names and new_protocol.name not in names.values():
                names[old_protocol.name] = new_protocol.name
    return names
