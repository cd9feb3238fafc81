"""What may happen to a partitioned table: its leaves come and go, filled or not, at two levels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from conformance.histories.subjects import Action, Context, Subject


@dataclass
class Leaf:
    """A partition, or a table that was one or may become one."""

    day: int
    is_attached: bool = True
    has_parts: bool = False
    """Whether it is partitioned itself."""


@dataclass
class Parts(Subject):
    """A table with a partition for each day; some partitions are partitioned by the first column."""

    leaves: dict[str, Leaf] = field(default_factory=lambda: {"r1": Leaf(1), "r2": Leaf(2)})
    columns: list[str] = field(default_factory=lambda: ["a"])
    published: ClassVar[tuple[str, ...]] = ("r",)

    def setup(self, context: Context) -> list[str]:
        statements = [
            "CREATE TABLE r (id int, day int, a int, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)",
            "CREATE TABLE r1 PARTITION OF r FOR VALUES FROM (1) TO (2)",
        ]
        if context.chance.random() < 0.5:
            self.leaves["r2"].has_parts = True
            statements += [
                "CREATE TABLE r2 PARTITION OF r FOR VALUES FROM (2) TO (3) PARTITION BY RANGE (id)",
                "CREATE TABLE r2a PARTITION OF r2 FOR VALUES FROM (MINVALUE) TO (100)",
                "CREATE TABLE r2b PARTITION OF r2 FOR VALUES FROM (100) TO (MAXVALUE)",
            ]
        else:
            statements.append("CREATE TABLE r2 PARTITION OF r FOR VALUES FROM (2) TO (3)")
        return [*statements, "INSERT INTO r (id, day, a) VALUES (1, 1, 1), (2, 1, 2), (3, 2, 3), (4, 2, 4)"]

    def actions(self, context: Context) -> list[tuple[int, Action]]:
        attached = [name for name, leaf in self.leaves.items() if leaf.is_attached]
        apart = [name for name, leaf in self.leaves.items() if not leaf.is_attached]
        free = sorted({*range(1, 7)} - {leaf.day for leaf in self.leaves.values()})
        choices: list[tuple[int, Action]] = [
            (1, lambda: ["TRUNCATE r"]),
            (1, lambda: self._alter(context)),
            (1, lambda: ["ALTER TABLE ONLY r REPLICA IDENTITY DEFAULT"]),
        ]
        if attached:
            choices += [
                (6, lambda: self._insert(context, "r", self.leaves[context.chance.choice(attached)].day)),
                (2, lambda: self._update(context, "r")),
                (
                    2,
                    lambda: [f"UPDATE r SET day = {self.leaves[context.chance.choice(attached)].day} WHERE id % 2 = 0"],
                ),
                (1, lambda: [f"DELETE FROM r WHERE id % 3 = {context.chance.randrange(3)}"]),
                (1, lambda: [f"TRUNCATE {context.chance.choice(attached)}"]),
                (1, lambda: [f"ALTER TABLE {context.chance.choice(attached)} REPLICA IDENTITY FULL"]),
                (1, lambda: self._dropped(context.chance.choice(attached))),
                (2, lambda: self._detached(context, context.chance.choice(attached))),
                (2, lambda: self._detached_and_attached(context, context.chance.choice(attached))),
            ]
            if not context.is_in_transaction:
                choices.append((1, lambda: [f"VACUUM FULL {context.chance.choice(attached)}"]))
        if free:
            choices += [
                (2, lambda: self._born(context, free)),
                (1, lambda: self._born_and_emptied(context, free)),
                (3, lambda: self._create(context, free)),
                (1, lambda: self._create_with_parts(context, free)),
            ]
        if apart:
            choices += [
                (3, lambda: self._attached(context.chance.choice(apart))),
                (1, lambda: self._written_apart(context, context.chance.choice(apart))),
            ]
        return choices

    def _insert(self, context: Context, table: str, day: int) -> list[str]:
        names, values = (
            ["id", "day", *self.columns],
            [context.next(), day, *(context.chance.randrange(99) for _ in self.columns)],
        )
        return [f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(map(str, values))})"]

    def _update(self, context: Context, table: str) -> list[str]:
        if not self.columns:
            return [f"UPDATE {table} SET id = id + 10 WHERE id < 5"]
        change = f"{context.chance.choice(self.columns)} = {context.chance.randrange(99)}"
        return [f"UPDATE {table} SET {change} WHERE id % 2 = 1"]

    def _alter(self, context: Context) -> list[str]:
        name = context.chance.choice(["a", "b"])
        if name not in self.columns:
            self.columns.append(name)
            return [f"ALTER TABLE r ADD {name} int{context.chance.choice(['', ' DEFAULT 7'])}"]
        other = "b" if name == "a" else "a"
        self.columns.remove(name)
        if other not in self.columns and context.chance.random() < 0.5:
            self.columns.append(other)
            return [f"ALTER TABLE r RENAME {name} TO {other}"]
        return [f"ALTER TABLE r DROP {name}"]

    def _bounds(self, day: int) -> str:
        return f"FOR VALUES FROM ({day}) TO ({day + 1})"

    def _born(self, context: Context, free: list[int]) -> list[str]:
        day = context.chance.choice(free)
        self.leaves[f"r{day}"] = Leaf(day)
        created = f"CREATE TABLE r{day} PARTITION OF r {self._bounds(day)}"
        return [created, *(self._insert(context, "r", day) if context.chance.random() < 0.7 else [])]

    def _born_and_emptied(self, context: Context, free: list[int]) -> list[str]:
        """Make a partition, fill it, and take its rows away before the catalog is refreshed."""
        day = context.chance.choice(free)
        name = f"r{day}"
        self.leaves[name] = Leaf(day)
        created = [f"CREATE TABLE {name} PARTITION OF r {self._bounds(day)}", *self._insert(context, "r", day)]
        how = context.chance.randrange(3)
        if how == 0:
            return [*created, f"TRUNCATE {name}"]
        return [*created, *(self._dropped(name) if how == 1 else self._detached(context, name))]

    def _create(self, context: Context, free: list[int]) -> list[str]:
        """Make a table, fill it or not, and attach it: at once or later."""
        day = context.chance.choice(free)
        name = f"r{day}"
        statements = [f"CREATE TABLE {name} (LIKE r INCLUDING ALL)"]
        filled = self._insert(context, name, day)
        how = context.chance.randrange(5)
        if how == 1 and context.is_in_transaction:
            statements += ["SAVEPOINT filled", *filled, "RELEASE filled"]
        elif how == 2:
            statements += [f"DO $$ BEGIN {filled[0]}; EXCEPTION WHEN unique_violation THEN NULL; END $$"]
        elif how > 2:
            statements += filled
        self.leaves[name] = Leaf(day, is_attached=False)
        return [*statements, *(self._attached(name) if context.chance.random() < 0.8 else [])]

    def _create_with_parts(self, context: Context, free: list[int]) -> list[str]:
        day = context.chance.choice(free)
        name = f"r{day}"
        self.leaves[name] = Leaf(day, is_attached=False, has_parts=True)
        statements = [
            f"CREATE TABLE {name} (LIKE r INCLUDING ALL) PARTITION BY RANGE (id)",
            f"CREATE TABLE {name}a PARTITION OF {name} FOR VALUES FROM (MINVALUE) TO (100)",
            f"CREATE TABLE {name}b PARTITION OF {name} FOR VALUES FROM (100) TO (MAXVALUE)",
        ]
        filled = self._insert(context, name, day) if context.chance.random() < 0.6 else []
        return [*statements, *filled, *self._attached(name)]

    def _attached(self, name: str) -> list[str]:
        leaf = self.leaves[name]
        leaf.is_attached = True
        return [f"ALTER TABLE r ATTACH PARTITION {name} {self._bounds(leaf.day)}"]

    def _dropped(self, name: str) -> list[str]:
        del self.leaves[name]
        return [f"DROP TABLE {name}"]

    def _detached(self, context: Context, name: str) -> list[str]:
        self.leaves[name].is_attached = False
        how = " CONCURRENTLY" if not context.is_in_transaction and context.chance.random() < 0.3 else ""
        return [f"ALTER TABLE r DETACH PARTITION {name}{how}"]

    def _written_apart(self, context: Context, name: str) -> list[str]:
        how = context.chance.randrange(4)
        if how == 0:
            return [f"DELETE FROM {name} WHERE id % 2 = 0"]
        if how == 1:
            return [f"TRUNCATE {name}"]
        return self._update(context, name) if how == 2 else self._insert(context, name, self.leaves[name].day)

    def _detached_and_attached(self, context: Context, name: str) -> list[str]:
        detached = self._detached(context, name)
        return [*detached, *self._written_apart(context, name), *self._attached(name)]


__all__ = ["Parts"]
