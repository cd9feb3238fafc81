"""Changes of a table's columns, for tests."""

from __future__ import annotations

from dataclasses import replace

from logicalrep.pipeline.catalog.evolution import Evolution
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep_protocol import v1
from logicalrep_runtime.scalars import Oid

NEW = 9


def evolved(previous: TableSpec, default: str | None, *, type_id: int = 23, name: str = "new") -> Evolution:
    """Return the table with a new column, and with `big` renamed to `large`."""
    relation = previous.relation
    columns = [replace(column, name="large") if column.name == "big" else column for column in relation.columns]
    columns.append(v1.Column(flags=0, name=name, type_id=Oid(type_id), type_modifier=-1))
    after = replace(
        previous,
        relation=replace(relation, columns=tuple(columns), types=(*relation.types, None)),
        attnums=(*previous.attnums, NEW),
    )
    after = after.with_texts([NEW] if default == "infinity" else ())
    sources = {column.name: previous.by_number[number].name for number, column in after.by_number.items()
               if number in previous.by_number}  # fmt: skip
    return Evolution(after, sources, {} if default is None else {NEW: default})
