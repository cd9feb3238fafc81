"""Things of one kind before and after: which are added, gone or renamed, and which attributes differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from codegen.diff.change import Case, Cases, Change, Spot
from codegen.diff.fields import Row, described, name_of, names_in, read
from codegen.diff.pair import Pair
from codegen.diff.rules import ORDER, RULES, Severity, rules_of
from codegen.diff.wording import key_of, listed, place_in
from codegen.shared import mask, out_of_order
from codegen.spec.layouts import OUTSIDE, Field, Message
from codegen.spec.places import Place

_SUBJECTS = {
    "version": "version {name}",
    "session-fact": "session fact {name}",
    "block": "block {name!r}",
    "type": "type {name}",
    "alternative": "{of}.{name}",
    "field": "{of}.{name}",
}
"""The names in findings of things that do not go by their own name alone."""

_OF_TYPES = {"sign": "signed", "python": "python"}
"""The attributes of a field that its named type decides, and those of the type."""

_EXISTENCE = ("since", "also_since", "also_when")
"""The attributes that say in which cases a message or field exists."""


class Things:
    """Compares the things of one protocol, or without a pair those that belong to none."""

    def __init__(self, pair: Pair | None = None) -> None:
        self.changes: list[Change] = []
        self.by_type: defaultdict[tuple[str, str], list[tuple[str, Cases]]] = defaultdict(list)
        """The fields that change because their named type does, by the type and its attribute."""
        self._pair = pair
        self._common: Cases = pair.was.cases & pair.now.cases if pair else frozenset()

    def add(self, rule: str, spot: Spot, text: str, cases: Iterable[Case] = ()) -> None:
        """Note one more change."""
        protocol = self._pair.new.name if self._pair else ""
        severity, cases = RULES[rule].severity, frozenset(cases)
        if self._pair and cases and RULES[rule].what == "added":
            existed = cases & self._pair.was.cases
            severity, cases = (severity, existed) if existed else (Severity.ADDED, cases)
        self.changes.append(Change(RULES[rule], severity, protocol, spot, text, cases))

    def both(
        self, kind: str, old: Iterable[Any], new: Iterable[Any], names: Mapping[str, str], of: Spot, owner: str = ""
    ) -> list[tuple[Any, Any, Spot]]:
        """Note what is added, gone or renamed; return the others with their spots, their attributes compared.

        What is old has new names already, and `names` are the new ones by the old. `owner` is the layout of fields.
        """
        before, after = ({name_of(thing): thing for thing in side} for side in (old, new))
        old_names = {now: was for was, now in names.items()}
        kept: list[tuple[Any, Any, Spot]] = []

        def spot_of(name: str, place: Place, was: Place | None = None) -> Spot:
            layout = name if kind in ("message", "part") else of.layout
            return Spot(place, _SUBJECTS.get(kind, "{name}").format(of=of.subject, name=name), layout, was)

        for name, now in after.items():
            spot, lives = spot_of(name, now.place), self._exists(kind, name, owner)[1]
            if name not in before:
                self.add(f"{kind}-added", spot, f"is added{described(now)}", lives)
                continue
            found: set[str] = set()
            if (was := old_names.get(name, name)) != name:
                self.add(f"{kind}-renamed", spot, f"was called {was}", lives)
                if isinstance(now, Row) and (before[name].row.column, now.row.column) == (was, name):
                    found.add("field-renamed")  # Its column follows it.
            self._compare(kind, before[name], now, spot, owner, found)
            kept.append((before[name], now, spot))
        for name, gone in before.items():
            if name not in after:
                spot, lived = spot_of(name, of.place, gone.place), self._exists(kind, name, owner)[0]
                self.add(f"{kind}-gone", spot, f"is gone{described(gone)}", lived)
        return kept

    def add_types(self, pair: Pair) -> None:
        """Note the named types that change fields, each with all its fields."""
        for (subject, attribute), fields in sorted(self.by_type.items()):
            was, now = (side.types[subject.removeprefix("type ")] for side in (pair.old, pair.new))
            rule = RULES["type-sign" if attribute == "signed" else "type-python"]
            before, after = read(attribute, was)[1], read(attribute, now)[1]
            text = f"{rule.text(attribute, before, after)}: {listed(name for name, _ in fields)}"
            cases = (case for _, those in fields for case in those)
            self.add(rule.id, Spot(now.place, subject), text, cases)

    def compare_order(self, spot: Spot, attribute: str, before: Sequence[str], after: Sequence[str]) -> None:
        """Note that what both sides have stands in another order, if it does."""
        was, now = [name for name in before if name in after], [name for name in after if name in before]
        if was != now:
            first = next(name for name, other in zip(now, was, strict=True) if name != other)
            text = f"has {key_of(attribute)} in another order from {first} on"
            self.add("doc-order", spot, text)

    def compare_rows(self, spot: Spot, owner: str, before: Sequence[Row], after: Sequence[Row]) -> None:
        """Note the fewest rows that must have moved, where there are versions in which that can be seen."""
        was, now = [row.name for row in before], [row.name for row in after]
        both = [name for name in now if name in was]
        there = {name: self._common.intersection(*self._exists("field", name, owner)) for name in both}
        for name in out_of_order([name for name in was if name in both], both):
            passed = [
                other for other in both if (was.index(name) < was.index(other)) != (now.index(name) < now.index(other))
            ]
            if cases := {case for other in passed for case in there[name] & there[other]}:
                rule, place = RULES["field-order"], after[now.index(name)].place
                came, comes = place_in(was, name), place_in(now, name)
                of = Spot(place, f"{spot.subject}.{name}", spot.layout)
                self.add(rule.id, of, rule.text("", came, comes), cases)

    def _exists(self, kind: str, name: str, owner: str = "") -> tuple[Cases, Cases]:
        """The cases in which a thing exists, before and after."""
        if self._pair is None:
            return frozenset(), frozenset()
        return self._pair.was.of(kind, name, owner), self._pair.now.of(kind, name, owner)

    def _compare(self, kind: str, was: Any, now: Any, spot: Spot, owner: str, found: set[str]) -> None:
        """Note the attributes that differ; `found` are rules that have spoken already."""
        lived, lives = self._exists(kind, name_of(now), owner)
        either = (lived | lives) & self._common
        found |= self._compare_names(was.row, now.row, spot, either) if isinstance(now, Row) else set()
        for rule in rules_of(kind):
            for attribute in rule.attributes:
                if rule.says == ORDER:
                    self.compare_order(spot, attribute, names_in(attribute, was), names_in(attribute, now))
                    continue
                (value_before, before), (value, after) = read(attribute, was), read(attribute, now)
                if value_before == value or found & set(rule.unless) or (spot.subject, attribute) in self.by_type:
                    continue
                cases = lives if rule.severity is Severity.DOC else either
                if kind == "protocol" and rule.severity is Severity.WIRE:
                    cases = self._common
                elif attribute == "places":
                    cases = self._replaced(was, now, lived & lives)
                elif rule.severity is Severity.WIRE and attribute in _EXISTENCE:
                    others = [other for other in _EXISTENCE if read(other, was)[0] != read(other, now)[0]]
                    cases = self._moved(lived, lives, owner, attribute if len(others) > 1 else "")
                if self._pair and rule.severity is Severity.WIRE and not cases:
                    continue
                found |= {rule.id, rule.severity}
                of_type = _OF_TYPES.get(attribute)
                if isinstance(now, Row) and of_type and was.row.named_type == now.row.named_type is not None:
                    self.by_type[f"type {now.row.named_type}", of_type].append((spot.subject, cases))
                    continue
                if rule.id == "field-accepts" and (tag_of := now.tag_of):
                    rule = RULES[f"{tag_of}-tag"]
                self.add(rule.id, spot, rule.text(attribute, before, after), cases)

    def _moved(self, lived: Cases, lives: Cases, owner: str, attribute: str) -> Cases:
        """The cases that a thing comes to or leaves by itself: for a field, those in which its layout stays.

        Where several attributes differ, those that hold whatever the facts are `since` and `also since`.
        """
        of = self._exists("layout", owner)
        moved = (lived ^ lives) & self._common & (of[0] & of[1] if owner else self._common)
        always = frozenset(case for case in moved if Case(case.version) in moved)
        return moved if not attribute else moved - always if attribute == "also_when" else always

    def _replaced(self, was: Message, now: Message, cases: Cases) -> Cases:
        """The cases in which a message may stand elsewhere; a place is one where something opens its block."""
        assert self._pair is not None
        found = set()
        for case in cases & self._common:
            before, after = (
                {place for place in message.places if place == OUTSIDE or case in presence.of("block", place)}
                for message, presence in ((was, self._pair.was), (now, self._pair.now))
            )
            found |= {case} if before != after else set()
        return frozenset(found)

    def _compare_names(self, was: Field, now: Field, spot: Spot, cases: Cases) -> set[str]:
        """Note names of bits or values that moved, are others, came or went; return whether bytes changed by that."""
        noted = len(self.changes)
        sides: Iterable[tuple[str, str, Mapping[Any, str], Mapping[Any, str]]] = (
            ("bit", "mask", was.bits, now.bits),
            ("value", "value", was.values, now.values),
        )
        for rule, what, names_before, names in sides:
            before, after = (
                {mask(key) if isinstance(key, int) else key: name for key, name in side.items()}
                for side in (names_before, names)
            )
            kept = set(before.values()) & set(after.values())
            for key, name in after.items():
                old = next((other for other, same in before.items() if same == name), key)
                if old != key:
                    self.add(f"{rule}-moved", spot, f"{name} is the {what} {key}, was {old}", cases)
            for key in {**after, **before}:
                old, new = ("" if (name := side.get(key, "")) in kept else name for side in (before, after))
                if old and new:
                    self.add(f"{rule}-renamed", spot, f"{what} {key} is {new}, was {old}", cases)
                elif rule == "bit" and new:
                    self.add("bit-added", spot, f"mask {key} is {new}, had no name", cases)
                elif rule == "bit" and old:
                    self.add("bit-gone", spot, f"mask {key} has no name, was {old}", cases)
        return {change.severity for change in self.changes[noted:]}
