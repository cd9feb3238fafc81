"""The proof of unknown enum labels in rows: PostgreSQL sends no renaming of a label.

The table is reloaded unless the catalog rows of known labels are unchanged. A state of the catalog that includes the
row's transaction proves a new label if no other new label can have had the name.
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
    names = dict(zip(table.attnums, table.relation.names, strict=True))
    unknown: dict[int, set[str]] = {}
    for number, type_id, nesting in table.evidence.labelled:
        name = names.get(number)
        if name is None or name in table.settings.protected:
            continue
        known_labels = {str(part.label) for part in _labels(table.type_parts, type_id)}
        if nesting and not _can_be_split(nesting, known_labels):
            continue
        texts = {*_distinct_texts(changes, name)}
        if nesting:
            texts = {label for text in texts for label in _DELIMITERS.split(_BOUNDS.sub("", text))} - _NOT_LABELS
        if texts - known_labels:
            unknown.setdefault(type_id, set()).update(texts - known_labels)
    return unknown


def proven_labels(
    table: TableSpec, catalog_table: CatalogTable, unknown: Mapping[int, set[str]]
) -> tuple[TypePart, ...]:
    """Return the catalog's entries of unknown labels. Raises NeedsResync if a label may have been renamed."""
    proven_parts: list[TypePart] = []
    for type_id, texts in unknown.items():
        known_numbers = {part.number for part in _labels(table.type_parts, type_id)}
        new = {
            part.label: part
            for part in _labels(catalog_table.table.type_parts, type_id)
            if part.number not in known_numbers
        }
        if not texts <= new.keys():
            raise NeedsResync("a label of an enum type was renamed after its rows were written")
        added = [part for part in new.values() if part[:2] not in catalog_table.original_labels]
        if len(added) > 1 and any(new[text] in added for text in texts):
            raise NeedsResync("several labels of an enum type were added at once, and may have been renamed")
        proven_parts += (new[text] for text in sorted(texts))
    return tuple(proven_parts)


def has_unsearchable_new_label(previous_spec: TableSpec, current_spec: TableSpec) -> bool:
    """Return whether a type has a new label, and its labels cannot be found within the rows' texts."""
    for number, type_id, nesting in current_spec.evidence.labelled:
        previous_labels, current_labels = (
            _labels(table.type_parts, type_id) for table in (previous_spec, current_spec)
        )
        is_new = bool(previous_labels) and {part.number for part in current_labels} != {
            part.number for part in previous_labels
        }
        labels = {str(part.label) for part in (*previous_labels, *current_labels)}
        if is_new and number in previous_spec.attnums and nesting and not _can_be_split(nesting, labels):
            return True
    return False


def _can_be_split(nesting: int, labels: set[str]) -> bool:
    return nesting == 1 and all(_PLAIN.fullmatch(label) and label not in _NOT_LABELS for label in labels)


def _labels(parts: tuple[TypePart, ...], type_id: int) -> list[TypePart]:
    return [part for part in parts if part.type_id == type_id and part.label is not None]


def _distinct_texts(changes: Sequence[ChangeBatch], name: str) -> Iterator[str]:
    for batch in changes:
        if name in batch.relation.names:
            ordinal = batch.relation.names.index(name)
            for prefix in (OLD, NEW):
                yield from (text for text in batch.texts(prefix)[ordinal].unique().to_pylist() if text is not None)
