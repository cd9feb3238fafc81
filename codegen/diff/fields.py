"""The content of a row, on one line and by attribute. Two notations of the same bytes are equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from codegen.diff.owners import Owner
from codegen.lowering.rows import annotation_of
from codegen.model.layouts import Alternative, Field, Message, NamedType, Part, attributes
from codegen.model.model import Protocol, Version
from codegen.model.notation import PartName
from codegen.model.places import Place


class Row(NamedTuple):
    """A row with its protocol and owner."""

    protocol: Protocol
    owner: Owner
    row: Field
    counterpart: str = ""
    """The key of the other side's row, if the rows differ in their last version alone; empty for the own key."""

    @property
    def name(self) -> str:
        """The row's name, unique among rows of the same name."""
        return self.counterpart or self.row.key

    @property
    def place(self) -> Place:
        return self.row.place

    @property
    def named_type(self) -> NamedType | None:
        """The named type of an integer."""
        return self.protocol.types.get(self.row.named_type or "")

    @property
    def tag_of(self) -> str:
        """ "message" or "alternative" if the row is the tag of one, else ""."""
        is_tag = self.row is self.owner.fields[0] and not isinstance(self.owner, Part)
        return type(self.owner).__name__.lower() if is_tag else ""


def type_text(row: Field) -> str:
    """Return a row's type and its named type."""
    return str(row.type) + (f", is {row.is_named}" if row.is_named is not None else "")


def row_text(row: Field, owner: Owner) -> str:
    """Return a row without its name: `Int64 (XLogRecPtr), since 4, when parallel`.

    Omits `since` if it equals the layout's.
    """
    return ", ".join([str(row.type), *_modifiers(row, owner.since)])


def _modifiers(row: Field, since: int) -> Iterator[str]:
    if row.since > since:
        yield f"since {row.since}"
    for key, name in (("when", row.when), ("size", row.size), ("repeat", row.repeat), ("is", row.is_named)):
        if name is not None:
            yield f"{key} {name}"
    for key, is_set in (("optional", row.optional), ("nonzero", row.nonzero), ("boolean", row.boolean)):
        if is_set:
            yield key
    for key, names in (("bits", row.bits), ("values", row.values)):
        if names:
            yield f"{key} " + " ".join(f"{value}={name}" for value, name in names.items())


def _type(row: Row) -> tuple[object, str]:
    kind = row.row.type
    same = kind.name if isinstance(kind, PartName) else row.row.width or type(kind)
    return same, row_text(row.row, row.owner)


def _accepts(row: Row) -> tuple[object, str]:
    """Return the legal numbers."""
    of_type = tuple(row.named_type.values) if row.named_type and not row.row.constants else ()
    legal = (0, 1) if row.row.boolean else row.row.legal or of_type
    numbers = frozenset((0, 1) if row.row.boolean else row.row.codes or row.row.legal or of_type)
    shown = " or ".join(f"'{value}'" if isinstance(value, str) else str(value) for value in legal) or "anything"
    return (numbers, row.row.nonzero, row.row.any_character), shown + (" but zero" if row.row.nonzero else "")


def _sign(row: Row) -> tuple[object, str]:
    signed = row.protocol.signed(row.row)
    return signed, f"{'signed' if signed else 'unsigned'} ({type_text(row.row)})"


def _condition(row: Row) -> tuple[object, str]:
    text = "optionally" if row.row.optional else "always"
    text = text if row.row.when is None else f"when {row.row.when}"
    return (row.row.when, row.row.optional), text


def _python(row: Row) -> tuple[object, str]:
    """Return the annotation of a row's attribute; None for constants, sizes and counts."""
    if row.row not in attributes(row.owner.fields):
        return None, "no attribute"
    text = annotation_of(row.protocol.types, row.row)
    text += " | None" if row.row.optional or row.row.when is not None else ""
    return text, text


def _epoch(row: Row) -> tuple[object, str]:
    """Return the number that Arrow counts as zero of the row's type."""
    epoch = row.named_type.epoch if row.named_type else 0
    return epoch, str(epoch)


def _notation(row: Row) -> tuple[object, str]:
    return type_text(row.row), type_text(row.row)


def _column(row: Row) -> tuple[object, str]:
    return row.row.column, row.row.column


_READ: Mapping[str, Callable[[Row], tuple[object, str]]] = {
    "type": _type,
    "accepts": _accepts,
    "sign": _sign,
    "condition": _condition,
    "python": _python,
    "epoch": _epoch,
    "batch_column": _column,
    "notation": _notation,
}


def read(attribute: str, thing: Any) -> tuple[object, str]:
    """Return the compared value of an attribute, and its text in a finding; None and "" for an absent one."""
    if isinstance(thing, Row):
        if attribute in _READ:
            return _READ[attribute](thing)
        thing = thing.row
    value = getattr(thing, attribute, None)
    if isinstance(value, tuple):
        return set(value), ", ".join(value)
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return value, "" if value is None else shown


def entries_unlike(entries: Mapping[Any, Any], other: Mapping[Any, Any]) -> str:
    """Return the entries that another mapping lacks or has otherwise: `LATIN2: iso8859-2`."""
    return ", ".join(f"{key}: {value}" for key, value in entries.items() if other.get(key) != value)


def name_of(thing: Any) -> str:
    """Return a thing's name; a version's number."""
    return str(thing.number if isinstance(thing, Version) else thing.name)


def names_in(attribute: str, thing: Any) -> list[str]:
    """Return the names of an attribute's elements."""
    thing = thing.row if isinstance(thing, Row) else thing
    return [str(entry) if isinstance(entry, str | int) else name_of(entry) for entry in getattr(thing, attribute, ())]


def described(thing: Any) -> str:
    """Return the end of a finding on an added or removed thing."""
    if isinstance(thing, Row):
        return f": {row_text(thing.row, thing.owner)}"
    if isinstance(thing, NamedType):
        return f": {thing.base}, {'signed' if thing.signed else 'unsigned'}, {thing.python} in Python"
    if isinstance(thing, Version):
        return f", of PostgreSQL {thing.server} and later: {thing.doc}"
    if isinstance(thing, Message | Alternative):
        return f", with the tag '{thing.tag}': {thing.doc}"
    return f": {thing.doc}"


def bytes_of(row: Row) -> tuple[object, ...]:
    """Return everything that decides the legal bytes and their meaning, except the version."""
    attributes = ("type", "accepts", "sign", "condition", "size", "repeat")
    return tuple(read(attribute, row)[0] for attribute in attributes)
