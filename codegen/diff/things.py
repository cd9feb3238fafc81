"""Comparison of things of one kind: additions, removals, renames, and differing attributes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from codegen.diff.change import Case, Cases, Change, Spot
from codegen.diff.fields import Row, described, entries_unlike, name_of, names_in, read
from codegen.diff.pair import Pair
from codegen.diff.rules import ORDER, RULES, Severity, rules_of
from codegen.diff.wording import key_of, listed, place_in
from codegen.model.layouts import OUTSIDE, Field, Message
from codegen.model.places import Place
from codegen.shared import mask, out_of_order

_SUBJECTS = {
    "version": "version {name}",
    "session-fact": "session fact {name}",
    "block": "block {name!r}",
    "type": "type {name}",
    "alternative": "{of}.{name}",
    "field": "{of}.{name}",
}
"""The subjects of findings on things whose name alone is ambiguous."""

_OF_TYPES = {"sign": "signed", "python": "python", "accepts": "values", "epoch": "epoch"}
"""The attributes of a field that its named type decides, and the type's attributes."""

_EXISTENCE = ("since", "until", "also_since", "also_when")
"""The attributes that decide which cases contain a message or field."""


class Things:
    """Collects changes: in a pair of protocols, or outside of protocols without a pair."""

    def __init__(self, pair: Pair | None = None) -> None:
        self.changes: list[Change] = []
        self.by_type: defaultdict[tuple[str, str], list[tuple[str, Cases]]] = defaultdict(list)
        """The fields that change because of their named type, by the type and its attribute."""
        self.old_keys: dict[tuple[str, str], str] = {}
        """The keys of old rows that have another key than their counterpart, by the layout and the counterpart's."""
        self._pair = pair
        self._common: Cases = pair.old_presence.cases & pair.new_presence.cases if pair else frozenset()

    def add(self, rule: str, spot: Spot, text: str, cases: Iterable[Case] = ()) -> None:
        """Add a change."""
        protocol = self._pair.new.name if self._pair else ""
        severity, cases = RULES[rule].severity, frozenset(cases)
        if self._pair and cases and RULES[rule].what == "added":
            existed = cases & self._pair.old_presence.cases
            severity, cases = (severity, existed) if existed else (Severity.ADDED, cases)
        self.changes.append(Change(RULES[rule], severity, protocol, spot, text, cases))

    def both(
        self, kind: str, old: Iterable[Any], new: Iterable[Any], names: Mapping[str, str], of: Spot, owner: str = ""
    ) -> list[tuple[Any, Any, Spot]]:
        """Add additions, removals and renames. Return the common things with their spots, after comparing them.

        `old` already has new names; `names` maps old names to new names. `owner` is the layout of fields.
        """
        old_things, new_things = ({name_of(thing): thing for thing in side} for side in (old, new))
        old_names = {new_name: old_name for old_name, new_name in names.items()}
        common: list[tuple[Any, Any, Spot]] = []

        def spot_of(name: str, place: Place, old_place: Place | None = None) -> Spot:
            layout = name if kind in ("message", "part") else of.layout
            return Spot(place, _SUBJECTS.get(kind, "{name}").format(of=of.subject, name=name), layout, old_place)

        for name, new_thing in new_things.items():
            spot, lives = spot_of(name, new_thing.place), self._exists(kind, name, owner)[1]
            if name not in old_things:
                self.add(f"{kind}-added", spot, f"is added{described(new_thing)}", lives)
                continue
            severities: set[str] = set()
            if (old_name := old_names.get(name, name)) != name:
                self.add(f"{kind}-renamed", spot, f"was called {old_name}", lives)
                if isinstance(new_thing, Row) and (old_things[name].row.column, new_thing.row.column) == (
                    old_name,
                    name,
                ):
                    severities.add("field-renamed")  # Its column follows it.
            self._compare(kind, old_things[name], new_thing, spot, owner, severities)
            common.append((old_things[name], new_thing, spot))
        for name, removed in old_things.items():
            if name not in new_things:
                spot, lived = spot_of(name, of.place, removed.place), self._exists(kind, name, owner)[0]
                self.add(f"{kind}-gone", spot, f"is removed{described(removed)}", lived)
        return common

    def add_types(self, pair: Pair) -> None:
        """Add a change for each named type that changes fields."""
        for (subject, attribute), fields in sorted(self.by_type.items()):
            old_type, new_type = (side.types[subject.removeprefix("type ")] for side in (pair.old, pair.new))
            rule = RULES["type-sign" if attribute == "signed" else f"type-{attribute}"]
            (old_value, old_text), (new_value, new_text) = read(attribute, old_type), read(attribute, new_type)
            if isinstance(old_value, Mapping) and isinstance(new_value, Mapping):
                old_text, new_text = entries_unlike(old_value, new_value), entries_unlike(new_value, old_value)
            text = f"{rule.text(attribute, old_text, new_text)}: {listed(name for name, _ in fields)}"
            cases = (case for _, field_cases in fields for case in field_cases)
            self.add(rule.id, Spot(new_type.place, subject), text, cases)

    def compare_order(self, spot: Spot, attribute: str, old_names: Sequence[str], new_names: Sequence[str]) -> None:
        """Add a change if the common names have another order."""
        old_common, new_common = (
            [name for name in old_names if name in new_names],
            [name for name in new_names if name in old_names],
        )
        if old_common != new_common:
            first = next(name for name, other in zip(new_common, old_common, strict=True) if name != other)
            text = f"has {key_of(attribute)} in another order from {first} on"
            self.add("doc-order", spot, text)

    def compare_rows(self, spot: Spot, owner: str, old_rows: Sequence[Row], new_rows: Sequence[Row]) -> None:
        """Add the fewest rows that must have moved, if a version shows the move."""
        old_names, new_names = [row.name for row in old_rows], [row.name for row in new_rows]
        both = [name for name in new_names if name in old_names]
        cases_of_row = {name: self._common.intersection(*self._exists("field", name, owner)) for name in both}
        for name in out_of_order([name for name in old_names if name in both], both):
            passed = [
                other
                for other in both
                if (old_names.index(name) < old_names.index(other)) != (new_names.index(name) < new_names.index(other))
            ]
            if cases := {case for other in passed for case in cases_of_row[name] & cases_of_row[other]}:
                rule, place = RULES["field-order"], new_rows[new_names.index(name)].place
                came, comes = place_in(old_names, name), place_in(new_names, name)
                of = Spot(place, f"{spot.subject}.{name}", spot.layout)
                self.add(rule.id, of, rule.text("", came, comes), cases)

    def _exists(self, kind: str, name: str, owner: str = "") -> tuple[Cases, Cases]:
        """Return the cases that contain a thing, on both sides."""
        if self._pair is None:
            return frozenset(), frozenset()
        old_name = self.old_keys.get((owner, name), name) if kind == "field" else name
        return self._pair.old_presence.of(kind, old_name, owner), self._pair.new_presence.of(kind, name, owner)

    def _compare(self, kind: str, old_thing: Any, new_thing: Any, spot: Spot, owner: str, reported: set[str]) -> None:
        """Add the differing attributes. `reported` are rules and severities that were already reported."""
        old_cases, new_cases = self._exists(kind, name_of(new_thing), owner)
        either = (old_cases | new_cases) & self._common
        reported |= (
            self._compare_names(old_thing.row, new_thing.row, spot, either) if isinstance(new_thing, Row) else set()
        )
        for rule in rules_of(kind):
            for attribute in rule.attributes:
                if rule.says == ORDER:
                    self.compare_order(spot, attribute, names_in(attribute, old_thing), names_in(attribute, new_thing))
                    continue
                (old_value, old_text), (new_value, new_text) = read(attribute, old_thing), read(attribute, new_thing)
                if isinstance(old_value, Mapping) and isinstance(new_value, Mapping):
                    old_text, new_text = entries_unlike(old_value, new_value), entries_unlike(new_value, old_value)
                if old_value == new_value or reported & set(rule.unless) or (spot.subject, attribute) in self.by_type:
                    continue
                cases = new_cases if rule.severity is Severity.DOC else either
                if kind == "protocol" and rule.severity is Severity.WIRE:
                    cases = self._common
                elif attribute == "places":
                    cases = self._replaced(old_thing, new_thing, old_cases & new_cases)
                elif rule.severity is Severity.WIRE and attribute in _EXISTENCE:
                    differing = [
                        other for other in _EXISTENCE if read(other, old_thing)[0] != read(other, new_thing)[0]
                    ]
                    cases = self._moved(old_cases, new_cases, owner, attribute if len(differing) > 1 else "")
                if self._pair and rule.severity is Severity.WIRE and not cases:
                    continue
                reported |= {rule.id, rule.severity}
                of_type = _OF_TYPES.get(attribute)
                if (
                    isinstance(new_thing, Row)
                    and of_type
                    and old_thing.row.named_type == new_thing.row.named_type is not None
                    and read(of_type, old_thing.named_type) != read(of_type, new_thing.named_type)
                ):
                    self.by_type[f"type {new_thing.row.named_type}", of_type].append((spot.subject, cases))
                    continue
                if rule.id == "field-accepts" and (tag_of := new_thing.tag_of):
                    rule = RULES[f"{tag_of}-tag"]
                self.add(rule.id, spot, rule.text(attribute, old_text, new_text), cases)

    def _moved(self, old_cases: Cases, new_cases: Cases, owner: str, attribute: str) -> Cases:
        """Return the cases that a thing enters or leaves by itself: a field without its layout.

        If several attributes differ, `since` and `also since` get the cases that do not depend on facts.
        """
        owner_cases = self._exists("layout", owner)
        moved = (old_cases ^ new_cases) & self._common & (owner_cases[0] & owner_cases[1] if owner else self._common)
        always = frozenset(case for case in moved if Case(case.version) in moved)
        return moved if not attribute else moved - always if attribute == "also_when" else always

    def _replaced(self, old_message: Message, new_message: Message, cases: Cases) -> Cases:
        """Return the cases that change a message's legal places. A block is a place only if a message opens it."""
        assert self._pair is not None
        replaced = set()
        for case in cases & self._common:
            old_places, new_places = (
                {place for place in message.places if place == OUTSIDE or case in presence.of("block", place)}
                for message, presence in (
                    (old_message, self._pair.old_presence),
                    (new_message, self._pair.new_presence),
                )
            )
            replaced |= {case} if old_places != new_places else set()
        return frozenset(replaced)

    def _compare_names(self, old_field: Field, new_field: Field, spot: Spot, cases: Cases) -> set[str]:
        """Add changed names of bits or values. Return the severities of these changes."""
        noted = len(self.changes)
        sides: Iterable[tuple[str, str, Mapping[Any, str], Mapping[Any, str]]] = (
            ("bit", "mask", old_field.bits, new_field.bits),
            ("value", "value", old_field.values, new_field.values),
        )
        for rule, what, names_before, names in sides:
            old_side, new_side = (
                {mask(key) if isinstance(key, int) else key: name for key, name in side.items()}
                for side in (names_before, names)
            )
            common = set(old_side.values()) & set(new_side.values())
            for key, name in new_side.items():
                old = next((other for other, same in old_side.items() if same == name), key)
                if old != key:
                    self.add(f"{rule}-moved", spot, f"{name} is the {what} {key}, was {old}", cases)
            for key in {**new_side, **old_side}:
                old, new = ("" if (name := side.get(key, "")) in common else name for side in (old_side, new_side))
                if old and new:
                    self.add(f"{rule}-renamed", spot, f"{what} {key} is {new}, was {old}", cases)
                elif rule == "bit" and new:
                    self.add("bit-added", spot, f"mask {key} is {new}, had no name", cases)
                elif rule == "bit" and old:
                    self.add("bit-gone", spot, f"mask {key} has no name, was {old}", cases)
        return {change.severity for change in self.changes[noted:]}
