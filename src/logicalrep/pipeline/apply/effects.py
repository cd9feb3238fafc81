"""The effects of a batch's parts: the reduced changes of each part, combined while their memory has a bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

import numpy as np

from logicalrep.arrow.changes.change_batch import ChangeBatch
from logicalrep.arrow.table.rows import SchemaMismatchError
from logicalrep.pipeline.apply.combining import combined
from logicalrep.pipeline.apply.ending import reduced_with_ended_rows
from logicalrep.pipeline.apply.events import events_of
from logicalrep.pipeline.apply.reduction import Reduced, reduced
from logicalrep.pipeline.engines.engine import Engine
from logicalrep.pipeline.errors import NeedsResync
from logicalrep.pipeline.schema.forms import END_COLUMN, Form
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.transactions.tags import TRUNCATE


def split_truncates(parts: Iterator[list[ChangeBatch]], form: Form) -> Iterator[list[ChangeBatch]]:
    """Yield the parts; if the table stores ended rows, divide them so that each truncate is a part of its own."""
    for part in parts:
        if form not in END_COLUMN:
            yield part
            continue
        row_changes: list[ChangeBatch] = []
        for batch in part:
            truncates = np.flatnonzero(batch.ops == TRUNCATE)
            bounds = sorted({0, *truncates.tolist(), *(truncates + 1).tolist(), batch.num_rows})
            for start, end in pairwise(bounds):
                changes = batch.slice(start, end - start)
                if changes.ops[0] != TRUNCATE:
                    row_changes.append(changes)
                    continue
                if row_changes:
                    yield row_changes
                yield [changes]
                row_changes = []
        if row_changes:
            yield row_changes


def effects_of(
    table: TableSpec, parts: Iterator[list[ChangeBatch]], engine: Engine, max_bytes: int
) -> Iterator[list[ChangeBatch] | Reduced]:
    """Yield the effects of the parts, combined up to `max_bytes`. A part that is alone, or that must be written by
    itself, is yielded unreduced."""
    first, second = next(parts), next(parts, None)
    if second is None or writes_each_part(table):
        yield first
        if second is not None:
            yield second
        yield from parts
        return
    effects: list[Reduced] = []
    for part in chain([first, second], parts):
        effect = engine.run_together(reduce_changes, Reduction(table, part), sum(batch.nbytes for batch in part))
        if effects and sum(previous_effect.nbytes for previous_effect in effects) + effect.nbytes > max_bytes:
            combined_effect = combined(table, [*effects, effect])
            if combined_effect.nbytes <= max_bytes:
                effects = [combined_effect]
                continue
            del combined_effect
            yield _combine_and_clear(table, effects)
        effects.append(effect)
        del effect
    yield _combine_and_clear(table, effects)


def _combine_and_clear(table: TableSpec, effects: list[Reduced]) -> Reduced:
    """Return the combined effect; clear the list, so that the caller holds no memory of the single effects."""
    effect = combined(table, effects)
    effects.clear()
    return effect


def writes_each_part(table: TableSpec) -> bool:
    """Return whether effects of parts cannot be combined, because the table stores ended rows or all changes."""
    return table.form in END_COLUMN or table.form == "changes"


@dataclass(frozen=True)
class Reduction:
    """Changes of a table, which one task reduces."""

    table: TableSpec
    changes: Sequence[ChangeBatch]


def reduce_changes(work: Reduction) -> Reduced:
    """Return the effect of changes on their table. Raises NeedsResync if the changes have other columns."""
    try:
        events, form = events_of(work.table, work.changes), work.table.form
        effect = reduced(events) if form not in END_COLUMN else reduced_with_ended_rows(form, events, work.table.stored)
    except SchemaMismatchError as error:
        raise NeedsResync(error.description) from None
    return replace(effect, unfit=events.unfit)
