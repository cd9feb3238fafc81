"""Edits of a loaded spec, row by row: the layouts of a protocol one at a time, and what can be done to each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from codegen.spec.model import Field, Message, Part, Protocol, parts_used
from codegen.spec.notation import Byte1, Int, PartName, String

Rows = tuple[Field, ...]


@dataclass(frozen=True)
class RowOf:
    """A row, by the name of its message, part or alternative and its index there."""

    layout: str
    index: int
    subject: str

    def edited(self, protocol: Protocol, edit: Callable[[Rows, int], Rows]) -> Protocol:
        """The protocol with the rows of that layout replaced."""

        def rows(name: str, fields: Rows) -> Rows:
            return edit(fields, self.index) if name == self.layout else fields

        return replace(
            protocol,
            messages=tuple(replace(item, fields=rows(item.name, item.fields)) for item in protocol.messages),
            parts=tuple(
                replace(
                    part,
                    fields=rows(part.name, part.fields),
                    alternatives=tuple(replace(one, fields=rows(one.name, one.fields)) for one in part.alternatives),
                )
                for part in protocol.parts
            ),
        )


def rows_of(protocol: Protocol) -> Iterator[RowOf]:
    """Every row of a protocol."""
    for message in protocol.messages:
        for index, row in enumerate(message.fields):
            yield RowOf(message.name, index, f"{message.name}.{row.name}")
    for part in protocol.parts:
        for index, row in enumerate(part.fields):
            yield RowOf(part.name, index, f"{part.name}.{row.name}")
        for one in part.alternatives:
            for index, row in enumerate(one.fields):
                yield RowOf(one.name, index, f"{part.name}.{one.name}.{row.name}")


def alone(protocol: Protocol, layout: str) -> Protocol:
    """The protocol with one message only, that which has or contains the layout: enough to compare rows, and quick."""
    for message in protocol.messages:
        parts = _parts(protocol, message)
        names = {message.name, *(part.name for part in parts)}
        names |= {one.name for part in parts for one in part.alternatives}
        if layout in names:
            return replace(protocol, messages=(message,), parts=tuple(parts))
    raise KeyError(layout)


def _parts(protocol: Protocol, layout: Message | Part) -> list[Part]:
    found: list[Part] = []
    for name in parts_used(layout.fields):
        part = protocol.part(name)
        found += [part, *_parts(protocol, part)]
    return found


def _one(change: Callable[[Field], Field | None]) -> Callable[[Rows, int], Rows]:
    def edit(rows: Rows, index: int) -> Rows:
        changed = change(rows[index])
        return (*rows[:index], *([] if changed is None else [changed]), *rows[index + 1 :])

    return edit


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
    return replace(row, type=Int("Int8"), values={**row.values, "?": "spare"}, boolean=False)


def _swapped(rows: Rows, index: int) -> Rows:
    other = index + 1 if index + 1 < len(rows) else index - 1
    swapped = list(rows)
    swapped[index], swapped[other] = swapped[other], swapped[index]
    return tuple(swapped)


EDITS: dict[str, Callable[[Rows, int], Rows]] = {
    "renamed": _renamed,
    "of another type": _one(_other_type),
    "gone": _one(lambda row: None),
    "swapped with its neighbour": _swapped,
    "since the newest version": _one(lambda row: replace(row, since=4)),
    "under another condition": _one(lambda row: replace(row, when=None if row.when == "streaming" else "streaming")),
    "refusing zero or not": _one(lambda row: replace(row, nonzero=not row.nonzero)),
    "optional or not": _one(lambda row: replace(row, optional=not row.optional)),
    "of another size": _one(lambda row: replace(row, size=None if row.size else "rest")),
    "repeated or not": _one(lambda row: replace(row, repeat=None if row.repeat else "tag")),
    "of a type by name": _one(lambda row: replace(row, is_named="Oid" if row.named_type != "Oid" else "Epoch")),
    "with other bits": _one(lambda row: replace(row, bits={**row.bits, 64: "spare"})),
    "with other values": _one(_with_other_values),
    "explained otherwise": _one(lambda row: replace(row, doc="Something else.")),
    "with another note": _one(lambda row: replace(row, note="Something else.")),
}
"""What can be done to a row. Not all of it would load; a comparison has to see it all the same."""
