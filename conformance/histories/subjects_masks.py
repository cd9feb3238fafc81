"""What may happen to a table with columns whose values are not to be at the destination in clear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from conformance.histories.subjects import Action, Context, Statement, Subject

SECRET = "secret"
"""The beginning of each value that is not to be at the destination in clear."""


@dataclass
class Masked(Subject):
    """A table with a hashed, a nulled and an omitted column; large values are sent where they change."""

    columns: list[str] = field(default_factory=lambda: ["a"])
    is_exchanged: bool = False
    """Whether a column in clear and a masked column have exchanged their names. After they exchange them back, values
    that were written meanwhile under a masked name are in clear, on the server too."""
    protected: ClassVar[tuple[str, ...]] = ("h", "z", "o")
    masks: ClassVar[dict[str, object]] = {"masked": {"h": "hashed", "z": "nulled"}, "left_out": ["o"]}
    published: ClassVar[tuple[str, ...]] = ("m",)
    whole: ClassVar[tuple[str, ...]] = ("m",)

    def setup(self, context: Context) -> list[str]:
        return [
            "CREATE TABLE m (id int PRIMARY KEY, a text, h text, z text, o text)",
            "ALTER TABLE m ALTER h SET STORAGE EXTERNAL, ALTER o SET STORAGE EXTERNAL",
            *(["ALTER TABLE m REPLICA IDENTITY FULL"] if context.chance.random() < 0.4 else []),
            *(self._insert(context) for _ in range(3)),
        ]

    def actions(self, context: Context) -> list[tuple[int, Action]]:
        rows = context.chance.choice(["id % 2 = 0", "id % 3 = 0", "id > 103"])
        name = context.chance.choice(self.protected)
        choices: list[tuple[int, Action]] = [
            (6, lambda: [self._insert(context)]),
            (4, lambda: [f"UPDATE m SET {name} = {self._secret(context)} WHERE {rows}"]),
            (2, lambda: [f"DELETE FROM m WHERE {rows}"]),
            (2, lambda: [f"UPDATE m SET id = id + 1000 WHERE {rows}"]),
            (2, lambda: self._alter(context)),
            (1, lambda: [f"ALTER TABLE m REPLICA IDENTITY {context.chance.choice(['FULL', 'DEFAULT'])}"]),
        ]
        if self.columns:
            changed = context.chance.choice(self.columns)
            choices.append((4, lambda: [f"UPDATE m SET {changed} = 'v{context.next()}' WHERE {rows}"]))
            choices.append((1, lambda: self._exchanged(changed, name)))
        return choices

    def _secret(self, context: Context) -> str:
        if self.is_exchanged:
            return f"'w{context.next()}'"
        return context.chance.choice(["'{}{}'", "'{}{}'", "repeat('{}{}', 300)", "NULL"]).format(SECRET, context.next())

    def _insert(self, context: Context) -> str:
        names = ["id", *self.columns, *self.protected]
        values = [str(context.next()), *(f"'v{context.number}'" for _ in self.columns)]
        values += [self._secret(context) for _ in self.protected]
        return f"INSERT INTO m ({', '.join(names)}) VALUES ({', '.join(values)})"

    def _alter(self, context: Context) -> list[str]:
        name = context.chance.choice(["a", "b"])
        if name not in self.columns:
            self.columns.append(name)
            return [f"ALTER TABLE m ADD {name} text{context.chance.choice(['', ' DEFAULT 3'])}"]
        self.columns.remove(name)
        return [f"ALTER TABLE m DROP {name}"]

    def _exchanged(self, first: str, second: str) -> list[str]:
        """Exchange the names of a column in clear and a masked one, which stops the table."""
        self.is_exchanged = True
        return [f"ALTER TABLE m RENAME {a} TO {b}" for a, b in ((first, "x"), (second, first), ("x", second))]


def stops(phases: Sequence[Sequence[Statement]]) -> bool:
    """Return whether a statement gave a masked column another name, which stops its table."""
    return any(
        f" RENAME {name} " in statement.text for phase in phases for statement in phase for name in Masked.protected
    )


__all__ = ["SECRET", "Masked", "stops"]
