"""What may happen to the types of a table's columns: labels, attributes and domains."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from tests.pipeline.catalog.search.subjects import Action, Now, Subject

COLUMNS = {"m": "mood", "d": "spirit", "l": "mood[]", "r": "moods", "p": "pair", "h": "held"}
"""The columns with their types."""


@dataclass
class Types(Subject):
    """A table with columns of an enum, of types that are made of it, and of a composite type."""

    columns: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=lambda: ["x", "y"])
    unusable: list[str] = field(default_factory=list)
    """Labels that were added in the open transaction, which the server does not take before it has ended."""
    attributes: int = 2
    kinds: list[int] = field(default_factory=list)
    """The kinds of changes of types: where there are few, one does not hide another by a load."""
    later: int = 0
    """The number of enum types that came later, each with a column."""
    published: ClassVar[tuple[str, ...]] = ("e",)
    whole: ClassVar[tuple[str, ...]] = ("e",)

    def setup(self, now: Now) -> list[str]:
        self.columns = sorted(now.chance.sample(list(COLUMNS), now.chance.randint(1, 3)))
        # Adding labels and renaming them there and back need the most luck to be noticed.
        self.kinds = now.chance.sample([0, 0, 1, 2, 2, 3, 4, 5, *([6, 6, 7] if "p" in self.columns else [])], 2)
        if now.chance.random() < 0.75:
            # Loads for other columns, and for other changes, hide what is wrong with this one.
            name, kind = now.chance.choice([("h", 0), ("h", 2), ("p", 6), ("m", 0), ("m", 2)])
            self.columns, self.kinds = [name], [kind]
        listed = "".join(f", {name} {COLUMNS[name]}" for name in self.columns)
        return [
            "CREATE TYPE mood AS ENUM ('x', 'y')",
            "CREATE DOMAIN spirit AS mood",
            "CREATE TYPE moods AS RANGE (subtype = mood)",
            "CREATE TYPE pair AS (p int, q text)",
            "CREATE TYPE held AS (i int, m mood)",
            f"CREATE TABLE e (id int PRIMARY KEY{listed})",
            *self._insert(now),
            *self._insert(now),
        ]

    def actions(self, now: Now) -> list[tuple[int, Action]]:
        if not now.is_in_transaction:
            self.unusable = []
        name = now.chance.choice(self.columns)
        changes: list[Action] = [
            lambda: self._added(now),
            lambda: self._renamed(now, now.chance.choice(self.labels)),
            lambda: self._there_and_back(now),
            lambda: self._exchanged(now),
            lambda: self._with_a_new_type(now),
            lambda: ["ALTER DOMAIN spirit SET DEFAULT 'x'"],
            lambda: self._attribute_comes_and_goes(now),
            lambda: ["ALTER TYPE pair RENAME ATTRIBUTE p TO p1", "ALTER TYPE pair RENAME ATTRIBUTE p1 TO p"],
        ]
        return [
            (6, lambda: self._insert(now)),
            (4, lambda: [f"UPDATE e SET {name} = {self._value(now, name)} WHERE id % 2 = {now.chance.randrange(2)}"]),
            (1, lambda: [f"DELETE FROM e WHERE id % 3 = {now.chance.randrange(3)}"]),
            *((4, changes[number]) for number in self.kinds),
        ]

    def _label(self, now: Now) -> str:
        return now.chance.choice([label for label in self.labels if label not in self.unusable])

    def _value(self, now: Now, name: str, label: str | None = None) -> str:
        label = label or self._label(now)
        if name == "p":
            return f"'({now.chance.randrange(9)}{',q' * (self.attributes - 1)})'"
        quoted = f'"{label}"'
        return {"m": f"'{label}'", "d": f"'{label}'", "l": f"'{{{quoted}}}'", "r": f"'[{quoted},{quoted}]'"}.get(
            name, f"'(1,{quoted})'"
        )

    def _insert(self, now: Now, label: str | None = None) -> list[str]:
        values = ", ".join([str(now.next()), *(self._value(now, name, label) for name in self.columns)])
        return [f"INSERT INTO e ({', '.join(['id', *self.columns])}) VALUES ({values})"]

    def _added(self, now: Now) -> list[str]:
        # Some cannot be told from other texts within lists.
        label = now.chance.choice(["l{}", "l{}", "l{}", "two words {}", "a,b{}"]).format(now.next())
        self.labels.append(label)
        if now.is_in_transaction:
            self.unusable.append(label)
            return [f"ALTER TYPE mood ADD VALUE '{label}'"]
        written = self._insert(now, label) if now.chance.random() < 0.9 else []
        return [
            f"ALTER TYPE mood ADD VALUE '{label}'",
            *written,
            *(self._renamed(now, label) if now.chance.random() < 0.7 else []),
        ]

    def _renamed(self, now: Now, label: str) -> list[str]:
        later = f"l{now.next()}"
        self.labels = [later if each == label else each for each in self.labels]
        self.unusable = [later if each == label else each for each in self.unusable]
        return [f"ALTER TYPE mood RENAME VALUE '{label}' TO '{later}'"]

    def _there_and_back(self, now: Now) -> list[str]:
        label = self._label(now)
        renamed = self._renamed(now, label)
        later = renamed[0].split("'")[-2]
        # Within another type the label in between is not told from the others, once it is gone.
        written = self._insert(now, later)
        self.labels = [label if each == later else each for each in self.labels]
        return [*renamed, *written, f"ALTER TYPE mood RENAME VALUE '{later}' TO '{label}'"]

    def _exchanged(self, now: Now) -> list[str]:
        one, other = now.chance.sample(self.labels, 2)
        return [
            f"ALTER TYPE mood RENAME VALUE '{a}' TO '{b}'"
            for a, b in ((one, "between"), (other, one), ("between", other))
        ]

    def _attribute_comes_and_goes(self, now: Now) -> list[str]:
        name = f"n{now.next()}"
        self.attributes += 1
        made = [f"ALTER TYPE pair ADD ATTRIBUTE {name} text"]
        if now.chance.random() < 0.2:
            return made
        written = self._insert(now)
        self.attributes -= 1
        return [*made, *written, f"ALTER TYPE pair DROP ATTRIBUTE {name}"]

    def _with_a_new_type(self, now: Now) -> list[str]:
        self.later += 1
        name = f"new{self.later}"
        return [
            f"CREATE TYPE {name} AS ENUM ('x', 'y')",
            f"ALTER TABLE e ADD {name} {name} DEFAULT 'x'",
            *self._insert(now),
            *([f"ALTER TYPE {name} RENAME VALUE 'x' TO 'z'"] if now.chance.random() < 0.5 else []),
        ]


__all__ = ["Types"]
