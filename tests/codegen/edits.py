"""Edits of a loaded spec, row by row: the layouts of a protocol one at a time, and what can be done to each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from codegen.model.layouts import Field, Message, Part, parts_used
from codegen.model.model import Protocol
from codegen.model.notation import Byte1, Int, PartName, String

Rows = tuple[Field, ...]


@dataclass(frozen=True)
class RowOf:
    """A row, by the name of its message, part or alternative and its index there."""

    layout: str
    index: int
    subject: str

    def edited(self, protocol: Protocol, edit: Edit) -> Protocol:
        """The protocol with the rows of that layout replaced."""

        def rows(name: str, fields: Rows) -> Rows:
            return edit(fields, self.index) if name == self.layout else fields

        def message(item: Message) -> Message:
            fields, renamed = rows(item.name, item.fields), f"{item.describes}_renamed"
            describes = renamed if any(row.name == renamed for row in fields) else item.describes
            return replace(item, fields=fields, describes=describes)

        return replace(
            protocol,
            messages=tuple(map(message, protocol.messages)),
            parts=tuple(
                replace(
                    part,
                    fields=rows(part.name, part.fields),
                    alternatives=tuple(
                        replace(alternative, fields=rows(alternative.name, alternative.fields))
                        for alternative in part.alternatives
                    ),
                )
                for part in protocol.parts
            ),
        )


def rows_of(protocol: Protocol) -> Iterator[RowOf]:
    """Every row of a protocol."""
    for message in protocol.messages:
        for index, row in enumerate(message.fields):
            yield RowOf(message.name, index, f"{message.name}.{row.key}")
    for part in protocol.parts:
        for index, row in enumerate(part.fields):
            yield RowOf(part.name, index, f"{part.name}.{row.name}")
        for alternative in part.alternatives:
            for index, row in enumerate(alternative.fields):
                yield RowOf(alternative.name, index, f"{part.name}.{alternative.name}.{row.name}")


def alone(protocol: Protocol, layout: str) -> Protocol:
    """The protocol with one message only, that which has or contains the layout: enough to compare rows, and quick."""
    for message in protocol.messages:
        parts = _parts(protocol, message)
        names = {message.name, *(part.name for part in parts)}
        names |= {alternative.name for part in parts for alternative in part.alternatives}
        if layout in names:
            return replace(protocol, messages=(message,), parts=tuple(parts))
    raise KeyError(layout)


def _parts(protocol: Protocol, layout: Message | Part) -> list[Part]:
    parts: list[Part] = []
    for name in parts_used(layout.fields):
        part = protocol.part(name)
        parts += [part, *_parts(protocol, part)]
    return parts


Edit = Callable[[Rows, int], Rows]
"""An edit of one row of a layout."""


def changed(change: Callable[[Field], Field | None]) -> Edit:
    """The edit that replaces or removes a row."""

    def edit(rows: Rows, index: int) -> Rows:
        new = change(rows[index])
        return (*rows[:index], *([] if new is None else [new]), *rows[index + 1 :])

    return edit


def replaced(**changes: Any) -> Edit:
    """The edit that replaces attributes of a row."""
    return changed(lambda row: replace(row, **changes))


def swapped(rows: Rows, index: int) -> Rows:
    """The row and the next one, or the one before the last, have changed places."""
    other = index + 1 if index + 1 < len(rows) else index - 1
    edited = list(rows)
    edited[index], edited[other] = edited[other], edited[index]
    return tuple(edited)


def _renamed(rows: Rows, index: int) -> Rows:
    old, new = rows[index].name, f"{rows[index].name}_renamed"
    return tuple(
        replace(
            row,
            name=new if row.name == old else row.name,
            when=new if row.when == old else row.when,
            size=new if row.size == old else row.size,
            repeat=new if row.repeat == old else row.repeat,
        )
        for row in rows
    )


def _other_type(row: Field) -> Field:
    if isinstance(row.type, Byte1) and row.type.constants:
        return replace(row, type=Byte1((*row.type.constants[:-1], "?")))
    if isinstance(row.type, Int):
        wider = {"Int8": "Int16", "Int16": "Int32", "Int32": "Int64", "Int64": "Int32"}[row.type.base]
        return replace(row, type=Int(wider), is_named=None)
    return replace(row, type=Int("Int16") if isinstance(row.type, String | PartName) else String(), size=None)


def _with_other_values(row: Field) -> Field:
    return replace(row, type=Int("Int8"), values={**row.values, "?": "spare"}, boolean=False, any_character=False)


EDITS: dict[str, Edit] = {
    "renamed": _renamed,
    "of another type": changed(_other_type),
    "gone": changed(lambda row: None),
    "swapped with its neighbour": swapped,
    "since the newest version": replaced(since=4),
    "under another condition": changed(lambda row: replace(row, when=None if row.when == "streaming" else "streaming")),
    "refusing zero or not": changed(lambda row: replace(row, nonzero=not row.nonzero)),
    "optional or not": changed(lambda row: replace(row, optional=not row.optional)),
    "of another size": changed(lambda row: replace(row, size=None if row.size else "rest")),
    "repeated or not": changed(lambda row: replace(row, repeat=None if row.repeat else "tag")),
    "of a type by name": changed(lambda row: replace(row, is_named="Oid" if row.named_type != "Oid" else "Epoch")),
    "with other bits": changed(lambda row: replace(row, bits={**row.bits, 64: "spare"})),
    "with other values": changed(_with_other_values),
    "explained otherwise": replaced(doc="Something else."),
    "with another note": replaced(note="Something else."),
}
"""What can be done to a row. Not all of it would load; a comparison has to see it all the same."""
