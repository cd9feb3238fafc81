"""What may happen to tables that a publication does not name, beside schema changes: upkeep, and leaving for a while."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tests.pipeline.catalog.search.subjects import Action, Now, Subject

_WIDE, _NARROW, _ROOT, _LEAF = (f"{{schema}}_b.{name}" for name in ("wide", "narrow", "root", "leaf"))


@dataclass
class Maintenance(Subject):
    """Tables of a published schema: with a TOAST table, without one, and with a partition."""

    needs_own_entries: ClassVar[bool] = True
    published: ClassVar[tuple[str, ...]] = ()
    is_named: bool = False

    def setup(self, now: Now) -> list[str]:
        return [
            f"CREATE TABLE {_WIDE} (id int PRIMARY KEY, v text)",
            f"CREATE TABLE {_NARROW} (id int PRIMARY KEY, v int)",
            f"CREATE TABLE {_ROOT} (id int PRIMARY KEY, v int) PARTITION BY RANGE (id)",
            f"CREATE TABLE {_LEAF} PARTITION OF {_ROOT} FOR VALUES FROM (MINVALUE) TO (MAXVALUE)",
            *(f"INSERT INTO {table} VALUES (1, 1), (2, 2), (3, 3)" for table in (_WIDE, _NARROW, _ROOT)),
            "ALTER PUBLICATION p ADD TABLES IN SCHEMA {schema}_b",
        ]

    def actions(self, now: Now) -> list[tuple[int, Action]]:
        table = now.chance.choice([_WIDE, _WIDE, _NARROW, _LEAF])
        index = "leaf_pkey" if table == _LEAF else f"{table.partition('.')[2]}_pkey"
        found: list[tuple[int, Action]] = [
            (4, lambda: self._rows(now, table)),
            (4, lambda: self._unlogged(now, table)),
            (1, lambda: [f"ALTER TABLE {table} SET {now.chance.choice(['LOGGED', 'LOGGED', 'UNLOGGED'])}"]),
            (1, lambda: [f"CLUSTER {table} USING {index}"]),
            (1, lambda: [f"TRUNCATE {table}", *self._rows(now, table)]),
            (1, lambda: [f"REINDEX TABLE {table}", f"ANALYZE {table}"]),
            (1, lambda: self._named(now)),
            (1, lambda: self._moved(now)),
            (1, lambda: self._unpublished(now, table)),
        ]
        if not now.is_in_transaction:
            found.append((4, lambda: [f"VACUUM FULL {table}"]))
        return found

    def _rows(self, now: Now, table: str) -> list[str]:
        number = now.next()
        insert = f"INSERT INTO {table} VALUES ({number}, {number})"
        update = f"UPDATE {table} SET id = id + {1000 * number} WHERE id % 2 = {number % 2}"
        return now.chance.choice(
            [[insert], [insert, update], [update], [f"DELETE FROM {table} WHERE id % 3 = 1", insert]]
        )

    def _unlogged(self, now: Now, table: str) -> list[str]:
        """Write rows while a table is unlogged, which may be emptied as by a crash."""
        emptied = [f"TRUNCATE {table}"] if now.chance.random() < 0.3 else []
        return [
            *([f"TRUNCATE {table}"] if now.chance.random() < 0.2 else []),
            f"ALTER TABLE {table} SET UNLOGGED",
            *emptied,
            *self._rows(now, table),
            f"ALTER TABLE {table} SET LOGGED",
        ]

    def _named(self, now: Now) -> list[str]:
        """Have another publication name the table, or no longer, so that the server refuses `SET UNLOGGED`."""
        self.is_named = not self.is_named
        if self.is_named:
            return [f"CREATE PUBLICATION {{schema}}_named FOR TABLE {_NARROW}"]
        return ["DROP PUBLICATION {schema}_named"]

    def _moved(self, now: Now) -> list[str]:
        table = now.chance.choice([_WIDE, _NARROW])
        name = table.partition(".")[2]
        meanwhile = self._rows(now, f"{{schema}}.{name}")
        return [
            f"ALTER TABLE {table} SET SCHEMA {{schema}}",
            *meanwhile,
            f"ALTER TABLE {{schema}}.{name} SET SCHEMA {{schema}}_b",
        ]

    def _unpublished(self, now: Now, table: str) -> list[str]:
        return [
            "ALTER PUBLICATION p DROP TABLES IN SCHEMA {schema}_b",
            *self._rows(now, table),
            "ALTER PUBLICATION p ADD TABLES IN SCHEMA {schema}_b",
        ]


__all__ = ["Maintenance"]
