"""The columns and the key of a Relation message, matched with the previous description and the catalog.

The message has the names and types of the columns, but not their numbers, and marks the columns of the key. A match
that is not the only possible one proves nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from logicalrep.arrow.changes.sent_relation import SentRelation
from logicalrep.pipeline.catalog.definitions import CatalogTable
from logicalrep.pipeline.errors import NeedsResync
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep_protocol.v1 import ReplicaIdentity


class _Candidate(NamedTuple):
    """A column that a Relation message may list: of the previous description, of the catalog, or dropped in between."""

    number: int
    """The attribute number."""
    is_in_both: bool
    """Whether both descriptions have the column, so that every message lists it: a dropped column never returns."""
    is_new_and_current: bool
    """Whether the column is new and in the catalog: a message without it was sent before all later columns existed."""
    is_new: bool
    """Whether the column was added after the previous description; it may be dropped again."""
    definition: tuple[str, int, int] | None
    """The name, type and modifier of a column whose catalog row is unchanged; None if it may have had others."""


class Matches(NamedTuple):
    """The ways to match the first columns of a message."""

    total: int
    """The number of ways, counted up to 2: more than one proves nothing."""
    numbers: tuple[int, ...]
    """The attribute numbers of one of the ways."""


def match_columns(
    previous_spec: TableSpec, catalog_table: CatalogTable, relation: SentRelation
) -> tuple[int, ...] | None:
    """Return the attribute numbers of a Relation message's columns; None unless exactly one match is possible.

    A message lists columns by ascending number. A column whose catalog row changed may have had any name meanwhile.
    """
    # The key of `matches`: the number of matched columns, and whether a column that the message omits proves that the
    # message was sent before all later columns existed.
    matches = {(0, False): Matches(1, ())}
    for candidate in _candidates(previous_spec, catalog_table):
        extended: dict[tuple[int, bool], Matches] = {}
        for (count, is_older), prefix in matches.items():
            # The message omits the candidate, or its next column is the candidate.
            steps = (
                [] if candidate.is_in_both else [((count, is_older or candidate.is_new_and_current), prefix.numbers)]
            )
            column = relation.columns[count] if count < len(relation.columns) else None
            is_possible = column is not None and candidate.definition in (None, column)
            if is_possible and not (is_older and candidate.is_new):
                steps.append(((count + 1, is_older), (*prefix.numbers, candidate.number)))
            for end, numbers in steps:
                other = extended.get(end)
                extended[end] = Matches(min(prefix.total + (other.total if other else 0), 2), numbers)
        matches = extended
    complete = [match for (count, _), match in matches.items() if count == len(relation.columns)]
    return complete[0].numbers if sum(match.total for match in complete) == 1 else None


def _candidates(previous_spec: TableSpec, catalog_table: CatalogTable) -> list[_Candidate]:
    previous, current = previous_spec.evidence.columns, catalog_table.table.evidence.columns
    highest = previous_spec.evidence.numbers
    previous_numbers, current_numbers = {number for number, *_ in previous}, {number for number, *_ in current}
    unchanged = unchanged_columns(previous_spec, catalog_table.table)
    definitions = {
        number: (name, type_id, modifier) for number, name, type_id, modifier in previous if number in unchanged
    }
    # Columns that were added after the previous description, and are dropped in the catalog.
    transient_numbers = {number for number in catalog_table.dropped if number > highest} - previous_numbers
    return [
        _Candidate(
            number,
            is_in_both=number in previous_numbers and number in current_numbers,
            is_new_and_current=number in current_numbers and number not in previous_numbers,
            is_new=number > highest and number not in previous_numbers,
            definition=definitions.get(number),
        )
        for number in sorted(previous_numbers | current_numbers | transient_numbers)
    ]


def has_same_columns(previous_spec: TableSpec, current_spec: TableSpec) -> bool:
    """Return whether no column changed, not even for a while."""
    previous, current = previous_spec.evidence, current_spec.evidence
    return (previous.columns, previous.columns_written) == (current.columns, current.columns_written)


def unchanged_columns(previous_spec: TableSpec, current_spec: TableSpec) -> set[int]:
    """Return the attribute numbers of the columns whose catalog rows nothing has written in between."""
    return {
        number for number, _ in {*previous_spec.evidence.columns_written} & {*current_spec.evidence.columns_written}
    }


def proven_key(
    previous_spec: TableSpec, catalog_table: CatalogTable, relation: SentRelation, numbers: dict[str, int]
) -> tuple[int, ...] | None:
    """Return the key of the rows that follow a message, as attribute numbers; None without a key.

    `numbers` are the attribute numbers of the message's columns, by name. Raises NeedsResync if the key is not proven.
    """
    tables = previous_spec, catalog_table.table
    keys = [key_numbers(table) for table in tables]
    if relation.replica_identity == ReplicaIdentity.FULL.value:
        # With REPLICA IDENTITY FULL a message marks every column as part of the key, and so hides the key.
        if keys[0] != keys[1]:
            raise NeedsResync("its key changed, and REPLICA IDENTITY FULL hides the key of changes")
        _refuse_changed_key(*tables)
        return keys[0]
    sent = {numbers[name] for name in relation.key}
    for key in keys:
        if key is not None and set(key) == sent:
            return key
    # The message marks no key, or only a part of one: the table had none, or its unique index was dropped.
    if not sent or catalog_table.has_unsent_key:
        for table, key in zip(tables, keys, strict=True):
            if key is None and not table.has_whole_old:
                return None
    raise NeedsResync("its key changed, and the catalog no longer shows the key of its changes")


def _refuse_changed_key(previous_spec: TableSpec, current_spec: TableSpec) -> None:
    """Raise NeedsResync if the key may have been another one for a while."""
    key = key_numbers(previous_spec)
    if key is None:
        return
    may_be_null = previous_spec.settings.key and not {*key} <= unchanged_columns(previous_spec, current_spec)
    if not unchanged_key_indexes(previous_spec, current_spec) or may_be_null:
        raise NeedsResync("its key may have changed for a while, and REPLICA IDENTITY FULL hides the key of changes")


def unchanged_key_indexes(previous_spec: TableSpec, current_spec: TableSpec) -> tuple[tuple[int, int], ...]:
    return tuple(index for index in previous_spec.evidence.key_indexes if index in current_spec.evidence.key_indexes)


def key_numbers(table: TableSpec) -> tuple[int, ...] | None:
    """Return the attribute numbers of a description's key; None without a key."""
    if table.key is None:
        return None
    numbers = dict(zip(table.relation.names, table.attnums, strict=True))
    return tuple(numbers[name] for name in table.key)
