"""Changes in protocol.yaml (the protocol, its versions, session facts and blocks) and in types.yaml."""

from __future__ import annotations

from collections.abc import Mapping

from codegen.diff.change import Case, Changes, Spot
from codegen.diff.pair import Pair
from codegen.diff.presence import Presence
from codegen.diff.wording import is_was, listed
from codegen.spec.model import NamedType


def compare_protocols(pair: Pair, changes: Changes) -> None:
    """Note what changed outside of the layouts."""
    _compare_heads(pair, changes)
    _compare_versions(pair, changes)
    _compare_facts(pair, changes)
    _compare_blocks(pair, changes)


def _compare_heads(pair: Pair, changes: Changes) -> None:
    old, new = pair.old, pair.new
    spot = Spot(new.place, new.name)
    changes.add_rename("protocol-renamed", spot, old.name, new.name)
    changes.add_text("doc-wording", spot, "title", old.title, new.title)
    changes.add_text("doc-wording", spot, "doc", old.doc, new.doc)
    changes.add_text("doc-reference", spot, "page", old.page, new.page)
    changes.add_text("doc-reference", spot, "anchor", old.anchor, new.anchor)
    changes.add_order(spot, "session facts", [fact.name for fact in old.session], [fact.name for fact in new.session])
    changes.add_order(spot, "blocks", list(old.blocks), list(new.blocks))
    changes.add_order(spot, "messages", [item.name for item in old.messages], [item.name for item in new.messages])
    changes.add_order(spot, "parts", [item.name for item in old.parts], [item.name for item in new.parts])


def _compare_versions(pair: Pair, changes: Changes) -> None:
    old, new = pair.old.versions, pair.new.versions
    for was, now in zip(old, new, strict=False):
        spot = Spot(now.place, f"version {now.number}")
        cases = _of_version(pair.now, now.number)
        if was.module != now.module:
            text = is_was("module", was.module, now.module)
            changes.add("version-module", spot, text, was.module, now.module, cases=cases)
        if was.server != now.server:
            text = f"is of PostgreSQL {now.server} and later, was of {was.server}"
            changes.add("version-server", spot, text, str(was.server), str(now.server), cases=cases)
        changes.add_text("doc-wording", spot, "doc", was.doc, now.doc, cases=cases)
    for now in new[len(old) :]:
        spot = Spot(now.place, f"version {now.number}")
        text = f"is new, of PostgreSQL {now.server} and later: {now.doc}"
        changes.add("version-new", spot, text, "", str(now.number), cases=_of_version(pair.now, now.number))
    for was in old[len(new) :]:
        spot = Spot(was.place, f"version {was.number}", side="old")
        changes.add("version-gone", spot, "is gone", str(was.number), cases=_of_version(pair.was, was.number))


def _of_version(presence: Presence, version: int) -> set[Case]:
    return {case for case in presence.cases if case.version == version}


def _since(presence: Presence, version: int) -> set[Case]:
    return {case for case in presence.cases if case.version >= version}


def _compare_facts(pair: Pair, changes: Changes) -> None:
    before = {fact.name: fact for fact in pair.old.session}
    after = {fact.name: fact for fact in pair.new.session}
    old_names = {now: was for was, now in pair.names.facts.items()}
    for name, now in after.items():
        spot = Spot(now.place, f"session fact {name}")
        was = before.get(name)
        if was is None:
            is_new = now.since > len(pair.old.versions)
            text = f"is {'new' if is_new else 'added'}, since {now.since}: {now.doc}"
            cases = _since(pair.now, now.since)
            changes.add("session-fact-new" if is_new else "session-fact-added", spot, text, "", name, cases=cases)
            continue
        cases = _since(pair.now, now.since)
        changes.add_rename("session-fact-renamed", spot, old_names[name], name, cases=cases)
        if was.since != now.since:
            text = is_was("since", str(was.since), str(now.since))
            changes.add("session-fact-since", spot, text, str(was.since), str(now.since), cases=cases)
        changes.add_text("doc-wording", spot, "doc", was.doc, now.doc, cases=cases)
    for name, was in before.items():
        if name not in after:
            spot = Spot(was.place, f"session fact {name}", side="old")
            changes.add("session-fact-gone", spot, "is gone", name, cases=_since(pair.was, was.since))


def _compare_blocks(pair: Pair, changes: Changes) -> None:
    before, after = pair.old.blocks, pair.new.blocks
    old_names = {now: was for was, now in pair.names.blocks.items()}
    for name, doc in after.items():
        spot = Spot(pair.new.place, f"block {name!r}")
        cases = pair.now.of_block(name)
        if name not in before:
            is_new = not pair.now.of_block(name) & pair.was.cases
            members = listed(message.name for message in pair.new.messages if name in message.places)
            text = f"is {'new' if is_new else 'added'}, for {members}: {doc}"
            changes.add("block-new" if is_new else "block-added", spot, text, "", name, cases=cases)
            continue
        changes.add_rename("block-renamed", spot, old_names[name], name, cases=cases)
        changes.add_text("doc-wording", spot, "doc", before[name], doc, cases=cases)
    for name in before:
        if name not in after:
            spot = Spot(pair.old.place, f"block {name!r}", side="old")
            changes.add("block-gone", spot, "is gone", name, cases=pair.was.of_block(name))


def compare_types(
    old: Mapping[str, NamedType],
    new: Mapping[str, NamedType],
    names: Mapping[str, str],
    reported: set[tuple[str, str]],
) -> Changes:
    """Find what changed in types.yaml beyond what the fields of a type have findings for.

    `reported` holds the types and keys, new names, for which the protocols have a finding already.
    """
    changes = Changes()
    old_names = {now: was for was, now in names.items()}
    for name, now in new.items():
        spot = Spot(now.place, f"type {name}")
        if name not in old_names:
            changes.add("type-definition", spot, f"is added: {_definition(now)}", "", name)
            continue
        was = old[old_names[name]]
        changes.add_rename("type-renamed", spot, was.name, name)
        for key, before, after in (
            ("base", was.base, now.base),
            ("sign", sign(was), sign(now)),
            ("python", python_class(was), python_class(now)),
        ):
            if before != after and (name, key) not in reported:
                changes.add("type-definition", spot, f"is {after}, was {before}", before, after)
        changes.add_text("doc-wording", spot, "doc", was.doc, now.doc)
    for name, was in old.items():
        if name not in names:
            changes.add("type-definition", Spot(was.place, f"type {name}", side="old"), "is gone", _definition(was))
    if new:
        place = min(kind.place for kind in new.values())
        changes.add_order(Spot(place, "types.yaml"), "types", [names.get(name, name) for name in old], list(new))
    return changes


def sign(kind: NamedType) -> str:
    """In words."""
    return "signed" if kind.signed else "unsigned"


def python_class(kind: NamedType) -> str:
    """In words."""
    return f"{kind.python} in Python"


def _definition(kind: NamedType) -> str:
    return f"{kind.base}, {sign(kind)}, {python_class(kind)}"
