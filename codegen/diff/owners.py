"""What has rows, looked at alike: messages, parts, and the alternatives of parts."""

from __future__ import annotations

from codegen.spec.model import Alternative, Field, Message, Part, Protocol

Owner = Message | Part | Alternative
"""Their names are all different within a protocol."""


def owners(protocol: Protocol) -> dict[str, Owner]:
    """Every one of a protocol, by its name."""
    found: list[Owner] = [*protocol.messages, *protocol.parts]
    found += [alternative for part in protocol.parts for alternative in part.alternatives]
    return {owner.name: owner for owner in found}


def since_of(owner: Owner) -> int:
    """The version that its rows are of unless they say otherwise."""
    return owner.since if isinstance(owner, Message) else 1


def own_and_inner(layout: Owner) -> list[Owner]:
    """A layout, and the alternatives of a part after it."""
    return [layout, *(layout.alternatives if isinstance(layout, Part) else ())]


def all_rows(layout: Owner) -> tuple[Field, ...]:
    """The rows of a layout, those of its alternatives included."""
    return tuple(row for owner in own_and_inner(layout) for row in owner.fields)
