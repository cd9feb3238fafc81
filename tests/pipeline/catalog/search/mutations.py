"""Mends of wrong rows, each of which can be taken out again: the search has to find what is wrong without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from logicalrep.arrow.changes.sent_relation import SentRelation
from logicalrep.pipeline import failures, table_writer
from logicalrep.pipeline.catalog import definitions, evolution, partitions, proof
from logicalrep.pipeline.catalog.definitions import CatalogTable
from logicalrep.pipeline.load import differences
from logicalrep.pipeline.spec.table_spec import TableSpec

Mutation = Callable[[pytest.MonkeyPatch], None]


def _returns(target: object, name: str, value: Any) -> Mutation:
    return lambda patch: patch.setattr(target, name, lambda *_, **__: value)


def _in_text(target: Any, name: str, *replaced: tuple[str, str]) -> Mutation:
    """Return a mutation of a query."""

    def mutate(patch: pytest.MonkeyPatch) -> None:
        text = getattr(target, name)
        for before, after in replaced:
            assert before in text
            text = text.replace(before, after)
        patch.setattr(target, name, text)

    return mutate


def _read_by_names(patch: pytest.MonkeyPatch) -> None:
    def reading(before: TableSpec, now: CatalogTable, relation: SentRelation) -> tuple[int, ...] | None:
        numbers = {name: number for table in (before, now.table) for number, name, *_ in table.sent_columns or ()}
        found = tuple(numbers[name] for name, *_ in relation.columns if name in numbers)
        return found if len(found) == len(relation.columns) else None

    patch.setattr(proof, "reading", reading)


def _first_reading(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(proof, "sum", lambda numbers: min(1, sum(numbers)), raising=False)
    ways = proof.Ways
    patch.setattr(proof, "Ways", lambda _, numbers: ways(1, numbers))


def _any_publication(patch: pytest.MonkeyPatch) -> None:
    reason = proof.reason_to_load

    def reason_to_load(before: TableSpec, now: CatalogTable, *more: Any) -> str | None:
        after = now.table
        assert after.evidence is not None
        evidence = before.evidence and replace(before.evidence, published=after.evidence.published)
        return reason(replace(before, published=after.published, evidence=evidence), now, *more)

    for module in (proof, differences, failures, table_writer):
        patch.setattr(module, "reason_to_load", reason_to_load)


def _texts_by_type_of_arrow(patch: pytest.MonkeyPatch) -> None:
    def keeps(before: TableSpec, source: Any, table: TableSpec, column: Any) -> bool:
        return bool(column.type == source.type) or evolution.is_wider(source, column.type)

    patch.setattr(evolution, "keeps_texts", keeps)


def _all_born(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(partitions, "query_born_partitions", lambda _, oids: set(oids))


def _no_missing_values(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(definitions, "missing_columns", lambda _, files: {top: {} for top in files})


MUTATIONS: dict[str, Mutation] = {
    "columns are told by their names": _read_by_names,
    "the first of several readings is taken": _first_reading,
    "a column that was not published before is taken": _returns(proof, "_of_columns", None),
    "new files are not noticed": _returns(proof, "_of_files", None),
    "TRUNCATE explains each new file": _in_text(
        definitions,
        "_WRITTEN",
        ("columns.count, columns.sum, columns.max, defaults.count, defaults.sum, defaults.max", "1"),
    ),
    "a partition that goes is not noticed": _returns(proof, "_of_partitions", None),
    "a partition that goes and comes is not noticed": _in_text(definitions, "_PARTS", ("link.xmin::text", "'1'")),
    "each new partition counts as made as one": _all_born,
    "a partition is made as one if a transaction attached it": _in_text(
        partitions, "_BORN", ("AND attribute.cmin = type.cmin", ""), ("AND attribute.xmax = '0'::xid", "")
    ),
    "other texts of types are not noticed": _returns(proof, "_texts_stay", True),
    "a label that is renamed and renamed back is not noticed": _in_text(
        definitions, "_TYPE_PARTS", ("enum.xmin::text::bigint", "1::bigint")
    ),
    "values are taken as texts of another type": _texts_by_type_of_arrow,
    "another publication is not noticed": _any_publication,
    "old rows have NULL in each new column": _no_missing_values,
}
"""Each takes one mend out."""


__all__ = ["MUTATIONS"]
