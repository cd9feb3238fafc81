"""The differences between the columns of two descriptions of a table, in words."""

from __future__ import annotations

from logicalrep.pipeline.schema.table_spec import TableSpec


def changed_columns(before: TableSpec, after: TableSpec) -> list[str]:
    """Return what is different in a stored table's columns and key, a few words for each; nothing if they are the same.

    Columns are known by their numbers on the server, or in another table of the same name by their names.

    Example:
        >>> changed_columns(before, after)
        ['note renamed to remark', 'price: decimal(10,2) is decimal(12,2)', 'day added: date', 'old dropped']
    """
    is_same_table = before.relation.relation_id == after.relation.relation_id
    earlier, later = (_columns(table, by_number=is_same_table) for table in (before, after))
    found = []
    for identity, (name, type_) in later.items():
        if identity not in earlier:
            found.append(f"{name} added: {type_}")
            continue
        name_before, type_before = earlier[identity]
        if name_before != name:
            found.append(f"{name_before} renamed to {name}")
        if type_before != type_:
            found.append(f"{name}: {type_before} is {type_}")
    found += [f"{earlier[identity][0]} dropped" for identity in earlier if identity not in later]
    if _key(before, by_number=is_same_table) != _key(after, by_number=is_same_table):
        found.append(f"the key is {', '.join(after.key) if after.key else 'all columns'}")
    return found


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
