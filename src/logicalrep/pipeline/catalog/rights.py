"""The missing rights of a role to read tables, with the statements that grant them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from psycopg import sql

from logicalrep.observe.events import listed
from logicalrep.postgres.preflight.findings import Finding
from logicalrep.postgres.server import Connection, query_scalar
from logicalrep.transactions.table_names import TableName

# A load locks a partitioned table, and locks and reads each of its partitions separately.
_FILES = """
WITH RECURSIVE files AS (
    SELECT class.oid FROM unnest(%s::text[], %s::text[]) AS wanted(schema, name)
    JOIN pg_namespace AS namespace ON namespace.nspname = wanted.schema
    JOIN pg_class AS class ON class.relnamespace = namespace.oid AND class.relname = wanted.name
    UNION ALL
    SELECT inhrelid FROM files JOIN pg_class AS class ON class.oid = files.oid AND class.relkind = 'p'
    JOIN pg_inherits ON inhparent = files.oid
)
SELECT namespace.nspname, class.relname, has_schema_privilege(namespace.oid, 'USAGE'),
    has_table_privilege(class.oid, 'SELECT'), class.relkind = 'p', row_security_active(class.oid),
    pg_has_role(class.relowner, 'USAGE')
FROM files JOIN pg_class AS class USING (oid) JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
ORDER BY 1, 2
"""
_MOST_NAMES = 5
"""The most tables whose GRANT a finding repeats."""


@dataclass(frozen=True, slots=True)
class Rights:
    role: str
    """The role's name, quoted if SQL needs it."""
    unusable: tuple[str, ...]
    unreadable: tuple[TableName, ...]
    hidden: tuple[TableName, ...]
    """The tables and partitions with rows that row-level security hides from the role."""
    not_owned: frozenset[TableName]

    @classmethod
    def query(cls, connection: Connection, tables: Sequence[TableName]) -> Rights:
        rows = connection.execute(
            _FILES, ([table.schema for table in tables], [table.name for table in tables])
        ).fetchall()
        files = [(TableName(*row[:2]), *row[3:6]) for row in rows]
        return cls(
            role=query_scalar(connection, "SELECT quote_ident(current_user)"),
            unusable=tuple(sorted({row[0] for row in rows if not row[2]})),
            unreadable=tuple(name for name, may_read, _, _ in files if not may_read),
            hidden=tuple(name for name, _, is_root, is_hidden in files if is_hidden and not is_root),
            not_owned=frozenset(TableName(*row[:2]) for row in rows if not row[-1]),
        )

    def findings(self) -> list[Finding]:
        code, findings = "TABLE_NOT_READABLE", []
        if self.unusable:
            schemas = sql.SQL(", ").join(map(sql.Identifier, self.unusable)).as_string()
            granting = f"GRANT USAGE ON SCHEMA {schemas} TO {self.role}"
            text = f"Role {self.role} may not use the schemas {', '.join(self.unusable)}: run {granting}."
            findings.append(Finding(code, text, (granting,)))
        if self.unreadable:
            statements = tuple(self._granting())
            run = "; ".join(statements) if len(self.unreadable) <= _MOST_NAMES else "each GRANT SELECT of the script"
            text = f"Role {self.role} may not read {listed(self.unreadable)}: run {run}."
            findings.append(Finding(code, text, statements))
        if self.hidden:
            bypassing = f"ALTER ROLE {self.role} BYPASSRLS"
            text = f"Row-level security hides rows of {listed(self.hidden)} from role {self.role}: run {bypassing}."
            findings.append(Finding(code, text, (bypassing,)))
        return findings

    def statements_beyond(self, granted: Rights) -> tuple[str, ...]:
        """Return the statements that meet these findings, without the statements for other tables' findings."""
        rights = replace(
            self,
            unusable=tuple(schema for schema in self.unusable if schema not in granted.unusable),
            hidden=() if granted.hidden else self.hidden,
        )
        return rights.statements

    @property
    def statements(self) -> tuple[str, ...]:
        return tuple(line for finding in self.findings() for line in finding.statements)

    def _granting(self) -> list[str]:
        of_schema: dict[str, list[str]] = {}
        for table in self.unreadable:
            of_schema.setdefault(table.schema, []).append(sql.Identifier(*table).as_string())
        return [f"GRANT SELECT ON {', '.join(tables)} TO {self.role}" for tables in of_schema.values()]
