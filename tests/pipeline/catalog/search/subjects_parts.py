"""What may happen to a partitioned table: its leaves come and go, filled or not, at two levels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from tests.pipeline.catalog.search.subjects import Action, Now, Subject


@dataclass
class Leaf:
    """A partition, or a table that was one or may become one."""

    day: int
    is_attached: bool = True
    has_parts: bool = False
    """Whether it is partitioned itself."""


@dataclass
class Parts(Subject):
    """A table with a partition for each day, of which some are partitioned by the first column."""

    leaves: dict[str, Leaf] = field(default_factory=lambda: {"r1": Leaf(1), "r2": Leaf(2)})
    columns: list[str] = field(default_factory=lambda: ["a"])
    published: ClassVar[tuple[str, ...]] = ("r",)

    def setup(self, now: Now) -> list[str]:
        made = [
            "CREATE TABLE r (id int, day int, a int, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)",
            "CREATE TABLE r1 PARTITION OF r FOR VALUES FROM (1) TO (2)",
        ]
        if now.chance.random() < 0.5:
            self.leaves["r2"].has_parts = True
            made += [
                "CREATE TABLE r2 PARTITION OF r FOR VALUES FROM (2) TO (3) PARTITION BY RANGE (id)",
                "CREATE TABLE r2a PARTITION OF r2 FOR VALUES FROM (MINVALUE) TO (100)",
                "CREATE TABLE r2b PARTITION OF r2 FOR VALUES FROM (100) TO (MAXVALUE)",
            ]
        else:
            made.append("CREATE TABLE r2 PARTITION OF r FOR VALUES FROM (2) TO (3)")
        return [*made, "INSERT INTO r (id, day, a) VALUES (1, 1, 1), (2, 1, 2), (3, 2, 3), (4, 2, 4)"]

    def actions(self, now: Now) -> list[tuple[int, Action]]:
        there = [name for name, leaf in self.leaves.items() if leaf.is_attached]
        apart = [name for name, leaf in self.leaves.items() if not leaf.is_attached]
        free = sorted({*range(1, 7)} - {leaf.day for leaf in self.leaves.values()})
        found: list[tuple[int, Action]] = [
            (1, lambda: ["TRUNCATE r"]),
            (1, lambda: self._alter(now)),
            (1, lambda: ["ALTER TABLE ONLY r REPLICA IDENTITY DEFAULT"]),
        ]
        if there:
            found += [
                (6, lambda: self._insert(now, "r", self.leaves[now.chance.choice(there)].day)),
                (2, lambda: self._update(now, "r")),
                (2, lambda: [f"UPDATE r SET day = {self.leaves[now.chance.choice(there)].day} WHERE id % 2 = 0"]),
                (1, lambda: [f"DELETE FROM r WHERE id % 3 = {now.chance.randrange(3)}"]),
                (1, lambda: [f"TRUNCATE {now.chance.choice(there)}"]),
                (1, lambda: [f"ALTER TABLE {now.chance.choice(there)} REPLICA IDENTITY FULL"]),
                (1, lambda: self._dropped(now.chance.choice(there))),
                (2, lambda: self._detached(now, now.chance.choice(there))),
                (2, lambda: self._detached_and_attached(now, now.chance.choice(there))),
            ]
            if not now.is_in_transaction:
                found.append((1, lambda: [f"VACUUM FULL {now.chance.choice(there)}"]))
        if free:
            found += [
                (2, lambda: self._born(now, free)),
                (3, lambda: self._made(now, free)),
                (1, lambda: self._made_with_parts(now, free)),
            ]
        if apart:
            found += [
                (3, lambda: self._attached(now.chance.choice(apart))),
                (1, lambda: self._written_apart(now, now.chance.choice(apart))),
            ]
        return found

    def _insert(self, now: Now, table: str, day: int) -> list[str]:
        names, values = (
            ["id", "day", *self.columns],
            [now.next(), day, *(now.chance.randrange(99) for _ in self.columns)],
        )
        return [f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(map(str, values))})"]

    def _update(self, now: Now, table: str) -> list[str]:
        if not self.columns:
            return [f"UPDATE {table} SET id = id + 10 WHERE id < 5"]
        return [f"UPDATE {table} SET {now.chance.choice(self.columns)} = {now.chance.randrange(99)} WHERE id % 2 = 1"]

    def _alter(self, now: Now) -> list[str]:
        name = now.chance.choice(["a", "b"])
        if name not in self.columns:
            self.columns.append(name)
            return [f"ALTER TABLE r ADD {name} int{now.chance.choice(['', ' DEFAULT 7'])}"]
        other = "b" if name == "a" else "a"
        self.columns.remove(name)
        if other not in self.columns and now.chance.random() < 0.5:
            self.columns.append(other)
            return [f"ALTER TABLE r RENAME {name} TO {other}"]
        return [f"ALTER TABLE r DROP {name}"]

    def _bounds(self, day: int) -> str:
        return f"FOR VALUES FROM ({day}) TO ({day + 1})"

    def _born(self, now: Now, free: list[int]) -> list[str]:
        day = now.chance.choice(free)
        self.leaves[f"r{day}"] = Leaf(day)
        made = f"CREATE TABLE r{day} PARTITION OF r {self._bounds(day)}"
        return [made, *(self._insert(now, "r", day) if now.chance.random() < 0.7 else [])]

    def _made(self, now: Now, free: list[int]) -> list[str]:
        """Make a table, fill it or not, and attach it: at once or later."""
        day = now.chance.choice(free)
        name = f"r{day}"
        made = [f"CREATE TABLE {name} (LIKE r INCLUDING ALL)"]
        filled = self._insert(now, name, day)
        how = now.chance.randrange(5)
        if how == 1 and now.is_in_transaction:
            made += ["SAVEPOINT filled", *filled, "RELEASE filled"]
        elif how == 2:
            made += [f"DO $$ BEGIN {filled[0]}; EXCEPTION WHEN unique_violation THEN NULL; END $$"]
        elif how > 2:
            made += filled
        self.leaves[name] = Leaf(day, is_attached=False)
        return [*made, *(self._attached(name) if now.chance.random() < 0.8 else [])]

    def _made_with_parts(self, now: Now, free: list[int]) -> list[str]:
        day = now.chance.choice(free)
        name = f"r{day}"
        self.leaves[name] = Leaf(day, is_attached=False, has_parts=True)
        made = [
            f"CREATE TABLE {name} (LIKE r INCLUDING ALL) PARTITION BY RANGE (id)",
            f"CREATE TABLE {name}a PARTITION OF {name} FOR VALUES FROM (MINVALUE) TO (100)",
            f"CREATE TABLE {name}b PARTITION OF {name} FOR VALUES FROM (100) TO (MAXVALUE)",
        ]
        filled = self._insert(now, name, day) if now.chance.random() < 0.6 else []
        return [*made, *filled, *self._attached(name)]

    def _attached(self, name: str) -> list[str]:
        leaf = self.leaves[name]
        leaf.is_attached = True
        return [f"ALTER TABLE r ATTACH PARTITION {name} {self._bounds(leaf.day)}"]

    def _dropped(self, name: str) -> list[str]:
        del self.leaves[name]
        return [f"DROP TABLE {name}"]

    def _detached(self, now: Now, name: str) -> list[str]:
        self.leaves[name].is_attached = False
        how = " CONCURRENTLY" if not now.is_in_transaction and now.chance.random() < 0.3 else ""
        return [f"ALTER TABLE r DETACH PARTITION {name}{how}"]

    def _written_apart(self, now: Now, name: str) -> list[str]:
        how = now.chance.randrange(4)
        if how == 0:
            return [f"DELETE FROM {name} WHERE id % 2 = 0"]
        if how == 1:
            return [f"TRUNCATE {name}"]
        return self._update(now, name) if how == 2 else self._insert(now, name, self.leaves[name].day)

    def _detached_and_attached(self, now: Now, name: str) -> list[str]:
        detached = self._detached(now, name)
        return [*detached, *self._written_apart(now, name), *self._attached(name)]


__all__ = ["Parts"]
