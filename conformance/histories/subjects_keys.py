"""What may happen to the key of a table whose rows are alike in a part of it, and to large values that are not sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from conformance.histories.subjects import Action, Context, Subject


@dataclass
class Keys(Subject):
    """A table whose key gets a second column and loses it again; a large value is sent only where it changes."""

    key: str = "id"
    has_large: bool = False
    has_index: bool = False
    published: ClassVar[tuple[str, ...]] = ("n",)
    whole: ClassVar[tuple[str, ...]] = ("n",)

    def setup(self, context: Context) -> list[str]:
        self.has_large = context.chance.random() < 0.5
        large = [", big text", "ALTER TABLE n ALTER big SET STORAGE EXTERNAL"] if self.has_large else [""]
        return [
            "CREATE TABLE n (id int NOT NULL, k int NOT NULL DEFAULT 1, v int"
            f"{large[0]}, CONSTRAINT n_key PRIMARY KEY (id))",
            *large[1:],
            *(["ALTER TABLE n REPLICA IDENTITY FULL"] if context.chance.random() < 0.7 else []),
            *(self._insert(number, 1, number) for number in (1, 2, 3)),
        ]

    def actions(self, context: Context) -> list[tuple[int, Action]]:
        rows = context.chance.choice(["id = 1", "id = 2", "id > 100", "k > 1", "k = 1", "id % 2 = 0"])
        choices: list[tuple[int, Action]] = [
            (5, lambda: [self._insert(context.next(), 1, context.number)]),
            (5, lambda: [f"UPDATE n SET v = {context.next()} WHERE {rows}"]),
            (4, lambda: [f"DELETE FROM n WHERE {rows} AND id % 3 = {context.chance.randrange(3)}"]),
            (4, lambda: self._rekey(context)),
            (1, lambda: [f"UPDATE n SET {context.chance.choice(['id = id + 1000', 'k = k + 1000'])} WHERE {rows}"]),
            (1, lambda: [f"ALTER TABLE n REPLICA IDENTITY {context.chance.choice(['FULL', 'DEFAULT'])}"]),
            (1, lambda: self._index(context)),
        ]
        if self.has_large:
            choices.append((2, lambda: [f"UPDATE n SET big = {self._large(context.next())} WHERE {rows}"]))
        if "k" in self.key:
            choices.append((6, lambda: self._alike(context)))
        return choices

    def _insert(self, number: int, k: int, v: int) -> str:
        names, large = (", big", f", {self._large(v)}") if self.has_large else ("", "")
        return f"INSERT INTO n (id, k, v{names}) VALUES ({number}, {k}, {v}{large})"

    def _large(self, number: int) -> str:
        return f"repeat('large{number}', 350)"

    def _alike(self, context: Context) -> list[str]:
        """Write rows with an `id` that other rows have, and change some of them."""
        number = context.chance.randrange(1, 4)
        changed = context.chance.choice(
            [
                f"DELETE FROM n WHERE id = {number} AND k > 1",
                f"DELETE FROM n WHERE id = {number} AND k = 1",
                f"DELETE FROM n WHERE id = {number} AND k = 1",
                f"UPDATE n SET k = {context.next()} WHERE id = {number} AND k = 1",
                f"UPDATE n SET v = {context.next()} WHERE id = {number} AND k = 1",
                f"UPDATE n SET v = {context.next()} WHERE id = {number} AND k > 1",
            ]
        )
        count = context.chance.choice([1, 1, 1, 2])
        return [*(self._insert(number, context.next(), context.number) for _ in range(count)), changed]

    def _rekey(self, context: Context) -> list[str]:
        self.key = context.chance.choice([key for key in ("id", "id, k", "k, id") if key != self.key])
        changed = f"ALTER TABLE n DROP CONSTRAINT n_key, ADD CONSTRAINT n_key PRIMARY KEY ({self.key})"
        if self.key == "id":
            return ["DELETE FROM n WHERE k <> 1", changed]
        return [changed, *(self._alike(context) if context.chance.random() < 0.8 else [])]

    def _index(self, context: Context) -> list[str]:
        self.has_index = not self.has_index
        if not self.has_index:
            return ["DROP INDEX n_index", *context.chance.choice([[], ["ALTER TABLE n REPLICA IDENTITY DEFAULT"]])]
        return ["CREATE UNIQUE INDEX n_index ON n (k, id)", "ALTER TABLE n REPLICA IDENTITY USING INDEX n_index"]


__all__ = ["Keys"]
