"""Owners of rows: messages, parts and alternatives. And blocks."""

from __future__ import annotations

from typing import NamedTuple

from codegen.model.layouts import Alternative, Field, Message, Part
from codegen.model.model import Protocol
from codegen.model.places import Place

Owner = Message | Part | Alternative
"""Names of owners are unique within a protocol."""


def owners(protocol: Protocol) -> dict[str, Owner]:
    """Return a protocol's owners by name."""
    return {owner.name: owner for layout in protocol.layouts for owner in own_and_inner(layout)}


def own_and_inner(layout: Owner) -> list[Owner]:
    """Return a layout and its alternatives."""
    return [layout, *(layout.alternatives if isinstance(layout, Part) else ())]


def all_rows(layout: Owner) -> tuple[Field, ...]:
    """Return a layout's rows, including its alternatives' rows."""
    return tuple(row for owner in own_and_inner(layout) for row in owner.fields)


class Block(NamedTuple):
    name: str
    doc: str
    place: Place


def blocks_of(protocol: Protocol) -> list[Block]:
    return [Block(name, doc, protocol.place) for name, doc in protocol.blocks.items()]
