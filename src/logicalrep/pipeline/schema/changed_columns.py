from __future__ import annotations

from logicalrep.pipeline.schema.table_spec import TableSpec


def changed_columns(previous_spec: TableSpec, current_spec: TableSpec) -> list[str]:
    """Columns are matched by their numbers on the server; in another table of the same name, by their names."""
    is_same_table = previous_spec.relation.relation_id == current_spec.relation.relation_id
    previous, current = (_columns(table, by_number=is_same_table) for table in (previous_spec, current_spec))
    differences = []
    for identity, (name, type_) in current.items():
        if identity not in previous:
            differences.append(f"{name} added: {type_}")
            continue
        previous_name, previous_type = previous[identity]
        if previous_name != name:
            differences.append(f"{previous_name} renamed to {name}")
        if previous_type != type_:
            differences.append(f"{name}: {previous_type} is {type_}")
    differences += [f"{previous[identity][0]} dropped" for identity in previous if identity not in current]
    if _key(previous_spec, by_number=is_same_table) != _key(current_spec, by_number=is_same_table):
        differences.append(f"the key is {', '.join(current_spec.key) if current_spec.key else 'all columns'}")
    return differences


def _columns(table: TableSpec, *, by_number: bool) -> dict[tuple[int, bool] | str, tuple[str, str]]:
    return {
        number if by_number else column.name: (
            column.name,
            "string" if column.has_texts else table.columns[column.ordinal].type.spark_type,
        )
        for number, column in table.by_number.items()
    }


def _key(table: TableSpec, *, by_number: bool) -> tuple[int | str, ...] | None:
    if table.key is None or not by_number:
        return table.key
    numbers = dict(zip(table.relation.names, table.attnums, strict=True))
    return tuple(numbers[name] for name in table.key)
