"""Whether a description is that of a table: a table keeps its OID when it is renamed, and another has another."""

from __future__ import annotations

from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.errors import LogicalRepError


class TableChangedError(LogicalRepError, RuntimeError):
    """A table that has another name than when the reading began, or whose name is another table's by now."""

    code = "TABLE_REPLACED"


def is_of_table(relation: TableDescription, table: TableName, relation_id: int | None) -> bool:
    """Whether a description is the table's, by its OID where that is known: the table may have had another name then.

    TableChangedError where it is another table of that name.
    """
    if relation_id is None:
        return relation.table == table
    if relation.table == table and relation.relation_id != relation_id:
        raise replaced(table, relation_id, relation.relation_id)
    return relation.relation_id == relation_id


def renamed(table: TableName, name: TableName) -> TableChangedError:
    """The error for a table that has another name by now."""
    return TableChangedError(
        f"table {table} is {name} by now: name it so and go on with the same checkpoint, and all of its changes come, "
        "those from before as well",
        code="TABLE_RENAMED",
    )


def replaced(table: TableName, before: int, now: int, name: TableName | None = None) -> TableChangedError:
    """The error for a table of the same name; `name` is the one that the table has by now that had it before."""
    was = f"{before}" if name is None else f"{before}, which is {name} by now"
    return TableChangedError(
        f"table {table} with OID {now} is another one than the one that is read, with OID {was}: copy it anew, with a "
        "new slot and checkpoint, or read the changes of both in the change feed"
    )
