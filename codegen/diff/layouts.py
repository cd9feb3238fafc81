"""What changed in messages, parts and alternatives; rows.py looks at their rows."""

from __future__ import annotations

from codegen.diff.change import Case, Changes, Spot
from codegen.diff.owners import Owner
from codegen.diff.pair import Pair, places
from codegen.diff.rows import Rows
from codegen.diff.wording import is_was, listed
from codegen.spec.model import Alternative, Message, Part


class Layouts:
    """Compares the layouts of one protocol."""

    def __init__(self, pair: Pair, changes: Changes) -> None:
        self._pair = pair
        self._changes = changes
        self._rows = Rows(pair, changes)
        self._old_names = {now: was for was, now in pair.names.layouts.items()}

    @property
    def type_changes(self) -> set[tuple[str, str]]:
        """The named types, with the key that changed, for which the rows had a finding."""
        return self._rows.type_changes

    def compare(self) -> None:
        """Note what changed."""
        self._compare_all_messages()
        self._compare_all_parts()
        self._rows.compare_types()

    def _compare_all_messages(self) -> None:
        pair, changes = self._pair, self._changes
        before = {message.name: message for message in pair.old.messages}
        after = {message.name: message for message in pair.new.messages}
        for name, now in after.items():
            spot = Spot(now.place, name, name)
            cases = pair.now.of_layout(name)
            if name in before:
                changes.add_rename("message-renamed", spot, self._old_names[name], name, cases=cases)
                self._compare_message(before[name], now, spot)
            elif cases & pair.was.cases:
                changes.add(
                    "message-added", spot, f"is added, with the tag '{now.tag}': {now.doc}", "", name, cases=cases
                )
            else:
                changes.add("message-new", spot, f"is new, with the tag '{now.tag}': {now.doc}", "", name, cases=cases)
        for name, was in before.items():
            if name not in after:
                spot = Spot(was.place, name, name, "old")
                text = f"is gone, with the tag '{was.tag}'"
                changes.add("message-gone", spot, text, name, cases=pair.was.of_layout(name))

    def _compare_message(self, was: Message, now: Message, spot: Spot) -> None:
        pair, changes = self._pair, self._changes
        lived, lives = pair.was.of_layout(now.name), pair.now.of_layout(now.name)
        moved = (lived ^ lives) & pair.common
        in_versions = {case for case in moved if Case(case.version) in moved}
        if in_versions:
            before, after = str(was.since), str(now.since)
            changes.add("message-since", spot, is_was("since", before, after), before, after, cases=in_versions)
        if moved - in_versions:
            before, after = was.also_when or "", now.also_when or ""
            text = is_was("also when", before, after)
            changes.add("message-also-when", spot, text, before, after, cases=moved - in_versions)
        replaced = {
            case for case in lived & lives & pair.common if places(was, pair.was, case) != places(now, pair.now, case)
        }
        # Where only the block came or went, the message that opens it says so.
        if replaced and set(was.places) != set(now.places):
            before, after = listed(was.places), listed(now.places)
            changes.add("message-place", spot, is_was("place", before, after), before, after, cases=replaced)
        changes.add_order(spot, "places", was.places, now.places)
        either = (lived | lives) & pair.common
        for rule, key, said, says in (
            ("message-sender", "from", was.sender, now.sender),
            ("message-opens", "opens", was.opens, now.opens),
            ("message-closes", "closes", was.closes, now.closes),
            ("message-sets", "sets", was.sets, now.sets),
            ("message-clears", "clears", was.clears, now.clears),
            ("message-transaction", "transaction", was.transaction, now.transaction),
        ):
            if said != says:
                changes.add(rule, spot, is_was(key, said, says), said or "", says or "", cases=either)
        if was.callbacks != now.callbacks:
            before, after = listed(was.callbacks), listed(now.callbacks)
            changes.add("message-callback", spot, is_was("callback", before, after), before, after, cases=lives)
        changes.add_text("doc-reference", spot, "ref", was.ref, now.ref, cases=lives)
        self._compare_documentation(was, now, spot)
        self._rows.compare(spot, was, now, tag_rule="message-tag")

    def _compare_documentation(self, was: Owner, now: Owner, spot: Spot) -> None:
        cases = self._pair.now.of_layout(now.name)
        self._changes.add_text("doc-wording", spot, "doc", was.doc, now.doc, cases=cases)
        self._changes.add_text("doc-note", spot, "note", was.note, now.note, cases=cases)

    def _compare_all_parts(self) -> None:
        pair, changes = self._pair, self._changes
        before = {part.name: part for part in pair.old.parts}
        after = {part.name: part for part in pair.new.parts}
        for name, now in after.items():
            spot = Spot(now.place, name, name)
            cases = pair.now.of_layout(name)
            if name in before:
                changes.add_rename("part-renamed", spot, self._old_names[name], name, cases=cases)
                self._compare_part(before[name], now, spot)
            elif cases & pair.was.cases:
                changes.add("part-added", spot, f"is added: {now.doc}", "", name, cases=cases)
            else:
                changes.add("part-new", spot, f"is new: {now.doc}", "", name, cases=cases)
        for name, was in before.items():
            if name not in after:
                spot = Spot(was.place, name, name, "old")
                changes.add("part-gone", spot, "is gone", name, cases=pair.was.of_layout(name))

    def _compare_part(self, was: Part, now: Part, spot: Spot) -> None:
        cases = self._pair.now.of_layout(now.name)
        self._changes.add_text("doc-reference", spot, "ref", was.ref or "", now.ref or "", cases=cases)
        self._compare_documentation(was, now, spot)
        self._rows.compare(spot, was, now)
        self._compare_alternatives(was, now)

    def _compare_alternatives(self, old: Part, new: Part) -> None:
        pair, changes = self._pair, self._changes
        before = {alternative.name: alternative for alternative in old.alternatives}
        after = {alternative.name: alternative for alternative in new.alternatives}
        either = (pair.was.of_layout(new.name) | pair.now.of_layout(new.name)) & pair.common
        for name, now in after.items():
            spot = Spot(now.place, f"{new.name}.{name}", new.name)
            if name in before:
                changes.add_rename("alternative-renamed", spot, self._old_names[name], name, cases=either)
                self._compare_documentation(before[name], now, spot)
                self._rows.compare(spot, before[name], now, tag_rule="alternative-tag")
            else:
                text = f"is added, with the tag {_tag(now)}: {now.doc}"
                changes.add("alternative-added", spot, text, "", name, cases=either)
        for name, was in before.items():
            if name not in after:
                spot = Spot(was.place, f"{new.name}.{name}", old.name, "old")
                changes.add("alternative-gone", spot, f"is gone, with the tag {_tag(was)}", name, cases=either)
        changes.add_order(Spot(new.place, new.name, new.name), "alternatives", list(before), list(after))


def _tag(alternative: Alternative) -> str:
    return f"'{alternative.fields[0].constants[0]}'"
