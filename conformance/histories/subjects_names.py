"""What may happen to the names of tables, and to the entries of a publication."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from conformance.histories.subjects import Action, Context, Subject


@dataclass
class Swaps(Subject):
    """Tables that exchange names, move to another schema and back, go, and come under a name of before."""

    names: list[str] = field(default_factory=lambda: ["v", "w"])
    away: list[str] = field(default_factory=list)
    """The tables that are in the other schema."""
    needs_own_entries: ClassVar[bool] = True
    published: ClassVar[tuple[str, ...]] = ("v", "w")

    def setup(self, context: Context) -> list[str]:
        return [
            *(f"CREATE TABLE {name} (id int PRIMARY KEY, a text)" for name in self.names),
            *(f"INSERT INTO {name} VALUES ({number}, '{name}{number}')" for name in self.names for number in (1, 2)),
        ]

    def actions(self, context: Context) -> list[tuple[int, Action]]:
        free = [name for name in ("v", "w", "x") if name not in {*self.names, *self.away}]
        choices: list[tuple[int, Action]] = []
        if free:
            choices.append((1, lambda: self._create(context, context.chance.choice(free))))
        if self.away:
            choices.append((4, lambda: self._back(context)))
        if not self.names:
            return [*choices, (1, lambda: ["SELECT 1"])]
        name = context.chance.choice(self.names)
        choices += [
            (6, lambda: [f"INSERT INTO {name} (id, a) VALUES ({context.next()}, '{name}{context.number}')"]),
            (
                3,
                lambda: [
                    f"UPDATE {name} SET a = '{name}{context.next()}' WHERE id % 2 = {context.chance.randrange(2)}"
                ],
            ),
            (1, lambda: [f"DELETE FROM {name} WHERE id % 3 = {context.chance.randrange(3)}"]),
            (1, lambda: self._away(name)),
            (1, lambda: self._dropped(context, name)),
            (1, lambda: [f"TRUNCATE {name}"]),
        ]
        if free:
            choices.append((2, lambda: self._renamed(name, context.chance.choice(free))))
        if free and len(self.names) == 2:
            choices.append((3, lambda: self._exchanged(self.names[0], self.names[1], free[0])))
        return choices

    def _create(self, context: Context, name: str) -> list[str]:
        self.names.append(name)
        return [
            f"CREATE TABLE {name} (id int PRIMARY KEY, a text)",
            *([f"INSERT INTO {name} VALUES (1, 'made{context.next()}')"] if context.chance.random() < 0.7 else []),
            f"ALTER PUBLICATION p ADD TABLE {name}",
        ]

    def _dropped(self, context: Context, name: str) -> list[str]:
        self.names.remove(name)
        return [f"DROP TABLE {name}", *(self._create(context, name) if context.chance.random() < 0.7 else [])]

    def _renamed(self, name: str, new_name: str) -> list[str]:
        self.names = [new_name if table == name else table for table in self.names]
        return [f"ALTER TABLE {name} RENAME TO {new_name}"]

    def _exchanged(self, first: str, second: str, free: str) -> list[str]:
        return [f"ALTER TABLE {a} RENAME TO {b}" for a, b in ((first, free), (second, first), (free, second))]

    def _away(self, name: str) -> list[str]:
        self.names.remove(name)
        self.away.append(name)
        return [f"ALTER TABLE {name} SET SCHEMA {{schema}}_b"]

    def _back(self, context: Context) -> list[str]:
        name = self.away.pop()
        self.names.append(name)
        written = f"INSERT INTO {{schema}}_b.{name} VALUES ({context.next()}, 'away')"
        return [
            *([written] if context.chance.random() < 0.5 else []),
            f"ALTER TABLE {{schema}}_b.{name} SET SCHEMA {{schema}}",
        ]


FILTERS = ["", " WHERE (a > 50)", " WHERE (a > 50)", " WHERE (a > 50 OR k = 2)", " WHERE (k < 3)"]
LISTS = ["", "", " (id, k, a, big)", " (id, k, a)", " (k, id, a, b)"]


@dataclass
class Entries(Subject):
    """A table with a row filter or a column list that change, and with large values that are not sent."""

    entry: str = "f WHERE (a > 50)"
    columns: list[str] = field(default_factory=list)
    is_published: bool = True
    needs_own_entries: ClassVar[bool] = True

    @property
    def published(self) -> tuple[str, ...]:
        return (self.entry,)

    def setup(self, context: Context) -> list[str]:
        self.entry = self._other(context)
        return [
            "CREATE TABLE f (id int, k int DEFAULT 1, a int DEFAULT 0, big text, PRIMARY KEY (id, k, a))",
            "ALTER TABLE f ALTER big SET STORAGE EXTERNAL",
            "INSERT INTO f SELECT i, i % 4, i * 30, repeat('large' || i, 600) FROM generate_series(1, 4) AS i",
        ]

    def actions(self, context: Context) -> list[tuple[int, Action]]:
        choices: list[tuple[int, Action]] = [
            (5, lambda: self._insert(context)),
            (
                4,
                lambda: [
                    f"UPDATE f SET a = {context.chance.choice([10, 40, 60, 90])} WHERE id % 2 = {context.number % 2}"
                ],
            ),
            (2, lambda: [f"UPDATE f SET k = {context.chance.randrange(5)} WHERE id % 3 = {context.number % 3}"]),
            (1, lambda: [f"UPDATE f SET big = 'small{context.next()}' WHERE id % 4 = 1"]),
            (1, lambda: [f"DELETE FROM f WHERE id % 5 = {context.chance.randrange(5)}"]),
            (1, lambda: ["TRUNCATE f"]),
            (2, lambda: self._alter(context)),
            (1, lambda: [f"ALTER TABLE f REPLICA IDENTITY {context.chance.choice(['FULL', 'DEFAULT'])}"]),
        ]
        if self.is_published:
            choices += [
                (2, lambda: self._leaves()),
                (2, lambda: [*self._leaves(), *self._insert(context), *self._joins(context)]),
            ]
        else:
            choices.append((6, lambda: self._joins(context)))
        return choices

    def _other(self, context: Context) -> str:
        lists = LISTS if "b" in self.columns else LISTS[:-1]
        listed, filtered = context.chance.choice(lists), context.chance.choice(FILTERS)
        return f"f{listed}{filtered}"

    def _insert(self, context: Context) -> list[str]:
        given = {"id": context.next(), "k": context.chance.randrange(4), "a": context.chance.randrange(99)}
        given |= {name: context.chance.randrange(99) for name in self.columns}
        large = f"repeat('large{context.number}', 400)"
        return [f"INSERT INTO f ({', '.join(given)}, big) VALUES ({', '.join(map(str, given.values()))}, {large})"]

    def _alter(self, context: Context) -> list[str]:
        free = [name for name in ("b", "c") if name not in self.columns]
        if free and context.chance.random() < 0.6:
            self.columns.append(free[0])
            return [f"ALTER TABLE f ADD {free[0]} int{context.chance.choice(['', ' DEFAULT 3'])}"]
        if not self.columns:
            return ["ALTER TABLE f ALTER a SET DEFAULT 5"]
        name = self.columns.pop()
        return [f"ALTER TABLE f DROP {name}"]

    def _leaves(self) -> list[str]:
        self.is_published = False
        return ["ALTER PUBLICATION p DROP TABLE f"]

    def _joins(self, context: Context) -> list[str]:
        self.is_published = True
        return [f"ALTER PUBLICATION p ADD TABLE {self._other(context)}"]


__all__ = ["Entries", "Swaps"]
