"""What may happen to the key of a table whose rows are alike in a part of it, and to large values that are not sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tests.pipeline.catalog.search.subjects import Action, Now, Subject


@dataclass
class Keys(Subject):
    """A table whose key gets a second column and loses it again; a large value is sent only where it changes."""

    key: str = "id"
    has_large: bool = False
    has_index: bool = False
    published: ClassVar[tuple[str, ...]] = ("n",)
    whole: ClassVar[tuple[str, ...]] = ("n",)

    def setup(self, now: Now) -> list[str]:
        self.has_large = now.chance.random() < 0.5
        large = [", big text", "ALTER TABLE n ALTER big SET STORAGE EXTERNAL"] if self.has_large else [""]
        return [
            "CREATE TABLE n (id int NOT NULL, k int NOT NULL DEFAULT 1, v int"
            f"{large[0]}, CONSTRAINT n_key PRIMARY KEY (id))",
            *large[1:],
            *(["ALTER TABLE n REPLICA IDENTITY FULL"] if now.chance.random() < 0.7 else []),
            *(self._insert(number, 1, number) for number in (1, 2, 3)),
        ]

    def actions(self, now: Now) -> list[tuple[int, Action]]:
        rows = now.chance.choice(["id = 1", "id = 2", "id > 100", "k > 1", "k = 1", "id % 2 = 0"])
        found: list[tuple[int, Action]] = [
            (5, lambda: [self._insert(now.next(), 1, now.number)]),
            (5, lambda: [f"UPDATE n SET v = {now.next()} WHERE {rows}"]),
            (4, lambda: [f"DELETE FROM n WHERE {rows} AND id % 3 = {now.chance.randrange(3)}"]),
            (4, lambda: self._rekey(now)),
            (1, lambda: [f"UPDATE n SET {now.chance.choice(['id = id + 1000', 'k = k + 1000'])} WHERE {rows}"]),
            (1, lambda: [f"ALTER TABLE n REPLICA IDENTITY {now.chance.choice(['FULL', 'DEFAULT'])}"]),
            (1, lambda: self._index(now)),
        ]
        if self.has_large:
            found.append((2, lambda: [f"UPDATE n SET big = {self._large(now.next())} WHERE {rows}"]))
        if "k" in self.key:
            found.append((6, lambda: self._alike(now)))
        return found

    def _insert(self, number: int, k: int, v: int) -> str:
        names, large = (", big", f", {self._large(v)}") if self.has_large else ("", "")
        return f"INSERT INTO n (id, k, v{names}) VALUES ({number}, {k}, {v}{large})"

    def _large(self, number: int) -> str:
        return f"repeat('large{number}', 350)"

    def _alike(self, now: Now) -> list[str]:
        """Write rows with an `id` that other rows have, and change some of them."""
        number = now.chance.randrange(1, 4)
        changed = now.chance.choice(
            [
                f"DELETE FROM n WHERE id = {number} AND k > 1",
                f"DELETE FROM n WHERE id = {number} AND k = 1",
                f"DELETE FROM n WHERE id = {number} AND k = 1",
                f"UPDATE n SET k = {now.next()} WHERE id = {number} AND k = 1",
                f"UPDATE n SET v = {now.next()} WHERE id = {number} AND k = 1",
                f"UPDATE n SET v = {now.next()} WHERE id = {number} AND k > 1",
            ]
        )
        count = now.chance.choice([1, 1, 1, 2])
        return [*(self._insert(number, now.next(), now.number) for _ in range(count)), changed]

    def _rekey(self, now: Now) -> list[str]:
        self.key = now.chance.choice([key for key in ("id", "id, k", "k, id") if key != self.key])
        changed = f"ALTER TABLE n DROP CONSTRAINT n_key, ADD CONSTRAINT n_key PRIMARY KEY ({self.key})"
        if self.key == "id":
            return ["DELETE FROM n WHERE k <> 1", changed]
        return [changed, *(self._alike(now) if now.chance.random() < 0.8 else [])]

    def _index(self, now: Now) -> list[str]:
        self.has_index = not self.has_index
        if not self.has_index:
            return ["DROP INDEX n_index", *now.chance.choice([[], ["ALTER TABLE n REPLICA IDENTITY DEFAULT"]])]
        return ["CREATE UNIQUE INDEX n_index ON n (k, id)", "ALTER TABLE n REPLICA IDENTITY USING INDEX n_index"]


__all__ = ["Keys"]
