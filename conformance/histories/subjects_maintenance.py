"""What may happen to tables that a publication does not name, beside schema changes: upkeep, and pauses outside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from conformance.histories.subjects import Action, Context, Subject

_WIDE, _NARROW, _ROOT, _LEAF = (f"{{schema}}_b.{name}" for name in ("wide", "narrow", "root", "leaf"))


@dataclass
class Maintenance(Subject):
    """Tables of a published schema: with a TOAST table, without one, and with a partition."""

    needs_own_entries: ClassVar[bool] = True
    published: ClassVar[tuple[str, ...]] = ()
    is_named: bool = False

    def setup(self, context: Context) -> list[str]:
        return [
            f"CREATE TABLE {_WIDE} (id int PRIMARY KEY, v text)",
            f"CREATE TABLE {_NARROW} (id int PRIMARY KEY, v int)",
            f"CREATE TABLE {_ROOT} (id int PRIMARY KEY, v int) PARTITION BY RANGE (id)",
            f"CREATE TABLE {_LEAF} PARTITION OF {_ROOT} FOR VALUES FROM (MINVALUE) TO (MAXVALUE)",
            *(f"INSERT INTO {table} VALUES (1, 1), (2, 2), (3, 3)" for table in (_WIDE, _NARROW, _ROOT)),
            "ALTER PUBLICATION p ADD TABLES IN SCHEMA {schema}_b",
        ]

    def actions(self, context: Context) -> list[tuple[int, Action]]:
        table = context.chance.choice([_WIDE, _WIDE, _NARROW, _LEAF])
        index = "leaf_pkey" if table == _LEAF else f"{table.partition('.')[2]}_pkey"
        choices: list[tuple[int, Action]] = [
            (4, lambda: self._rows(context, table)),
            (4, lambda: self._unlogged(context, table)),
            (1, lambda: [f"ALTER TABLE {table} SET {context.chance.choice(['LOGGED', 'LOGGED', 'UNLOGGED'])}"]),
            (1, lambda: [f"CLUSTER {table} USING {index}"]),
            (1, lambda: [f"TRUNCATE {table}", *self._rows(context, table)]),
            (1, lambda: [f"REINDEX TABLE {table}", f"ANALYZE {table}"]),
            (1, lambda: self._named(context)),
            (1, lambda: self._moved(context)),
            (1, lambda: self._unpublished(context, table)),
        ]
        if not context.is_in_transaction:
            choices.append((4, lambda: [f"VACUUM FULL {table}"]))
        return choices

    def _rows(self, context: Context, table: str) -> list[str]:
        number = context.next()
        insert = f"INSERT INTO {table} VALUES ({number}, {number})"
        update = f"UPDATE {table} SET id = id + {1000 * number} WHERE id % 2 = {number % 2}"
        return context.chance.choice(
            [[insert], [insert, update], [update], [f"DELETE FROM {table} WHERE id % 3 = 1", insert]]
        )

    def _unlogged(self, context: Context, table: str) -> list[str]:
        """Write rows while a table is unlogged, which may be emptied as by a crash."""
        emptied = [f"TRUNCATE {table}"] if context.chance.random() < 0.3 else []
        return [
            *([f"TRUNCATE {table}"] if context.chance.random() < 0.2 else []),
            f"ALTER TABLE {table} SET UNLOGGED",
            *emptied,
            *self._rows(context, table),
            f"ALTER TABLE {table} SET LOGGED",
        ]

    def _named(self, context: Context) -> list[str]:
        """Have another publication name the table, or no longer, so that the server refuses `SET UNLOGGED`."""
        self.is_named = not self.is_named
        if self.is_named:
            return [f"CREATE PUBLICATION {{schema}}_named FOR TABLE {_NARROW}"]
        return ["DROP PUBLICATION {schema}_named"]

    def _moved(self, context: Context) -> list[str]:
        table = context.chance.choice([_WIDE, _NARROW])
        name = table.partition(".")[2]
        meanwhile = self._rows(context, f"{{schema}}.{name}")
        return [
            f"ALTER TABLE {table} SET SCHEMA {{schema}}",
            *meanwhile,
            f"ALTER TABLE {{schema}}.{name} SET SCHEMA {{schema}}_b",
        ]

    def _unpublished(self, context: Context, table: str) -> list[str]:
        return [
            "ALTER PUBLICATION p DROP TABLES IN SCHEMA {schema}_b",
            *self._rows(context, table),
            "ALTER PUBLICATION p ADD TABLES IN SCHEMA {schema}_b",
        ]


__all__ = ["Maintenance"]
