"""What changed in the rows of one layout."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from codegen.diff.change import Case, Cases, Changes, Spot
from codegen.diff.owners import Owner
from codegen.diff.pair import Pair
from codegen.diff.protocols import python_class, sign
from codegen.diff.reading import moved_names, python_type, reading
from codegen.diff.rules import Severity
from codegen.diff.wording import condition_text, constants_text, is_was, listed, row_text
from codegen.emit.python_source import Source
from codegen.spec.model import Field


class _Row(NamedTuple):
    """A row and what it is of."""

    owner: Owner
    row: Field

    @property
    def key(self) -> tuple[str, str]:
        """Their names."""
        return self.owner.name, self.row.name


class Rows:
    """Compares rows, and gathers those that change because their named type does."""

    def __init__(self, pair: Pair, changes: Changes) -> None:
        self._pair = pair
        self._changes = changes
        self._sources = Source(pair.old), Source(pair.new)
        self._by_type: dict[tuple[str, str], list[tuple[str, Cases]]] = {}

    @property
    def type_changes(self) -> set[tuple[str, str]]:
        """The named types, with the key that changed, for which there is a finding."""
        return set(self._by_type)

    def compare(self, of: Spot, old: Owner, new: Owner, tag_rule: str = "field-constant") -> None:
        """Note what changed in the rows of a layout; `tag_rule` is that for the constant of the first."""
        pair, changes = self._pair, self._changes
        before = {row.name: row for row in old.fields}
        after = {row.name: row for row in new.fields}
        old_names = {now: was for was, now in pair.names.rows.get(new.name, {}).items()}
        for name, now in after.items():
            spot = Spot(now.place, f"{of.subject}.{name}", of.layout)
            cases = pair.now.of_row(new.name, name)
            if name in before:
                changes.add_rename("field-renamed", spot, old_names[name], name, cases=cases)
                rule = tag_rule if now is new.fields[0] else "field-constant"
                self._compare_row(spot, _Row(old, before[name]), _Row(new, now), rule)
            elif cases & pair.was.cases:
                text = row_text(now, new)
                changes.add("field-added", spot, f"is added: {text}", "", text, cases=cases & pair.was.cases)
            else:
                text = row_text(now, new)
                changes.add("field-new", spot, f"is new: {text}", "", text, cases=cases)
        for name, was in before.items():
            if name not in after:
                spot = Spot(was.place, f"{of.subject}.{name}", of.layout, "old")
                text = row_text(was, old)
                changes.add("field-gone", spot, f"is gone: {text}", text, cases=pair.was.of_row(new.name, name))
        self._compare_order(of, new.name, before, after)

    def compare_types(self) -> None:
        """Note the named types that changed, each with all its fields."""
        old, new = self._pair.old.types, self._pair.new.types
        for (name, key), fields in sorted(self._by_type.items()):
            cases = frozenset(case for _, those in fields for case in those)
            text_of = sign if key == "sign" else python_class
            before, after = text_of(old[name]), text_of(new[name])
            text = f"is {after}, was {before}: {listed(subject for subject, _ in fields)}"
            self._changes.add(f"type-{key}", Spot(new[name].place, f"type {name}"), text, before, after, cases=cases)

    def _compare_row(self, spot: Spot, was: _Row, now: _Row, constant_rule: str) -> None:
        changes, cases = self._changes, self._either(now)
        noted = len(changes)
        gathered = self._compare_bytes(spot, was, now, constant_rule, cases)
        _compare_names(changes, spot, "bit", was.row.bits, now.row.bits, cases)
        _compare_names(changes, spot, "value", was.row.values, now.row.values, cases)
        if not gathered and all(change.severity is not Severity.WIRE for change in changes[noted:]):
            self._compare_python(spot, was, now, cases)
        lives = self._pair.now.of_row(*now.key)
        changes.add_text("doc-wording", spot, "doc", was.row.doc, now.row.doc, cases=lives)
        changes.add_text("doc-note", spot, "note", was.row.note, now.row.note, cases=lives)
        if was.row.values.keys() == now.row.values.keys():
            changes.add_order(spot, "values", list(was.row.values), list(now.row.values))

    def _either(self, row: _Row) -> Cases:
        """The cases of both sides in which the row exists on at least one."""
        pair = self._pair
        return (pair.was.of_row(*row.key) | pair.now.of_row(*row.key)) & pair.common

    def _moved(self, row: _Row) -> Cases:
        """The cases of both sides in which the row exists on one only, though its layout exists on both."""
        pair = self._pair
        layout = pair.was.of_layout(row.owner.name) & pair.now.of_layout(row.owner.name) & pair.common
        return (pair.was.of_row(*row.key) ^ pair.now.of_row(*row.key)) & layout

    def _compare_bytes(self, spot: Spot, was: _Row, now: _Row, constant_rule: str, cases: Cases) -> bool:
        """Note what changed in the bytes; True if that is the doing of a named type, and noted with it."""
        changes = self._changes
        old, new = reading(self._pair.old, was.row), reading(self._pair.new, now.row)
        if moved := self._moved(now):
            before, after = str(was.row.since), str(now.row.since)
            changes.add("field-since", spot, is_was("since", before, after), before, after, cases=moved)
        if (old.when, old.optional) != (new.when, new.optional):
            before, after = condition_text(was.row), condition_text(now.row)
            text = f"is there {after}, was there {before}"
            changes.add("field-condition", spot, text, before, after, cases=cases)
        for key, said, says in (("size", old.size, new.size), ("repeat", old.repeat, new.repeat)):
            if said != says:
                changes.add(f"field-{key}", spot, is_was(key, said, says), said or "", says or "", cases=cases)
        if old.nonzero != new.nonzero:
            text = "refuses zero, accepted it" if new.nonzero else "accepts zero, refused it"
            changes.add("field-nonzero", spot, text, _yes(old.nonzero), _yes(new.nonzero), cases=cases)
        if (old.kind, old.width) != (new.kind, new.width):
            before, after = row_text(was.row, was.owner), row_text(now.row, now.owner)
            changes.add("field-type", spot, f"is {after}, was {before}", before, after, cases=cases)
            return False
        if old.accepted != new.accepted:
            self._compare_accepted(spot, was.row, now.row, constant_rule, cases)
        if old.signed == new.signed:
            return False
        if self._by_its_type("sign", spot, was.row, now.row, cases):
            return True
        before, after = ("signed" if one.signed else "unsigned" for one in (old, new))
        text = f"is {after} ({_typed(now.row)}), was {before} ({_typed(was.row)})"
        changes.add("field-sign", spot, text, before, after, cases=cases)
        return False

    def _by_its_type(self, key: str, spot: Spot, was: Field, now: Field, cases: Cases) -> bool:
        """Whether a field changes because its named type does, which is noted once for all fields."""
        if now.named_type is None or was.named_type != now.named_type:
            return False
        self._by_type.setdefault((now.named_type, key), []).append((spot.subject, cases))
        return True

    def _compare_accepted(self, spot: Spot, was: Field, now: Field, constant_rule: str, cases: Cases) -> None:
        changes = self._changes
        if was.boolean != now.boolean:
            text = "accepts 0 and 1 only" if now.boolean else "accepts more than 0 and 1"
            changes.add("field-boolean", spot, text, _yes(was.boolean), _yes(now.boolean), cases=cases)
        elif was.constants != now.constants:
            before, after = constants_text(was), constants_text(now)
            changes.add(constant_rule, spot, f"is {after}, was {before}", before, after, cases=cases)
        else:
            before, after = listed(was.values), listed(now.values)
            changes.add("field-values", spot, is_was("values", before, after), before, after, cases=cases)

    def _compare_python(self, spot: Spot, was: _Row, now: _Row, cases: Cases) -> None:
        """Note another type in Python, or else another way to write the same type."""
        before = python_type(self._sources[0], was.owner.fields, was.row)
        after = python_type(self._sources[1], now.owner.fields, now.row)
        if before != after:
            if not self._by_its_type("python", spot, was.row, now.row, cases):
                text = f"is {after or 'no attribute'} in Python, was {before or 'no attribute'}"
                self._changes.add("field-python", spot, text, before, after, cases=cases)
        elif _typed(was.row) != _typed(now.row):
            text = f"is written {_typed(now.row)}, was {_typed(was.row)}"
            self._changes.add("field-notation", spot, text, _typed(was.row), _typed(now.row), cases=cases)

    def _compare_order(self, of: Spot, layout: str, before: Mapping[str, Field], after: Mapping[str, Field]) -> None:
        pair = self._pair
        was = [name for name in before if name in after]
        now = [name for name in after if name in before]
        exists = {name: pair.was.of_row(layout, name) & pair.now.of_row(layout, name) & pair.common for name in now}
        for name in out_of_order(was, now):
            cases: set[Case] = set()
            for other in now:
                if (was.index(name) < was.index(other)) != (now.index(name) < now.index(other)):
                    cases |= exists[name] & exists[other]
            if cases:
                spot = Spot(after[name].place, f"{of.subject}.{name}", of.layout)
                place_before, place = _place(list(before), name), _place(list(after), name)
                text = f"comes {place}, came {place_before}"
                self._changes.add("field-order", spot, text, place_before, place, cases=cases)


def out_of_order(was: Sequence[str], now: Sequence[str]) -> list[str]:
    """The fewest names that must have moved for one order to become the other: all but a longest rising run."""
    places = [was.index(name) for name in now]
    ends: list[int] = []  # the lowest place at which a run of each length ends so far
    lengths: list[int] = []
    for place in places:
        lengths.append(bisect_left(ends, place))
        ends[lengths[-1] : lengths[-1] + 1] = [place]
    moved: list[str] = []
    wanted, limit = len(ends) - 1, len(places)
    for name, place, length in zip(reversed(now), reversed(places), reversed(lengths), strict=True):
        if length == wanted and place < limit:
            wanted, limit = wanted - 1, place
        else:
            moved.append(name)
    return moved[::-1]


def _compare_names(
    changes: Changes,
    spot: Spot,
    what: str,
    was: Mapping[int, str] | Mapping[str, str],
    now: Mapping[int, str] | Mapping[str, str],
    cases: Cases,
) -> None:
    """Note names of bits or values that moved, are others, came or went."""
    before = {str(key): name for key, name in was.items()}
    after = {str(key): name for key, name in now.items()}
    for name in moved_names(was, now):
        old, new = (next(key for key in side if side[key] == name) for side in (before, after))
        changes.add(f"{what}-moved", spot, f"{name} is the {what} {new}, was {old}", old, new, cases=cases)
    kept = set(before.values()) & set(after.values())
    for key in [*after, *(key for key in before if key not in after)]:
        old, new = before.get(key, ""), after.get(key, "")
        old, new = "" if old in kept else old, "" if new in kept else new
        if old and new:
            changes.add(f"{what}-renamed", spot, f"{what} {key} is {new}, was {old}", old, new, cases=cases)
        elif new and what == "bit":
            changes.add("bit-added", spot, f"bit {key} is {new}, had no name", "", new, cases=cases)
        elif old and what == "bit":
            changes.add("bit-gone", spot, f"bit {key} has no name, was {old}", old, "", cases=cases)


def _place(names: Sequence[str], name: str) -> str:
    index = names.index(name)
    return f"after {names[index - 1]}" if index else "first"


def _typed(row: Field) -> str:
    return str(row.type) + (f", is {row.is_named}" if row.is_named is not None else "")


def _yes(there: bool) -> str:
    return "true" if there else ""
