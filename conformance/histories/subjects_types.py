"""What may happen to the types of a table's columns: labels, attributes and domains."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from conformance.histories.subjects import Action, Context, Subject

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
    new_type_count: int = 0
    """The number of enum types that came later, each with a column."""
    published: ClassVar[tuple[str, ...]] = ("e",)
    whole: ClassVar[tuple[str, ...]] = ("e",)

    def setup(self, context: Context) -> list[str]:
        self.columns = sorted(context.chance.sample(list(COLUMNS), context.chance.randint(1, 3)))
        # Adding labels and renaming them there and back need the most luck to be noticed.
        self.kinds = context.chance.sample([0, 0, 1, 2, 2, 3, 4, 5, *([6, 6, 7] if "p" in self.columns else [])], 2)
        if context.chance.random() < 0.75:
            # Loads for other columns, and for other changes, hide what is wrong with this one.
            name, kind = context.chance.choice([("h", 0), ("h", 2), ("p", 6), ("m", 0), ("m", 2)])
            self.columns, self.kinds = [name], [kind]
        listed = "".join(f", {name} {COLUMNS[name]}" for name in self.columns)
        return [
            "CREATE TYPE mood AS ENUM ('x', 'y')",
            "CREATE DOMAIN spirit AS mood",
            "CREATE TYPE moods AS RANGE (subtype = mood)",
            "CREATE TYPE pair AS (p int, q text)",
            "CREATE TYPE held AS (i int, m mood)",
            f"CREATE TABLE e (id int PRIMARY KEY{listed})",
            *self._insert(context),
            *self._insert(context),
        ]

    def actions(self, context: Context) -> list[tuple[int, Action]]:
        if not context.is_in_transaction:
            self.unusable = []
        name = context.chance.choice(self.columns)
        changes: list[Action] = [
            lambda: self._added(context),
            lambda: self._renamed(context, context.chance.choice(self.labels)),
            lambda: self._rename_and_rename_back(context),
            lambda: self._exchanged(context),
            lambda: self._with_a_new_type(context),
            lambda: ["ALTER DOMAIN spirit SET DEFAULT 'x'"],
            lambda: self._attribute_comes_and_goes(context),
            lambda: ["ALTER TYPE pair RENAME ATTRIBUTE p TO p1", "ALTER TYPE pair RENAME ATTRIBUTE p1 TO p"],
        ]
        return [
            (6, lambda: self._insert(context)),
            (
                4,
                lambda: [
                    f"UPDATE e SET {name} = {self._value(context, name)} WHERE id % 2 = {context.chance.randrange(2)}"
                ],
            ),
            (1, lambda: [f"DELETE FROM e WHERE id % 3 = {context.chance.randrange(3)}"]),
            *((4, changes[number]) for number in self.kinds),
        ]

    def _label(self, context: Context) -> str:
        return context.chance.choice([label for label in self.labels if label not in self.unusable])

    def _value(self, context: Context, name: str, label: str | None = None) -> str:
        label = label or self._label(context)
        if name == "p":
            return f"'({context.chance.randrange(9)}{',q' * (self.attributes - 1)})'"
        quoted = f'"{label}"'
        return {"m": f"'{label}'", "d": f"'{label}'", "l": f"'{{{quoted}}}'", "r": f"'[{quoted},{quoted}]'"}.get(
            name, f"'(1,{quoted})'"
        )

    def _insert(self, context: Context, label: str | None = None) -> list[str]:
        values = ", ".join([str(context.next()), *(self._value(context, name, label) for name in self.columns)])
        return [f"INSERT INTO e ({', '.join(['id', *self.columns])}) VALUES ({values})"]

    def _added(self, context: Context) -> list[str]:
        # Some cannot be told from other texts within lists.
        label = context.chance.choice(["l{}", "l{}", "l{}", "two words {}", "a,b{}"]).format(context.next())
        self.labels.append(label)
        if context.is_in_transaction:
            self.unusable.append(label)
            return [f"ALTER TYPE mood ADD VALUE '{label}'"]
        written = self._insert(context, label) if context.chance.random() < 0.9 else []
        return [
            f"ALTER TYPE mood ADD VALUE '{label}'",
            *written,
            *(self._renamed(context, label) if context.chance.random() < 0.7 else []),
        ]

    def _renamed(self, context: Context, label: str) -> list[str]:
        new_label = f"l{context.next()}"
        self.labels = [new_label if old_label == label else old_label for old_label in self.labels]
        self.unusable = [new_label if old_label == label else old_label for old_label in self.unusable]
        return [f"ALTER TYPE mood RENAME VALUE '{label}' TO '{new_label}'"]

    def _rename_and_rename_back(self, context: Context) -> list[str]:
        label = self._label(context)
        renamed = self._renamed(context, label)
        new_label = renamed[0].split("'")[-2]
        # Within another type the label in between is not told from the others, once it is gone.
        written = self._insert(context, new_label)
        self.labels = [label if old_label == new_label else old_label for old_label in self.labels]
        return [*renamed, *written, f"ALTER TYPE mood RENAME VALUE '{new_label}' TO '{label}'"]

    def _exchanged(self, context: Context) -> list[str]:
        first, second = context.chance.sample(self.labels, 2)
        return [
            f"ALTER TYPE mood RENAME VALUE '{a}' TO '{b}'"
            for a, b in ((first, "between"), (second, first), ("between", second))
        ]

    def _attribute_comes_and_goes(self, context: Context) -> list[str]:
        name = f"n{context.next()}"
        self.attributes += 1
        statements = [f"ALTER TYPE pair ADD ATTRIBUTE {name} text"]
        if context.chance.random() < 0.2:
            return statements
        written = self._insert(context)
        self.attributes -= 1
        return [*statements, *written, f"ALTER TYPE pair DROP ATTRIBUTE {name}"]

    def _with_a_new_type(self, context: Context) -> list[str]:
        self.new_type_count += 1
        name = f"new{self.new_type_count}"
        return [
            f"CREATE TYPE {name} AS ENUM ('x', 'y')",
            f"ALTER TABLE e ADD {name} {name} DEFAULT 'x'",
            *self._insert(context),
            *([f"ALTER TYPE {name} RENAME VALUE 'x' TO 'z'"] if context.chance.random() < 0.5 else []),
        ]


__all__ = ["Types"]
