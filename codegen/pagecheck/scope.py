"""The messages of a page that belong to a protocol, paired with the spec's.

A page may contain several protocols (protocol.sgml contains all), and messages that the spec omits: messages of
BASE_BACKUP are next to messages of START_REPLICATION. Messages in lists under the same entry of the same section belong
together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

from codegen.model.model import Protocol
from codegen.pagecheck.expected import Layout
from codegen.pagecheck.page import Group, Message, Page
from codegen.shared import out_of_order

_NUMBER = re.compile(r"^(?:Chapter\s)?[\d.\s]*")
"""A section's number before its title."""


def messages_of(page: Page, protocol: Protocol) -> tuple[Message, ...]:
    """Return the page's messages of a protocol; () if the page has none."""
    within = [message for message in page.messages if _is_section_of(protocol, message.group)]
    candidates = within or list(page.messages)
    known_surroundings = {_surroundings(message) for message in candidates if _is_known(message, protocol)}
    if not known_surroundings and within:
        known_surroundings = {_surroundings(message) for message in within}
    return tuple(message for message in candidates if _surroundings(message) in known_surroundings)


def _is_section_of(protocol: Protocol, group: Group) -> bool:
    anchor = (group.section or "").lower()
    own_anchor = protocol.anchor.rstrip("-").lower()
    return bool(own_anchor and anchor == own_anchor) or _NUMBER.sub("", group.section_title) == protocol.title


def _surroundings(message: Message) -> tuple[str | None, str, tuple[str, ...]]:
    return message.group.section, message.group.section_title, message.group.entries


def _is_known(message: Message, protocol: Protocol) -> bool:
    refs = {layout.name: layout.ref for layout in protocol.messages}
    refs |= {part.name: part.ref for part in protocol.parts if part.ref is not None}
    anchors = {f"{protocol.anchor}{ref}".lower() for ref in refs.values()}
    names = {name.lower() for name in refs}
    return (message.name or "").lower() in names or (message.anchor or "").lower() in anchors


def pair_messages(
    messages: tuple[Message, ...], layouts: tuple[Layout, ...], distance: Callable[[Message, Layout], float]
) -> dict[int, Layout]:
    """Return the layouts by the indexes of their messages: paired by name, else by anchor, else by tag.

    A message without its head is the message before the next one in the spec; without a next one, the message whose
    rows are most similar.
    """
    chosen: dict[int, Layout] = {}
    free = list(layouts)

    def choose(index: int, layout: Layout | None) -> None:
        if layout in free:
            chosen[index] = layout
            free.remove(layout)

    for fits in (same_name, _same_anchor, _same_tag):
        for index, message in enumerate(messages):
            if index not in chosen and not message.head_missing:
                choose(index, next((layout for layout in free if fits(message, layout)), None))
    for index, message in enumerate(messages):
        if message.head_missing:
            choose(index, _before(layouts, chosen.get(index + 1)) or min(layouts, key=partial(distance, message)))
    return chosen


def same_name(message: Message, layout: Layout, *, is_old: bool = False) -> bool:
    """Return whether a message has a layout's name. Ignores capitals on an old page."""
    if is_old:
        return (message.name or "").lower() == layout.name.lower()
    return message.name == layout.name


def _same_anchor(message: Message, layout: Layout) -> bool:
    return message.anchor is not None and message.anchor.lower() == layout.anchor.lower()


def _same_tag(message: Message, layout: Layout) -> bool:
    rows = message.rows
    return bool(rows) and not layout.is_part and rows[0].type == layout.rows[0].type


def _before(layouts: tuple[Layout, ...], layout: Layout | None) -> Layout | None:
    return next((previous for previous, other in pairwise(layouts) if other is layout), None)


def missing(
    messages: tuple[Message, ...], layouts: tuple[Layout, ...], chosen: dict[int, Layout]
) -> Iterator[tuple[Layout, str, Message]]:
    """Return the expected layouts that the page lacks, each "after" or "before" a neighbouring message.

    A page should contain all messages of a release if it contains one of them.
    """
    where = {layout.name: messages[index] for index, layout in chosen.items()}
    releases = {layout.release for layout in chosen.values()}
    present = [index for index, layout in enumerate(layouts) if layout.name in where]
    if not present:
        yield from ((layout, "before", messages[0]) for layout in layouts)
        return
    first = present[0] if messages[0].group.section_head_missing else 0
    last = present[-1] if messages[-1].group.section_tail_missing else len(layouts) - 1
    for index in range(first, last + 1):
        if index not in present and layouts[index].release in releases:
            earlier = [other for other in present if other < index]
            neighbour = where[layouts[earlier[-1] if earlier else present[0]].name]
            yield layouts[index], "after" if earlier else "before", neighbour


def misplaced(
    messages: tuple[Message, ...], layouts: tuple[Layout, ...], chosen: dict[int, Layout]
) -> Iterator[tuple[Message, Message, Layout, Layout | None]]:
    """Return the fewest messages to move: each with its predecessor, and its layout with the layout's predecessor."""
    present = {layout.name: (index, layout) for index, layout in sorted(chosen.items())}
    for name in out_of_order([layout.name for layout in layouts], list(present)):
        index, layout = present[name]
        yield messages[index], messages[max(index - 1, 0)], layout, _before(layouts, layout)
