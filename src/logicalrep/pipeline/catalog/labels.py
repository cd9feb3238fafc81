"""The labels of enum types in rows: one that is not known may have been renamed since, which the server does not send.

A known label has the same row of the catalog as before, else the table is loaded. A new one is proven by a state of the
catalog that has the row's transaction: it has the label, and no other new one can have had that name before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from logicalrep.arrow.changes.change_batch import NEW, OLD, ChangeBatch
from logicalrep.pipeline.catalog.definitions import CatalogTable
from logicalrep.pipeline.errors import NeedsResync
from logicalrep.pipeline.schema.table_facts import TypePart
from logicalrep.pipeline.schema.table_spec import TableSpec

_BOUNDS = re.compile(r"^(\[-?\d+:-?\d+\])+=")
_DELIMITERS = re.compile(r"[{}()\[\],]+")
_PLAIN = re.compile(r"[\w-]+")
_NOT_LABELS = {"", "NULL", "empty"}


def unknown_labels(table: TableSpec, changes: Sequence[ChangeBatch]) -> Mapping[int, set[str]]:
    """Return the labels in changes that a table's description does not have, by the enum types' OIDs."""
    names = dict(zip(table.attnums, table.relation.names, strict=True))
    found: dict[int, set[str]] = {}
    for number, type_id, nesting in table.evidence.labelled:
        name = names.get(number)
        if name is None or name in table.settings.protected:
            continue
        known = {str(part.label) for part in _labels(table.type_parts, type_id)}
        if nesting and not _can_be_told(nesting, known):
            continue
        texts = {*_texts(changes, name)}
        if nesting:
            texts = {label for text in texts for label in _DELIMITERS.split(_BOUNDS.sub("", text))} - _NOT_LABELS
        if texts - known:
            found.setdefault(type_id, set()).update(texts - known)
    return found


def proven_labels(table: TableSpec, now: CatalogTable, unknown: Mapping[int, set[str]]) -> tuple[TypePart, ...]:
    """Return the catalog's labels for unknown ones. Raises NeedsResync if one may have had another name in the rows."""
    found: list[TypePart] = []
    for type_id, texts in unknown.items():
        known = {part.number for part in _labels(table.type_parts, type_id)}
        new = {part.label: part for part in _labels(now.table.type_parts, type_id) if part.number not in known}
        if not texts <= new.keys():
            raise NeedsResync("a label of an enum type was renamed since its rows were written")
        added = [part for part in new.values() if part[:2] not in now.original_labels]
        if len(added) > 1 and any(new[text] in added for text in texts):
            raise NeedsResync("several labels of an enum type were added at once, and one may have been renamed")
        found += (new[text] for text in sorted(texts))
    return tuple(found)


def has_new_label_that_rows_hide(before: TableSpec, after: TableSpec) -> bool:
    """Return whether a type has a new label, and rows cannot be searched for what it was called before."""
    for number, type_id, nesting in after.evidence.labelled:
        earlier, later = (_labels(table.type_parts, type_id) for table in (before, after))
        is_new = bool(earlier) and {part.number for part in later} != {part.number for part in earlier}
        labels = {str(part.label) for part in (*earlier, *later)}
        if is_new and number in before.attnums and nesting and not _can_be_told(nesting, labels):
            return True
    return False


def _can_be_told(nesting: int, labels: set[str]) -> bool:
    """Return whether labels can be told in texts of lists and ranges; in those of composite types they cannot."""
    return nesting == 1 and all(_PLAIN.fullmatch(label) and label not in _NOT_LABELS for label in labels)


def _labels(parts: tuple[TypePart, ...], type_id: int) -> list[TypePart]:
    return [part for part in parts if part.type_id == type_id and part.label is not None]


def _texts(changes: Sequence[ChangeBatch], name: str) -> Iterator[str]:
    """Yield the different values of a column."""
    for batch in changes:
        if name in batch.relation.names:
            at = batch.relation.names.index(name)
            for prefix in (OLD, NEW):
                yield from (text for text in batch.texts(prefix)[at].unique().to_pylist() if text is not None)
