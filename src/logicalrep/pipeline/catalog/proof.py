"""The one decision on a table whose description may be another one: its rows are followed, or it is loaded again.

The server sends nothing for a statement such as ALTER TABLE. It sends a Relation message again before the table's next
row, with the columns' names and types, and the catalog tells their numbers, which are never used twice. *Before* is the
last description that rows were proven under. What is not proven from these three is a reason to load the table again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from logicalrep.arrow.changes.sent_relation import SentRelation
from logicalrep.pipeline.catalog.definitions import CatalogTable
from logicalrep.pipeline.catalog.labels import has_new_label_that_rows_hide
from logicalrep.pipeline.errors import NeedsResync, NotProvenYetError
from logicalrep.pipeline.schema.table_facts import TypePart
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.values import TypeCatalog
from logicalrep_protocol import v1
from logicalrep_protocol.v1 import ReplicaIdentity
from logicalrep_runtime.scalars import Oid

ATTACHED = "a partition with rows was attached"
"""The reason to load a partition, or all of a table without a key."""
MAY_BE_UNLOGGED = "it has another file, and may have been unlogged for a while, in which its changes are not sent"
"""The reason to load a table whose file changed, and which the publication does not name."""


def reason_to_load(before: TableSpec, now: CatalogTable, copied: Collection[int] = ()) -> str | None:
    """Return why a table has to be loaded again, whatever its rows say; None if nothing in the catalog demands it.

    Args:
        before: the last description that rows were proven under.
        now: the table as the catalog describes it.
        copied: the OIDs of partitions that were copied, which have to be there.
    """
    after = now.table
    if (before.published, before.evidence.published) != (after.published, after.evidence.published):
        return "its publication changed"
    if not _texts_stay(before.type_parts, after.type_parts):
        return "a label of an enum type, or the attributes of a composite type, changed"
    if has_new_label_that_rows_hide(before, after):
        return "a label of an enum type was added that is used within other types"
    if any(not text.is_money for text in now.changing_texts):
        return "a column has names of other objects"
    if now.changing_texts and before.evidence.lc_monetary != after.evidence.lc_monetary:
        return "lc_monetary changed, and with it the texts of money"
    if before.protected != after.protected:
        return "a column that is masked or left out changed"
    if before.settings.key and before.key != after.key:
        return "the key that its settings give it changed"
    return _of_partitions(before, after, copied) or _of_files(before, after) or _of_columns(before, after)


def _of_partitions(before: TableSpec, after: TableSpec, copied: Collection[int]) -> str | None:
    if {oid for oid, _ in before.files}.union(copied, before.evidence.filled) - {oid for oid, _ in after.files}:
        return "a partition was dropped or detached"
    links = {link[0]: link for link in before.evidence.links}
    if any(links.get(link[0], link) != link for link in after.evidence.links):
        return "a partition was detached and attached again"
    return None


def _of_files(before: TableSpec, after: TableSpec) -> str | None:
    """Return why rows may be others without a change of theirs: TRUNCATE is sent, but for a partition alone."""
    of_before = dict(before.files)
    earlier, later = before.evidence, after.evidence
    for oid, file in after.files:
        # The first file of a new partition has the number that is its OID.
        if of_before.get(oid, oid) == file:
            continue
        if oid != after.relation.relation_id:
            return "a partition was truncated, or the server rewrote it"
        # TRUNCATE and VACUUM FULL write another row of the catalog than statements that change values.
        if dict(earlier.written).get(oid) != dict(later.written)[oid]:
            return "the server rewrote it"
        if not {*earlier.logged} & {*later.logged}:
            return MAY_BE_UNLOGGED
    return None


def _of_columns(before: TableSpec, after: TableSpec) -> str | None:
    earlier, later = before.evidence, after.evidence
    if before.protected:
        is_same = earlier.columns == later.columns
        return None if is_same else "columns of a table that has masked or left out columns changed"
    earlier_numbers = {number for number, *_ in earlier.columns}
    if any(number not in earlier_numbers and number <= earlier.numbers for number, *_ in later.columns):
        return "a column is published now that was not before, and rows have values in it"
    return None


def _texts_stay(before: Collection[TypePart], now: Collection[TypePart]) -> bool:
    """Return whether values of types that had these parts have the same texts with those of now, and had meanwhile."""
    of_both = {part.type_id for part in before} & {part.type_id for part in now}
    earlier, later = ({part[:2]: part for part in parts if part.type_id in of_both} for parts in (before, now))
    for identity, part in earlier.items():
        later_part = later.get(identity)
        if later_part is None or later_part.label != part.label:
            return False
        # An attribute's name is in no text.
        if part.written != later_part.written and (part.label is not None or not part.number):
            return False
    # A new label is in no text yet; a new attribute is in the text of each value.
    return all(part.label is not None or not part.number for identity, part in later.items() if identity not in earlier)


def proven(
    before: TableSpec, now: CatalogTable, relations: Sequence[SentRelation]
) -> list[tuple[SentRelation, TableSpec]]:
    """Return the description of the rows behind each Relation message.

    Args:
        before: the last description that rows were proven under.
        now: the table as the catalog describes it, in a state that has the transactions of the messages.
        relations: the messages since, in their order.

    Raises:
        NeedsResync: what a row's columns are is not proven.
        NotProvenYetError: rows were sent as those of another table, of which this one is a partition now.
    """
    reason = reason_to_load(before, now)
    if reason is None and any(relation.sent_as is not None for relation in relations):
        if now.is_partition:
            # The next refresh finds that it is not published any more, or no partition.
            raise NotProvenYetError
        reason = "it was a partition for a while, and its rows were sent as those of another table"
    if reason is not None:
        raise NeedsResync(reason)
    # Those with a partition are there without it too.
    return [(relation, _described(before, now, relation)) for relation in relations if relation.partition is None]


def latest(before: TableSpec, now: CatalogTable) -> TableSpec:
    """Return the description of now, for a table that has all rows from before it."""
    table = replace(
        now.table,
        settings=before.settings,
        companion=before.companion,
        dropped_columns=before.dropped_columns,
        skipped=before.skipped,
        partitions=before.partitions,
    )
    return table.with_texts(before.texts)


def with_partitions_of(table: TableSpec, before: TableSpec) -> TableSpec:
    """Return a description with the partitions of an earlier one, in whose rows those of later partitions are not."""
    earlier = before.evidence
    evidence = replace(table.evidence, written=earlier.written, links=earlier.links, filled=earlier.filled)
    return replace(table, files=before.files, evidence=evidence)


def first_messages(table: TableSpec, relations: Sequence[SentRelation]) -> dict[int, SentRelation]:
    """Return the first message of each partition that a description does not have, by the partitions' OIDs.

    A table that is not partitioned has a file of its own; what is described after it is another table.
    """
    files, found = dict(table.files), dict[int, SentRelation]()
    for relation in relations if table.relation.relation_id not in files else ():
        if relation.partition is not None and relation.partition not in files:
            found.setdefault(relation.partition, relation)
    return found


def with_filled_partitions(table: TableSpec, partitions: Collection[int]) -> TableSpec:
    """Return a description that notes partitions which rows are sent of; itself if it does so."""
    evidence = table.evidence
    if {*partitions} <= {*evidence.filled}:
        return table
    return replace(table, evidence=replace(evidence, filled=tuple(sorted({*partitions, *evidence.filled}))))


def _described(before: TableSpec, now: CatalogTable, relation: SentRelation) -> TableSpec:
    after = now.table
    if before.protected:
        sent = after.evidence.columns
        is_same = relation.columns == tuple(column[1:] for column in sent) and before.key == after.key
        if not is_same or before.relation.replica_identity.value != relation.replica_identity:
            raise NeedsResync("columns or the key of a table that has masked or left out columns changed")
        if key_of(before, now, relation, {name: number for number, name, *_ in sent}) != numbers_of_key(before):
            raise NeedsResync("the key of a table that has masked or left out columns was another one for a while")
        return before
    numbers = reading(before, now, relation)
    if numbers is None:
        raise NeedsResync("the catalog no longer shows how its columns changed")
    key = key_of(before, now, relation, dict(zip((name for name, *_ in relation.columns), numbers, strict=True)))
    names = {number: name for number, (name, *_) in zip(numbers, relation.columns, strict=True)}
    if key is not None and not names.keys() >= set(key):
        raise NeedsResync("its key changed, and the catalog no longer shows the key that its rows were sent with")
    types = {
        (number, int(column.type_id)): type_
        for table in (before, after)
        for number, column, type_ in zip(table.attnums, table.relation.columns, table.relation.types, strict=True)
    }
    columns = [(number, *column) for number, column in zip(numbers, relation.columns, strict=True)]
    if any((number, type_id) not in types for number, _, type_id, _ in columns):
        raise NeedsResync("for a while a column had a type that the catalog no longer shows")
    same = _unwritten(before, after)
    return replace(
        before,
        relation=replace(
            before.relation,
            replica_identity=ReplicaIdentity(relation.replica_identity),
            columns=tuple(
                v1.Column(flags=0, name=name, type_id=Oid(type_id), type_modifier=modifier)
                for _, name, type_id, modifier in columns
            ),
            types=tuple(types[number, type_id] for number, _, type_id, _ in columns),
        ),
        catalog=TypeCatalog({**before.catalog.by_oid, **after.catalog.by_oid}),
        key=None if key is None else tuple(names[number] for number in key),
        attnums=numbers,
        type_parts=(*before.type_parts, *_parts_of_new_types(before, now)),
        evidence=replace(
            before.evidence,
            columns=tuple(columns),
            labelled=tuple({*before.evidence.labelled, *after.evidence.labelled}),
            columns_written=tuple(item for item in before.evidence.columns_written if item[0] in same),
            key_indexes=_unwritten_key_indexes(before, after),
        ),
    )


def _parts_of_new_types(before: TableSpec, now: CatalogTable) -> list[TypePart]:
    """Return the parts of types that no column had before; of their labels those that are sure to be called as then."""
    known = {part.type_id for part in before.type_parts}
    new = [part for part in now.table.type_parts if part.type_id not in known]
    return [part for part in new if part.label is None or part[:2] in now.original_labels]


class _Candidate(NamedTuple):
    """A column that a Relation message may list."""

    number: int
    is_there: bool
    """Whether each message lists it: a column lives once, and it was there before and is there now."""
    is_new: bool
    """Whether it came later, and is there now: later ones came after it."""
    is_later: bool
    """Whether it came later, whether or not it is there now."""
    state: tuple[str, int, int] | None
    """Its name and type where nothing wrote its row since; None where it may have had any."""


class Ways(NamedTuple):
    """The ways to read the first columns of a message."""

    ways: int
    """Their number, at most 2."""
    numbers: tuple[int, ...]
    """The numbers of the columns in one of them."""


def reading(before: TableSpec, now: CatalogTable, relation: SentRelation) -> tuple[int, ...] | None:
    """Return the numbers of the columns that a Relation message lists; None if there is no way, or more than one.

    The message lists columns in the order of their numbers, which are given one after another. A column whose row in
    the catalog was written since may have had any name meanwhile.

    Example: before there were `(1, "id"), (2, "v")`, now there are `(1, "id"), (3, "v")`. A message of `id, v` may have
    the first `v` or the second, and so it has no reading. A message of `id` alone has the reading `(1,)`.
    """
    # By the number of columns that are read, and by whether a later column was not there yet.
    found = {(0, False): Ways(1, ())}
    for candidate in _candidates(before, now):
        further: dict[tuple[int, bool], Ways] = {}
        for (count, is_over), so_far in found.items():
            steps = [] if candidate.is_there else [((count, is_over or candidate.is_new), so_far.numbers)]
            column = relation.columns[count] if count < len(relation.columns) else None
            is_possible = column is not None and candidate.state in (None, column)
            if is_possible and not (is_over and candidate.is_later):
                steps.append(((count + 1, is_over), (*so_far.numbers, candidate.number)))
            for end, numbers in steps:
                known = further.get(end)
                further[end] = Ways(min(so_far.ways + (known.ways if known else 0), 2), numbers)
        found = further
    ends = [each for (count, _), each in found.items() if count == len(relation.columns)]
    return ends[0].numbers if sum(each.ways for each in ends) == 1 else None


def _candidates(before: TableSpec, now: CatalogTable) -> list[_Candidate]:
    earlier, later = before.evidence.columns, now.table.evidence.columns
    highest = before.evidence.numbers
    of_before, of_now = {number for number, *_ in earlier}, {number for number, *_ in later}
    same = _unwritten(before, now.table)
    states = {number: (name, type_id, modifier) for number, name, type_id, modifier in earlier if number in same}
    # A column that came and went meanwhile.
    passed = {number for number in now.dropped if number > highest} - of_before
    return [
        _Candidate(
            number,
            is_there=number in of_before and number in of_now,
            is_new=number in of_now and number not in of_before,
            is_later=number > highest and number not in of_before,
            state=states.get(number),
        )
        for number in sorted(of_before | of_now | passed)
    ]


def has_same_columns(before: TableSpec, after: TableSpec) -> bool:
    """Return whether a table has the same columns, and nothing wrote one meanwhile."""
    earlier, later = before.evidence, after.evidence
    return (earlier.columns, earlier.columns_written) == (later.columns, later.columns_written)


def _unwritten(before: TableSpec, after: TableSpec) -> set[int]:
    """Return the numbers of the columns that nothing wrote since."""
    return {number for number, _ in {*before.evidence.columns_written} & {*after.evidence.columns_written}}


def key_of(
    before: TableSpec, now: CatalogTable, relation: SentRelation, numbers: dict[str, int]
) -> tuple[int, ...] | None:
    """Return the numbers of the key's columns; None if there is no key. Raises NeedsResync if that is not proven."""
    tables = before, now.table
    keys = [numbers_of_key(table) for table in tables]
    if relation.replica_identity == ReplicaIdentity.FULL.value:
        # The message has all columns as the key, and does not tell which of them identify a row.
        if keys[0] != keys[1]:
            raise NeedsResync("its key changed, while its replica identity is all columns")
        _prove_key_stayed(*tables)
        return keys[0]
    sent = {numbers[name] for name in relation.key}
    for key in keys:
        if key is not None and set(key) == sent:
            return key
    # An index that told rows apart may have been dropped since.
    if not sent or now.has_unsent_key:
        for table, key in zip(tables, keys, strict=True):
            if key is None and not table.has_whole_old:
                return None
    raise NeedsResync("its key changed, and the catalog no longer shows the key that its rows were sent with")


def _prove_key_stayed(before: TableSpec, after: TableSpec) -> None:
    """Raise NeedsResync if a key that is the same now may have been another one meanwhile, or have let NULL be."""
    key = numbers_of_key(before)
    if key is None:
        return
    may_be_null = before.settings.key and not {*key} <= _unwritten(before, after)
    if not _unwritten_key_indexes(before, after) or may_be_null:
        raise NeedsResync("its key may have been another one for a while, as its replica identity is all columns")


def _unwritten_key_indexes(before: TableSpec, after: TableSpec) -> tuple[tuple[int, int], ...]:
    """Return the key's indexes whose catalog rows are unchanged."""
    return tuple(index for index in before.evidence.key_indexes if index in after.evidence.key_indexes)


def numbers_of_key(table: TableSpec) -> tuple[int, ...] | None:
    if table.key is None:
        return None
    numbers = dict(zip(table.relation.names, table.attnums, strict=True))
    return tuple(numbers[name] for name in table.key)
