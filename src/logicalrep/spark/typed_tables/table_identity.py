"""The table of a typed stream keeps its OID when it is renamed, and another one that has its name has another OID."""

from __future__ import annotations

from collections.abc import Mapping

from logicalrep import LogicalRepError
from logicalrep_pipeline.relations import Relation
from logicalrep_pipeline.slots import Connection
from logicalrep_pipeline.spark.options import SourceOptions
from logicalrep_pipeline.table_names import TableName

_NAMES = """
SELECT class.oid, namespace.nspname, class.relname FROM pg_class AS class
JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE namespace.nspname = %s AND class.relname = %s OR class.oid = %s
"""


class TableChangedError(LogicalRepError, RuntimeError):
    """A table that has another name than when the reading began, or whose name is another table's by now."""

    code = "TABLE_REPLACED"


class TableIdentity:
    """What a query's offsets have of the table that it reads: its OID, which is read from the server once."""

    def __init__(self, options: SourceOptions) -> None:
        self._table = options.table
        self.relation_id: int | None = None
        """None where it is not known yet, or the query reads the change feed."""

    def go_on_from(self, offset: Mapping[str, object]) -> None:
        """Know what an offset has; one of an earlier version has nothing."""
        found = offset.get("relation_id")
        if found is not None:
            self.relation_id = int(str(found))

    def look(self, connection: Connection) -> None:
        """Know the table that has the name; TableChangedError where it is not the one that is known.

        One that was dropped is none: what was committed before that can be read.
        """
        if self._table is None:
            return
        rows = connection.execute(_NAMES, (*self._table, self.relation_id)).fetchall()
        names = {oid: TableName(*name) for oid, *name in rows}
        named = next((oid for oid, name in names.items() if name == self._table), None)
        if self.relation_id is None:
            self.relation_id = named
        elif named is not None and named != self.relation_id:
            raise replaced(self._table, self.relation_id, named, names.get(self.relation_id))
        elif named is None and self.relation_id in names:
            raise renamed(self._table, names[self.relation_id])


def is_of_table(relation: Relation, table: TableName, relation_id: int | None) -> bool:
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
