"""Fixes of wrong rows that a test can revert one at a time: the search must find each defect again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from logicalrep.arrow.changes.change_batch import ChangeBatch
from logicalrep.arrow.changes.sent_relation import SentRelation
from logicalrep.pipeline.catalog import catalog, definitions, evolution, matching, partitions, proof, runs
from logicalrep.pipeline.catalog.catalog import Catalog
from logicalrep.pipeline.catalog.definitions import CatalogTable
from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.tables import differences, failures
from logicalrep.pipeline.tables import writer as table_writer
from logicalrep.pipeline.tables.differences import Differences
from logicalrep.pipeline.tables.table import Table
from logicalrep.pipeline.tables.writer import TableWriter
from logicalrep.postgres.visibility import Visibility
from logicalrep.transactions.tags import INSERT
from logicalrep_protocol.v1 import ReplicaIdentity

Mutation = Callable[[pytest.MonkeyPatch], None]


def _returns(target: object, name: str, value: Any) -> Mutation:
    return lambda patch: patch.setattr(target, name, lambda *_, **__: value)


def _in_text(target: Any, name: str, *replaced: tuple[str, str]) -> Mutation:
    """Return a mutation of a query."""

    def mutate(patch: pytest.MonkeyPatch) -> None:
        text = getattr(target, name)
        for old, after in replaced:
            assert old in text
            text = text.replace(old, after)
        patch.setattr(target, name, text)

    return mutate


def _read_by_names(patch: pytest.MonkeyPatch) -> None:
    def match_columns(spec: TableSpec, catalog_table: CatalogTable, relation: SentRelation) -> tuple[int, ...] | None:
        numbers = {name: number for table in (spec, catalog_table.table) for number, name, *_ in table.evidence.columns}
        attnums = tuple(numbers[name] for name, *_ in relation.columns if name in numbers)
        return attnums if len(attnums) == len(relation.columns) else None

    patch.setattr(proof, "match_columns", match_columns)


def _first_reading(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(matching, "sum", lambda numbers: min(1, sum(numbers)), raising=False)
    ways = matching.Matches
    patch.setattr(matching, "Matches", lambda _, numbers: ways(1, numbers))


def _key_of_before(patch: pytest.MonkeyPatch) -> None:
    of_relation = matching.proven_key

    def key(previous: TableSpec, after: TableSpec, relation: SentRelation, numbers: dict[str, int]) -> Any:
        if relation.replica_identity == ReplicaIdentity.FULL.value:
            return matching.key_numbers(previous)
        return of_relation(previous, after, relation, numbers)

    patch.setattr(proof, "proven_key", key)


def _any_publication(patch: pytest.MonkeyPatch) -> None:
    reason = proof.reason_to_load

    def reason_to_load(previous: TableSpec, current: CatalogTable, *more: Any) -> str | None:
        after = current.table
        evidence = replace(previous.evidence, published=after.evidence.published)
        return reason(replace(previous, published=after.published, evidence=evidence), current, *more)

    for module in (proof, differences, failures, table_writer):
        patch.setattr(module, "reason_to_load", reason_to_load)


def _halves_of_transactions(patch: pytest.MonkeyPatch) -> None:
    def runs_with_halves(
        previous: TableSpec, described: Sequence[tuple[SentRelation, TableSpec]], changes: Sequence[ChangeBatch]
    ) -> list[tuple[TableSpec, list[ChangeBatch]]]:
        places = [place for batch in changes for place in zip(batch.lsns, batch.ordinals, strict=True)]
        bounds = [(0, previous)]
        for relation, table in described:
            if not runs.is_same_shape(bounds[-1][1], table):
                bounds.append((sum(at < (relation.commit_lsn, relation.ordinal) for at in places), table))
        ends = [*(start for start, _ in bounds[1:]), len(places)]
        return [(of, [*runs.slices(changes, at, end)]) for (at, of), end in zip(bounds, ends, strict=True)]

    patch.setattr(table_writer, "runs", runs_with_halves)


def _texts_by_type_of_arrow(patch: pytest.MonkeyPatch) -> None:
    def keeps(previous: TableSpec, source: Any, table: TableSpec, column: Any) -> bool:
        return bool(column.type == source.type) or evolution.is_wider(source, column.type)

    patch.setattr(evolution, "keeps_texts", keeps)


def _all_born(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(partitions, "query_created_partitions", lambda _, oids: set(oids))


def _nulls_for_unsent_values(patch: pytest.MonkeyPatch) -> None:
    unsent = ChangeBatch.unsent

    def unsent_in_updates(batch: ChangeBatch) -> Any:
        return unsent(batch) & (batch.ops != INSERT)[:, None]

    patch.setattr(ChangeBatch, "unsent", unsent_in_updates)


def _no_missing_values(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(definitions, "missing_columns", lambda _, files: {top: {} for top in files})


def _told_by_names(patch: pytest.MonkeyPatch) -> None:
    """Take out all that tells another table of a name: its number, its entry of the publication and its file."""
    take, open_table = Differences.take, TableWriter.open
    patch.setattr(
        Differences,
        "take",
        lambda self, table, current, at, is_another: take(self, table, current, at, is_another=False),
    )

    def opened(writer: TableWriter, table: Table) -> tuple[StoredTable | None, str | None]:
        stored, reason = open_table(writer, table)
        if stored is not None:
            stored.table = replace(stored.table, relation=replace(stored.table.relation, relation_id=table.oid))
        return stored, reason

    patch.setattr(TableWriter, "open", opened)
    _returns(proof, "_partition_reason", None)(patch)
    _any_publication(patch)


def _nulls_for_unchanged_values(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ChangeBatch, "unsent", lambda batch: np.zeros((batch.num_rows, len(batch.relation.names)), bool))


MUTATIONS: dict[str, Mutation] = {
    "columns are told by their names": _read_by_names,
    "the first of several readings is taken": _first_reading,
    "a column that was not published before is taken": _returns(proof, "_column_reason", None),
    "the key of before is taken with REPLICA IDENTITY FULL": _key_of_before,
    "new files are not noticed": _returns(proof, "_file_reason", None),
    "TRUNCATE explains each new file": _in_text(
        definitions,
        "_WRITTEN",
        ("columns.count, columns.sum, columns.max, defaults.count, defaults.sum, defaults.max", "1"),
    ),
    "a table that was unlogged is not noticed": _in_text(definitions, "_LOGGED", ("|| reltoastrelid", "")),
    "a partition that goes is not noticed": _returns(proof, "_partition_reason", None),
    "a partition that goes and comes is not noticed": _in_text(definitions, "_PARTS", ("link.xmin::text", "'1'")),
    "a partition that comes and goes is not noticed": lambda patch: patch.setattr(
        table_writer, "with_filled_partitions", lambda table, relations: table
    ),
    "a partition that is emptied where it is made is not noticed": _returns(Catalog, "prove_rows_stayed", None),
    "each new partition counts as made as one": _all_born,
    "a partition is made as one if a transaction attached it": _in_text(
        partitions, "_CREATED", ("AND attribute.cmin = type.cmin", ""), ("AND attribute.xmax = '0'::xid", "")
    ),
    "other texts of types are not noticed": _returns(proof, "_are_stored_texts_valid", True),
    "a label that is renamed and renamed back is not noticed": _in_text(
        definitions, "_TYPE_PARTS", ("enum.xmin::text::bigint", "1::bigint")
    ),
    "an attribute that comes and goes is not noticed": _in_text(
        definitions, "_TYPE_PARTS", ("NULL, relnatts", "NULL, 1")
    ),
    "labels that are not known are taken": _returns(table_writer, "unknown_labels", {}),
    "new labels within other types are taken": _returns(proof, "has_unsearchable_new_label", False),
    "values are taken as texts of another type": _texts_by_type_of_arrow,
    "another publication is not noticed": _any_publication,
    "a refresh counts that is too early": _returns(catalog, "query_visibility", Visibility(1 << 30, frozenset())),
    "a transaction comes in halves": _halves_of_transactions,
    "a value that an inserted row lacks is NULL": _nulls_for_unsent_values,
    "old rows have NULL in each new column": _no_missing_values,
    "an unchanged large value is NULL": _nulls_for_unchanged_values,
    "another table of a name is not noticed": _told_by_names,
}
"""Each takes one mend out."""

__all__ = ["MUTATIONS"]
