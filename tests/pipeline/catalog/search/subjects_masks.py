"""What may happen to a table with columns whose values are not to be at the destination in clear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from tests.pipeline.catalog.search.comparing import SECRET
from tests.pipeline.catalog.search.subjects import Action, Now, Statement, Subject


@dataclass
class Masked(Subject):
    """A table of which a column is hashed, one is NULL, and one is left out; large values are sent where they change."""

    columns: list[str] = field(default_factory=lambda: ["a"])
    is_exchanged: bool = False
    """Whether columns in clear and masked ones have exchanged their names; once they have theirs again, what was written
    meanwhile under a masked name is in clear, on the server too."""
    protected: ClassVar[tuple[str, ...]] = ("h", "z", "o")
    masks: ClassVar[dict[str, object]] = {"masked": {"h": "hashed", "z": "nulled"}, "left_out": ["o"]}
    published: ClassVar[tuple[str, ...]] = ("m",)
    whole: ClassVar[tuple[str, ...]] = ("m",)

    def setup(self, now: Now) -> list[str]:
        return [
            "CREATE TABLE m (id int PRIMARY KEY, a text, h text, z text, o text)",
            "ALTER TABLE m ALTER h SET STORAGE EXTERNAL, ALTER o SET STORAGE EXTERNAL",
            *(["ALTER TABLE m REPLICA IDENTITY FULL"] if now.chance.random() < 0.4 else []),
            *(self._insert(now) for _ in range(3)),
        ]

    def actions(self, now: Now) -> list[tuple[int, Action]]:
        rows = now.chance.choice(["id % 2 = 0", "id % 3 = 0", "id > 103"])
        name = now.chance.choice(self.protected)
        found: list[tuple[int, Action]] = [
            (6, lambda: [self._insert(now)]),
            (4, lambda: [f"UPDATE m SET {name} = {self._secret(now)} WHERE {rows}"]),
            (2, lambda: [f"DELETE FROM m WHERE {rows}"]),
            (2, lambda: [f"UPDATE m SET id = id + 1000 WHERE {rows}"]),
            (2, lambda: self._alter(now)),
            (1, lambda: [f"ALTER TABLE m REPLICA IDENTITY {now.chance.choice(['FULL', 'DEFAULT'])}"]),
        ]
        if self.columns:
            changed = now.chance.choice(self.columns)
            found.append((4, lambda: [f"UPDATE m SET {changed} = 'v{now.next()}' WHERE {rows}"]))
            found.append((1, lambda: self._exchanged(changed, name)))
        return found

    def _secret(self, now: Now) -> str:
        if self.is_exchanged:
            return f"'w{now.next()}'"
        return now.chance.choice(["'{}{}'", "'{}{}'", "repeat('{}{}', 300)", "NULL"]).format(SECRET, now.next())

    def _insert(self, now: Now) -> str:
        names = ["id", *self.columns, *self.protected]
        values = [str(now.next()), *(f"'v{now.number}'" for _ in self.columns)]
        values += [self._secret(now) for _ in self.protected]
        return f"INSERT INTO m ({', '.join(names)}) VALUES ({', '.join(values)})"

    def _alter(self, now: Now) -> list[str]:
        name = now.chance.choice(["a", "b"])
        if name not in self.columns:
            self.columns.append(name)
            return [f"ALTER TABLE m ADD {name} text{now.chance.choice(['', ' DEFAULT 3'])}"]
        self.columns.remove(name)
        return [f"ALTER TABLE m DROP {name}"]

    def _exchanged(self, one: str, other: str) -> list[str]:
        """Exchange the names of a column in clear and a masked one, which stops the table."""
        self.is_exchanged = True
        return [f"ALTER TABLE m RENAME {a} TO {b}" for a, b in ((one, "x"), (other, one), ("x", other))]


def stops(phases: Sequence[Sequence[Statement]]) -> bool:
    """Return whether a statement gave a masked column another name, which stops its table."""
    return any(f" RENAME {name} " in each.text for phase in phases for each in phase for name in Masked.protected)


__all__ = ["Masked", "stops"]
