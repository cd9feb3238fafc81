"""The identity of a table: its OID, which a rename keeps and a replacement changes."""

from __future__ import annotations

from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.errors import LogicalRepError


class TableChangedError(LogicalRepError, RuntimeError):
    """A table was renamed since the reader started, or its name now belongs to another table."""

    code = "TABLE_REPLACED"


def is_of_table(relation: TableDescription, table: TableName, relation_id: int | None) -> bool:
    """Return whether a Relation describes a table: by the OID if it is known, else by name.

    Raises TableChangedError if another table has the name.
    """
    if relation_id is None:
        return relation.table == table
    if relation.table == table and relation.relation_id != relation_id:
        raise replaced(table, relation_id, relation.relation_id)
    return relation.relation_id == relation_id


def renamed(table: TableName, name: TableName) -> TableChangedError:
    return TableChangedError(
        f"table {table} is now {name}: use that name with the same checkpoint: it gets all changes, also "
        "the changes under the old name",
        code="TABLE_RENAMED",
    )


def replaced(table: TableName, old_oid: int, new_oid: int, name: TableName | None = None) -> TableChangedError:
    was = f"{old_oid}" if name is None else f"{old_oid}, which is now {name}"
    return TableChangedError(
        f"table {table} with OID {new_oid} is not the table of this stream, which has OID {was}: copy it again, with a "
        "new slot and checkpoint, or read the changes of both in the change feed"
    )
