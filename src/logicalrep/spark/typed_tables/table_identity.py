"""The identity of a typed stream's table: its OID, which a rename keeps and a replacement changes."""

from __future__ import annotations

from collections.abc import Mapping

from logicalrep.postgres.server import Connection
from logicalrep.spark.options import SourceOptions
from logicalrep.transactions.table_identity import renamed, replaced
from logicalrep.transactions.table_names import TableName

_NAMES = """
SELECT class.oid, namespace.nspname, class.relname FROM pg_class AS class
JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE namespace.nspname = %s AND class.relname = %s OR class.oid = %s
"""


class TableIdentity:
    """The OID of a query's table, read from the server once and stored in the query's offsets."""

    def __init__(self, options: SourceOptions) -> None:
        self._table = options.table
        self.relation_id: int | None = None
        """The OID; None if it is not known yet, or the query reads the change feed."""

    def resume_from(self, offset: Mapping[str, object]) -> None:
        relation_id = offset.get("relation_id")
        if relation_id is not None:
            self.relation_id = int(str(relation_id))

    def query(self, connection: Connection) -> None:
        """Compare the OID of the table's name on the server with the known OID; a dropped table is no error.

        Raises TableChangedError if they differ.
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
