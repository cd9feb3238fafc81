"""What may happen to the names of tables, and to the entries of a publication."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from tests.pipeline.catalog.search.subjects import Action, Now, Subject


@dataclass
class Swaps(Subject):
    """Tables that exchange names, move to another schema and back, go, and come under a name of before."""

    names: list[str] = field(default_factory=lambda: ["v", "w"])
    away: list[str] = field(default_factory=list)
    """The tables that are in the other schema."""
    needs_own_entries: ClassVar[bool] = True
    published: ClassVar[tuple[str, ...]] = ("v", "w")

    def setup(self, now: Now) -> list[str]:
        return [
            *(f"CREATE TABLE {name} (id int PRIMARY KEY, a text)" for name in self.names),
            *(f"INSERT INTO {name} VALUES ({number}, '{name}{number}')" for name in self.names for number in (1, 2)),
        ]

    def actions(self, now: Now) -> list[tuple[int, Action]]:
        free = [name for name in ("v", "w", "x") if name not in {*self.names, *self.away}]
        found: list[tuple[int, Action]] = []
        if free:
            found.append((1, lambda: self._made(now, now.chance.choice(free))))
        if self.away:
            found.append((4, lambda: self._back(now)))
        if not self.names:
            return [*found, (1, lambda: ["SELECT 1"])]
        name = now.chance.choice(self.names)
        found += [
            (6, lambda: [f"INSERT INTO {name} (id, a) VALUES ({now.next()}, '{name}{now.number}')"]),
            (3, lambda: [f"UPDATE {name} SET a = '{name}{now.next()}' WHERE id % 2 = {now.chance.randrange(2)}"]),
            (1, lambda: [f"DELETE FROM {name} WHERE id % 3 = {now.chance.randrange(3)}"]),
            (1, lambda: self._away(name)),
            (1, lambda: self._dropped(now, name)),
            (1, lambda: [f"TRUNCATE {name}"]),
        ]
        if free:
            found.append((2, lambda: self._renamed(name, now.chance.choice(free))))
        if free and len(self.names) == 2:
            found.append((3, lambda: self._exchanged(self.names[0], self.names[1], free[0])))
        return found

    def _made(self, now: Now, name: str) -> list[str]:
        self.names.append(name)
        return [
            f"CREATE TABLE {name} (id int PRIMARY KEY, a text)",
            *([f"INSERT INTO {name} VALUES (1, 'made{now.next()}')"] if now.chance.random() < 0.7 else []),
            f"ALTER PUBLICATION p ADD TABLE {name}",
        ]

    def _dropped(self, now: Now, name: str) -> list[str]:
        self.names.remove(name)
        return [f"DROP TABLE {name}", *(self._made(now, name) if now.chance.random() < 0.7 else [])]

    def _renamed(self, name: str, later: str) -> list[str]:
        self.names = [later if each == name else each for each in self.names]
        return [f"ALTER TABLE {name} RENAME TO {later}"]

    def _exchanged(self, one: str, other: str, free: str) -> list[str]:
        return [f"ALTER TABLE {a} RENAME TO {b}" for a, b in ((one, free), (other, one), (free, other))]

    def _away(self, name: str) -> list[str]:
        self.names.remove(name)
        self.away.append(name)
        return [f"ALTER TABLE {name} SET SCHEMA {{schema}}_b"]

    def _back(self, now: Now) -> list[str]:
        name = self.away.pop()
        self.names.append(name)
        written = f"INSERT INTO {{schema}}_b.{name} VALUES ({now.next()}, 'away')"
        return [
            *([written] if now.chance.random() < 0.5 else []),
            f"ALTER TABLE {{schema}}_b.{name} SET SCHEMA {{schema}}",
        ]


FILTERS = ["", " WHERE (a > 50)", " WHERE (a > 50)", " WHERE (a > 50 OR k = 2)", " WHERE (k < 3)"]
LISTS = ["", "", " (id, k, a, big)", " (id, k, a)", " (k, id, a, b)"]


@dataclass
class Entries(Subject):
    """A table with a row filter or a column list, both of which change, and with large values that are not sent."""

    entry: str = "f WHERE (a > 50)"
    columns: list[str] = field(default_factory=list)
    is_published: bool = True
    needs_own_entries: ClassVar[bool] = True

    @property
    def published(self) -> tuple[str, ...]:
        return (self.entry,)

    def setup(self, now: Now) -> list[str]:
        self.entry = self._other(now)
        return [
            "CREATE TABLE f (id int, k int DEFAULT 1, a int DEFAULT 0, big text, PRIMARY KEY (id, k, a))",
            "ALTER TABLE f ALTER big SET STORAGE EXTERNAL",
            "INSERT INTO f SELECT i, i % 4, i * 30, repeat('large' || i, 600) FROM generate_series(1, 4) AS i",
        ]

    def actions(self, now: Now) -> list[tuple[int, Action]]:
        found: list[tuple[int, Action]] = [
            (5, lambda: self._insert(now)),
            (4, lambda: [f"UPDATE f SET a = {now.chance.choice([10, 40, 60, 90])} WHERE id % 2 = {now.number % 2}"]),
            (2, lambda: [f"UPDATE f SET k = {now.chance.randrange(5)} WHERE id % 3 = {now.number % 3}"]),
            (1, lambda: [f"UPDATE f SET big = 'small{now.next()}' WHERE id % 4 = 1"]),
            (1, lambda: [f"DELETE FROM f WHERE id % 5 = {now.chance.randrange(5)}"]),
            (1, lambda: ["TRUNCATE f"]),
            (2, lambda: self._alter(now)),
            (1, lambda: [f"ALTER TABLE f REPLICA IDENTITY {now.chance.choice(['FULL', 'DEFAULT'])}"]),
        ]
        if self.is_published:
            found += [
                (2, lambda: self._leaves()),
                (2, lambda: [*self._leaves(), *self._insert(now), *self._joins(now)]),
            ]
        else:
            found.append((6, lambda: self._joins(now)))
        return found

    def _other(self, now: Now) -> str:
        lists = LISTS if "b" in self.columns else LISTS[:-1]
        listed, filtered = now.chance.choice(lists), now.chance.choice(FILTERS)
        return f"f{listed}{filtered}"

    def _insert(self, now: Now) -> list[str]:
        given = {"id": now.next(), "k": now.chance.randrange(4), "a": now.chance.randrange(99)}
        given |= {name: now.chance.randrange(99) for name in self.columns}
        large = f"repeat('large{now.number}', 400)"
        return [f"INSERT INTO f ({', '.join(given)}, big) VALUES ({', '.join(map(str, given.values()))}, {large})"]

    def _alter(self, now: Now) -> list[str]:
        free = [name for name in ("b", "c") if name not in self.columns]
        if free and now.chance.random() < 0.6:
            self.columns.append(free[0])
            return [f"ALTER TABLE f ADD {free[0]} int{now.chance.choice(['', ' DEFAULT 3'])}"]
        if not self.columns:
            return ["ALTER TABLE f ALTER a SET DEFAULT 5"]
        name = self.columns.pop()
        return [f"ALTER TABLE f DROP {name}"]

    def _leaves(self) -> list[str]:
        self.is_published = False
        return ["ALTER PUBLICATION p DROP TABLE f"]

    def _joins(self, now: Now) -> list[str]:
        self.is_published = True
        return [f"ALTER PUBLICATION p ADD TABLE {self._other(now)}"]


__all__ = ["Entries", "Swaps"]
