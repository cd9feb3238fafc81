"""The owners of rows, handled alike: messages, parts, and the alternatives of parts; and blocks."""

from __future__ import annotations

from typing import NamedTuple

from codegen.spec.layouts import Alternative, Field, Message, Part
from codegen.spec.model import Protocol
from codegen.spec.places import Place

Owner = Message | Part | Alternative
"""Their names are all different within a protocol."""


def owners(protocol: Protocol) -> dict[str, Owner]:
    """Every one of a protocol, by its name."""
    return {owner.name: owner for layout in protocol.layouts for owner in own_and_inner(layout)}


def own_and_inner(layout: Owner) -> list[Owner]:
    """A layout, and the alternatives of a part after it."""
    return [layout, *(layout.alternatives if isinstance(layout, Part) else ())]


def all_rows(layout: Owner) -> tuple[Field, ...]:
    """The rows of a layout, those of its alternatives included."""
    return tuple(row for owner in own_and_inner(layout) for row in owner.fields)


class Block(NamedTuple):
    """A block; the model has its name and its text."""

    name: str
    doc: str
    place: Place


def blocks_of(protocol: Protocol) -> list[Block]:
    """Every block of a protocol."""
    return [Block(name, doc, protocol.place) for name, doc in protocol.blocks.items()]
