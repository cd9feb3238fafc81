"""The decision after a schema change: under which description to write the next rows, or why to reload the table.

PostgreSQL sends nothing for a statement such as ALTER TABLE. Before the table's next row it sends a Relation message
with the names and types of the columns. Only the catalog has their attribute numbers, which PostgreSQL never reuses.

The functions compare three sources:

- `previous_spec`: the last proven description, which is stored with the table;
- `catalog_table`: the table in the catalog, and `current_spec`, its description;
- `relations`: the Relation messages that PostgreSQL sent after the previous description.

If the sources allow exactly one description of the rows, it is proven. Otherwise the table is reloaded.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from logicalrep.arrow.changes.sent_relation import SentRelation
from logicalrep.pipeline.catalog.definitions import CatalogTable
from logicalrep.pipeline.catalog.labels import has_unsearchable_new_label
from logicalrep.pipeline.catalog.lost_partitions import lost_oids, lost_partitions
from logicalrep.pipeline.catalog.matching import (
    key_numbers,
    match_columns,
    proven_key,
    unchanged_columns,
    unchanged_key_indexes,
)
from logicalrep.pipeline.errors import NeedsResync, NotProvenYetError
from logicalrep.pipeline.schema.table_facts import TypePart
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.values import TypeCatalog
from logicalrep_protocol import v1
from logicalrep_protocol.v1 import ReplicaIdentity
from logicalrep_runtime.scalars import Oid

ATTACHED = "a partition with rows was attached"
DROPPED = "a partition was dropped or detached"
MAY_BE_UNLOGGED = "it has another file and may have been unlogged for a while, when PostgreSQL sends no changes"


def reason_to_load(previous_spec: TableSpec, catalog_table: CatalogTable, copied: Collection[int] = ()) -> str | None:
    """Return why the catalog requires a reload of the table; None if it does not, as for `lost_partitions` with bounds.

    `copied` are the OIDs of partitions whose rows are loaded, beside the partitions of `previous_spec`.
    """
    current_spec = catalog_table.table
    previous, current = previous_spec.evidence, current_spec.evidence
    if (previous_spec.published, previous.published) != (current_spec.published, current.published):
        return "its publication changed"
    if not _are_stored_texts_valid(previous_spec.type_parts, current_spec.type_parts):
        return "a label of an enum type, or the attributes of a composite type, changed"
    if has_unsearchable_new_label(previous_spec, current_spec):
        return "an enum type that is used within other types has a new label"
    if any(not text.is_money for text in catalog_table.changing_texts):
        return "the values of a column are names of other objects"
    if catalog_table.changing_texts and previous.lc_monetary != current.lc_monetary:
        return "lc_monetary changed, and with it the texts of money"
    if previous_spec.protected != current_spec.protected:
        return "a masked or left-out column changed"
    if previous_spec.settings.key and previous_spec.key != current_spec.key:
        return "the key in its settings changed"
    return (
        _partition_reason(previous_spec, current_spec, copied)
        or _file_reason(previous_spec, current_spec)
        or _column_reason(previous_spec, current_spec)
    )


def _partition_reason(previous_spec: TableSpec, current_spec: TableSpec, copied: Collection[int]) -> str | None:
    """Return why rows may have left the table with a partition, and no bounds show which rows."""
    if lost_partitions(previous_spec, current_spec, copied) is None:
        return DROPPED
    previous_links = {link[0]: link for link in previous_spec.evidence.links}
    if any(previous_links.get(link[0], link) != link for link in current_spec.evidence.links):
        return "a partition was detached and attached again"
    return None


def _file_reason(previous_spec: TableSpec, current_spec: TableSpec) -> str | None:
    """Return why rows may have changed unsent: PostgreSQL sends no rewrite, and no TRUNCATE of a single partition."""
    previous_files = dict(previous_spec.files)
    previous, current = previous_spec.evidence, current_spec.evidence
    for oid, file in current_spec.files:
        # The first file of a new partition has the partition's OID as its number.
        if previous_files.get(oid, oid) == file:
            continue
        if oid != current_spec.relation.relation_id:
            return "a partition was truncated, or PostgreSQL rewrote its rows"
        # A rewrite by ALTER TABLE changes pg_attribute or pg_attrdef; TRUNCATE, which is sent, and VACUUM FULL do not.
        if dict(previous.written).get(oid) != dict(current.written)[oid]:
            return "PostgreSQL rewrote its rows"
        if not {*previous.logged} & {*current.logged}:
            return MAY_BE_UNLOGGED
    return None


def _column_reason(previous_spec: TableSpec, current_spec: TableSpec) -> str | None:
    previous, current = previous_spec.evidence, current_spec.evidence
    if previous_spec.protected:
        is_same = previous.columns == current.columns
        return None if is_same else "its columns changed, and it has masked or left-out columns"
    previous_numbers = {number for number, *_ in previous.columns}
    if any(number not in previous_numbers and number <= previous.numbers for number, *_ in current.columns):
        return "the publication has another column of it, and rows have values in that column"
    return None


def _are_stored_texts_valid(previous_parts: Collection[TypePart], current_parts: Collection[TypePart]) -> bool:
    """Return whether stored texts of enum and composite types equal the server's under the current definitions."""
    common_types = {part.type_id for part in previous_parts} & {part.type_id for part in current_parts}
    previous, current = (
        {part[:2]: part for part in parts if part.type_id in common_types} for parts in (previous_parts, current_parts)
    )
    for identity, part in previous.items():
        current_part = current.get(identity)
        if current_part is None or current_part.label != part.label:
            return False
        # The text of a composite value has no attribute names, so a renamed attribute changes no text.
        if part.written != current_part.written and (part.label is not None or not part.number):
            return False
    # A new label is in no stored text. A new attribute is in the text of each value.
    return all(
        part.label is not None or not part.number for identity, part in current.items() if identity not in previous
    )


def proven_descriptions(
    previous_spec: TableSpec, catalog_table: CatalogTable, relations: Sequence[SentRelation]
) -> list[tuple[SentRelation, TableSpec]]:
    """Return each Relation message with the description of the rows that follow it.

    Raises:
        NeedsResync: a message allows no description, or more than one.
        NotProvenYetError: rows came under the name of the table's partitioned parent; a later catalog decides.
    """
    reason = reason_to_load(previous_spec, catalog_table)
    if reason is None and any(relation.sent_as is not None for relation in relations):
        if catalog_table.is_partition:
            # A later refresh decides: the table is no longer published by itself, or no longer a partition.
            raise NotProvenYetError
        reason = "it was a partition for a while, and PostgreSQL sent its rows under another table's name"
    if reason is not None:
        raise NeedsResync(reason)
    lost = lost_oids(previous_spec, catalog_table.table)
    if any(relation.partition in lost for relation in relations):
        # The partition may have had other bounds for a while, and rows within them.
        raise NeedsResync(DROPPED)
    # A message with a partition accompanies a message of the table itself, which has the description.
    return [
        (relation, _proven_description(previous_spec, catalog_table, relation))
        for relation in relations
        if relation.partition is None
    ]


def latest_description(previous_spec: TableSpec, catalog_table: CatalogTable) -> TableSpec:
    """Return the catalog's description with the copy's settings, for a copy that has all rows that precede it."""
    table = replace(
        catalog_table.table,
        settings=previous_spec.settings,
        companion=previous_spec.companion,
        dropped_columns=previous_spec.dropped_columns,
        skipped=previous_spec.skipped,
        partitions=previous_spec.partitions,
    )
    return table.with_texts(previous_spec.texts)


def with_partitions_of(table: TableSpec, previous_spec: TableSpec) -> TableSpec:
    """Return a description with the partitions of `previous_spec`: the copy lacks the rows of other partitions."""
    previous = previous_spec.evidence
    evidence = replace(
        table.evidence,
        written=previous.written,
        links=previous.links,
        bounds=previous.bounds,
        filled=previous.filled,
    )
    return replace(table, files=previous_spec.files, evidence=evidence)


def first_messages(table: TableSpec, relations: Sequence[SentRelation]) -> dict[int, SentRelation]:
    """Return the first Relation message of each partition that a partitioned table did not have before, by its OID."""
    # The OID of a table that is not partitioned is among its own files.
    files, messages = dict(table.files), dict[int, SentRelation]()
    for relation in relations if table.relation.relation_id not in files else ():
        if relation.partition is not None and relation.partition not in files:
            messages.setdefault(relation.partition, relation)
    return messages


def with_filled_partitions(table: TableSpec, partitions: Collection[int]) -> TableSpec:
    """Return a description that records the OIDs of partitions whose rows were sent; the same object if it has them."""
    evidence = table.evidence
    if {*partitions} <= {*evidence.filled}:
        return table
    return replace(table, evidence=replace(evidence, filled=tuple(sorted({*partitions, *evidence.filled}))))


def _proven_description(previous_spec: TableSpec, catalog_table: CatalogTable, relation: SentRelation) -> TableSpec:
    """Return the only description that a Relation message allows. Raises NeedsResync otherwise."""
    current_spec = catalog_table.table
    if previous_spec.protected:
        sent = current_spec.evidence.columns
        is_same = relation.columns == tuple(column[1:] for column in sent) and previous_spec.key == current_spec.key
        if not is_same or previous_spec.relation.replica_identity.value != relation.replica_identity:
            raise NeedsResync("its columns or its key changed, and it has masked or left-out columns")
        sent_numbers = {name: number for number, name, *_ in sent}
        if proven_key(previous_spec, catalog_table, relation, sent_numbers) != key_numbers(previous_spec):
            raise NeedsResync("its key changed for a while, and it has masked or left-out columns")
        return previous_spec
    numbers = match_columns(previous_spec, catalog_table, relation)
    if numbers is None:
        raise NeedsResync("the catalog no longer shows how its columns changed")
    numbers_by_name = dict(zip((name for name, *_ in relation.columns), numbers, strict=True))
    key = proven_key(previous_spec, catalog_table, relation, numbers_by_name)
    names = {number: name for number, (name, *_) in zip(numbers, relation.columns, strict=True)}
    if key is not None and not names.keys() >= set(key):
        raise NeedsResync("its key changed, and the catalog no longer shows the key of its changes")
    types = {
        (number, int(column.type_id)): type_
        for table in (previous_spec, current_spec)
        for number, column, type_ in zip(table.attnums, table.relation.columns, table.relation.types, strict=True)
    }
    columns = [(number, *column) for number, column in zip(numbers, relation.columns, strict=True)]
    if any((number, type_id) not in types for number, _, type_id, _ in columns):
        raise NeedsResync("a column had a type for a while that the catalog no longer shows")
    unchanged = unchanged_columns(previous_spec, current_spec)
    return replace(
        previous_spec,
        relation=replace(
            previous_spec.relation,
            replica_identity=ReplicaIdentity(relation.replica_identity),
            columns=tuple(
                v1.Column(flags=0, name=name, type_id=Oid(type_id), type_modifier=modifier)
                for _, name, type_id, modifier in columns
            ),
            types=tuple(types[number, type_id] for number, _, type_id, _ in columns),
        ),
        catalog=TypeCatalog({**previous_spec.catalog.by_oid, **current_spec.catalog.by_oid}),
        key=None if key is None else tuple(names[number] for number in key),
        attnums=numbers,
        type_parts=(*previous_spec.type_parts, *_parts_of_new_types(previous_spec, catalog_table)),
        evidence=replace(
            previous_spec.evidence,
            columns=tuple(columns),
            labelled=tuple({*previous_spec.evidence.labelled, *current_spec.evidence.labelled}),
            columns_written=tuple(
                writer for writer in previous_spec.evidence.columns_written if writer[0] in unchanged
            ),
            key_indexes=unchanged_key_indexes(previous_spec, current_spec),
        ),
    )


def _parts_of_new_types(previous_spec: TableSpec, catalog_table: CatalogTable) -> list[TypePart]:
    """Return the parts of types that the table did not use before; of enum types, only the original labels."""
    known_types = {part.type_id for part in previous_spec.type_parts}
    new_parts = [part for part in catalog_table.table.type_parts if part.type_id not in known_types]
    return [part for part in new_parts if part.label is None or part[:2] in catalog_table.original_labels]
