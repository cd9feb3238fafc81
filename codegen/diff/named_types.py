"""What changed in types.yaml beyond what the fields of a type have findings for."""

from __future__ import annotations

from collections.abc import Mapping

from codegen.diff.change import Changes, Spot
from codegen.model import NamedType


def compare_types(
    old: Mapping[str, NamedType],
    new: Mapping[str, NamedType],
    names: Mapping[str, str],
    reported: set[tuple[str, str]],
) -> Changes:
    """The findings; `reported` holds the types and keys, new names, for which the protocols have a finding already."""
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
