"""What may happen to a table: random statements, with a rough model of what is there, so that most of them succeed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, ClassVar, NamedTuple

Action = Callable[[], list[str]]
_ALWAYS = 4
"""The weight from which on an action is in each history."""
VALUES = {
    "int": "{n}",
    "bigint": "{n}",
    "text": "'v{n}'",
    "varchar(9)": "'v{n}'",
    "numeric(6,2)": "{n}.25",
    "numeric(9,2)": "{n}.75",
    "numeric": "{n}.125",
    # As inet, the text of a single address has no "/32".
    "cidr": "'10.0.{n}.1/32'",
    "inet": "'10.0.{n}.1/8'",
}
"""A value of each type, by a number below 250."""
WIDER = {"varchar(9)": "text", "numeric(6,2)": "numeric(9,2)", "numeric(9,2)": "numeric"}
REWRITTEN = {"int": "bigint", "cidr": "inet", "text": "varchar(9)", "numeric": "bigint"}


class Statement(NamedTuple):
    """A statement, or the beginning or end of a transaction, in the first or second session of a history."""

    text: str
    session: int = 0
    step: int = 0
    """The number of its transaction or action: statements of several histories are mixed between these."""


@dataclass
class Context:
    """The chance of a history, its numbers, and whether a transaction is open."""

    chance: random.Random
    number: int = 100
    is_in_transaction: bool = False
    taken: dict[CodeType, bool] = field(default_factory=dict)
    """Whether a kind of action happens in this history: where few do, one does not hide another by a load."""

    def takes(self, action: Any) -> bool:
        """Return whether a kind of action happens in this history."""
        if action.__code__ not in self.taken:
            self.taken[action.__code__] = self.chance.random() < 0.3
        return self.taken[action.__code__]

    def next(self) -> int:
        """Return a number that is unique in the history."""
        self.number += 1
        return self.number

    def value(self, type_: str) -> str:
        """Return a value of a type."""
        return VALUES[type_].format(n=self.chance.randrange(250))


@dataclass
class Subject:
    """Tables of a history, and what may happen to them; a copy of it is the model before a transaction."""

    needs_own_entries: ClassVar[bool] = False
    """Whether it writes entries of the publication, which must then be the user's."""
    whole: ClassVar[tuple[str, ...]] = ()
    """The tables whose rows are all published; `id` has the number of the statement that wrote the row."""
    masks: ClassVar[dict[str, object]] = {}
    """The settings of its only table for columns that are masked or left out."""

    def setup(self, context: Context) -> list[str]:
        """Return the statements that make the tables."""
        raise NotImplementedError

    @property
    def published(self) -> tuple[str, ...]:
        """The entries of the publication after the setup."""
        raise NotImplementedError

    def actions(self, context: Context) -> list[tuple[int, Action]]:
        """Return what may happen now, each with its weight."""
        raise NotImplementedError

    def act(self, context: Context) -> list[str]:
        """Return the statements of one random action; the model has them."""
        actions = [
            (weight, action) for weight, action in self.actions(context) if weight >= _ALWAYS or context.takes(action)
        ]
        actions = actions or self.actions(context)
        return context.chance.choices(
            [action for _, action in actions], [max(weight, _ALWAYS) for weight, _ in actions]
        )[0]()

    def on_refresh(self) -> None:
        """Know that there was a refresh of the catalog since the last statement."""


@dataclass
class Columns(Subject):
    """A table whose columns, types, files and keys change; the few names are used again and again."""

    columns: dict[str, str] = field(default_factory=lambda: {"a": "int", "b": "text"})
    key: str = "id"
    generated: str | None = None
    has_index: bool = False
    has_large: bool = False
    spare: ClassVar[tuple[str, ...]] = ("a", "b", "c")
    published: ClassVar[tuple[str, ...]] = ("t",)
    whole: ClassVar[tuple[str, ...]] = ("t",)

    def setup(self, context: Context) -> list[str]:
        self.columns = {
            name: context.chance.choice(["int", "text", "cidr", "cidr", *VALUES])
            for name in self.spare[: context.chance.randint(1, 3)]
        }
        listed = "".join(f", {name} {type_}" for name, type_ in self.columns.items())
        if context.chance.random() < 0.4:
            self.generated = "g"
            listed += ", g int GENERATED ALWAYS AS (id * 2) STORED"
        self.has_large = context.chance.random() < 0.3
        if self.has_large:
            listed += ", big text"
        return [
            f"CREATE TABLE t (id int NOT NULL, k int NOT NULL DEFAULT 1{listed}, CONSTRAINT t_key PRIMARY KEY (id))",
            *(["ALTER TABLE t ALTER big SET STORAGE EXTERNAL"] if self.has_large else []),
            *(["ALTER TABLE t REPLICA IDENTITY FULL"] if context.chance.random() < 0.4 else []),
            *(statement for number in (1, 2, 3) for statement in self._insert(context, number)),
        ]

    def actions(self, context: Context) -> list[tuple[int, Action]]:
        free = [name for name in self.spare if name not in self.columns]
        names = list(self.columns)
        # The server writes none of their values anew, and their texts are others afterwards.
        kept = [name for name, type_ in self.columns.items() if type_ == "cidr"]
        choices: list[tuple[int, Action]] = [
            (8, lambda: self._insert(context, context.next())),
            (6, lambda: self._update(context)),
            (2, lambda: [f"DELETE FROM t WHERE id % 4 = {context.chance.randrange(4)}"]),
            (1, lambda: ["TRUNCATE t"]),
            (1, lambda: self._harmless(context)),
            (2, lambda: [f"ALTER TABLE t REPLICA IDENTITY {context.chance.choice(['FULL', 'DEFAULT'])}"]),
            (2, lambda: self._rekey(context)),
            (1, lambda: self._index(context)),
            (2 if self.generated is None else _ALWAYS, lambda: self._generated(context)),
        ]
        if free:
            choices.append((3, lambda: self._add(context, context.chance.choice(free))))
        if names:
            choices += [
                (3, lambda: self._drop(context.chance.choice(names))),
                (3, lambda: self._drop_and_add(context, context.chance.choice([*names, names[-1], names[-1]]))),
                (3, lambda: self._retype(context, context.chance.choice([*names, *kept, *kept, *kept]))),
            ]
        if names and free:
            choices.append((3, lambda: self._rename(context.chance.choice(names), context.chance.choice(free))))
        if len(names) > 1:
            choices.append((3, lambda: self._exchange(*context.chance.sample(names, 2))))
        if not context.is_in_transaction:
            choices.append((1, lambda: [context.chance.choice(["VACUUM FULL t", "CLUSTER t USING t_key"])]))
        return choices

    def _insert(self, context: Context, number: int) -> list[str]:
        given = {name: context.value(type_) for name, type_ in self.columns.items() if context.chance.random() < 0.7}
        if "k" in self.key and context.chance.random() < 0.4:
            given["k"], number = str(context.next()), context.chance.randrange(1, 4)
        if self.has_large:
            given["big"] = f"repeat('large{number}', 350)"
        names, values = (", ".join(part) for part in (["id", *given], [str(number), *given.values()]))
        return [f"INSERT INTO t ({names}) VALUES ({values})"]

    def _update(self, context: Context) -> list[str]:
        rows = context.chance.choice(["", " WHERE id = 1", " WHERE id = 2", " WHERE id > 100", " WHERE k > 1"])
        if context.chance.random() < 0.2:
            change = context.chance.choice(["id = id + 1000", "k = k + 1000"])
        elif self.columns and context.chance.random() < 0.9:
            name = context.chance.choice(list(self.columns))
            change = f"{name} = {context.value(self.columns[name])}"
        else:
            change = "k = k"
        return [f"UPDATE t SET {change}{rows}"]

    def _harmless(self, context: Context) -> list[str]:
        return [
            context.chance.choice(
                [
                    "ALTER TABLE t ALTER k SET DEFAULT 7",
                    "GRANT SELECT ON t TO pg_monitor",
                    "COMMENT ON TABLE t IS 'one'",
                    "ALTER TABLE t ALTER id SET STATISTICS 50",
                    "ANALYZE t",
                ]
            )
        ]

    def _add(self, context: Context, name: str) -> list[str]:
        type_ = self.columns[name] = context.chance.choice(["int", "int", "text", *VALUES])
        default = f" DEFAULT {context.value(type_)}" if context.chance.random() < 0.5 else ""
        if type_ == "int" and context.chance.random() < 0.1:
            default = " DEFAULT (random() * 1000)::int"
        return [f"ALTER TABLE t ADD {name} {type_}{default}"]

    def _drop(self, name: str) -> list[str]:
        del self.columns[name]
        return [f"ALTER TABLE t DROP {name}"]

    def _drop_and_add(self, context: Context, name: str) -> list[str]:
        if context.chance.random() < 0.4:
            self.columns[name] = context.chance.choice(["int", "text"])
        # In the model it is the last one now, as it is in the table.
        type_ = self.columns.pop(name)
        self.columns[name] = type_
        default = f" DEFAULT {context.value(type_)}" if context.chance.random() < 0.4 else ""
        update = [f"UPDATE t SET {name} = {context.value(type_)}"] if context.chance.random() < 0.5 else []
        after = self._insert(context, context.next()) if context.chance.random() < 0.5 else []
        return [*update, f"ALTER TABLE t DROP {name}, ADD {name} {type_}{default}", *after]

    def _retype(self, context: Context, name: str) -> list[str]:
        type_ = self.columns[name]
        if type_ in WIDER and context.chance.random() < 0.7:
            self.columns[name] = WIDER[type_]
            return [f"ALTER TABLE t ALTER {name} TYPE {WIDER[type_]}"]
        if type_ == "int" and context.chance.random() < 0.5:
            return [f"ALTER TABLE t ALTER {name} TYPE int USING {name} + 1000"]
        new_type = self.columns[name] = REWRITTEN.get(type_, "text")
        using = "" if type_ == "cidr" else f" USING {name}::text::{new_type}"
        return [f"ALTER TABLE t ALTER {name} TYPE {new_type}{using}"]

    def _rename(self, name: str, new_name: str) -> list[str]:
        self.columns = {new_name if column == name else column: type_ for column, type_ in self.columns.items()}
        return [f"ALTER TABLE t RENAME {name} TO {new_name}"]

    def _exchange(self, first: str, second: str) -> list[str]:
        of = {first: second, second: first}
        self.columns = {of.get(name, name): type_ for name, type_ in self.columns.items()}
        return [f"ALTER TABLE t RENAME {a} TO {b}" for a, b in ((first, "x"), (second, first), ("x", second))]

    def _rekey(self, context: Context) -> list[str]:
        self.key = context.chance.choice([key for key in ("id", "id, k", "k, id") if key != self.key])
        changed = f"ALTER TABLE t DROP CONSTRAINT t_key, ADD CONSTRAINT t_key PRIMARY KEY ({self.key})"
        return [changed, *(self._insert(context, context.next()) if context.chance.random() < 0.7 else [])]

    def _index(self, context: Context) -> list[str]:
        if self.has_index:
            self.has_index = False
            return ["DROP INDEX t_index", *(["ALTER TABLE t REPLICA IDENTITY DEFAULT"] if context.number % 2 else [])]
        self.has_index = True
        return [
            "CREATE UNIQUE INDEX t_index ON t (k, id)",
            "ALTER TABLE t REPLICA IDENTITY USING INDEX t_index",
        ]

    def _generated(self, context: Context) -> list[str]:
        if self.generated is None:
            self.generated = "g"
            return ["ALTER TABLE t ADD g int GENERATED ALWAYS AS (id * 2) STORED"]
        how = context.chance.choice(
            ["DROP g", "ALTER g DROP EXPRESSION", "ALTER g DROP EXPRESSION", "ALTER g SET EXPRESSION AS (id * 3)"]
        )
        if how == "DROP g":
            self.generated = None
        return [f"ALTER TABLE t {how}"]


@dataclass
class Plain(Subject):
    """A table with one plain change of its columns or its key between two refreshes: it is followed without a load."""

    columns: dict[str, str] = field(default_factory=lambda: {"a": "varchar(9)", "b": "numeric(6,2)", "c": "int"})
    key: str = "id"
    is_changed: bool = False
    published: ClassVar[tuple[str, ...]] = ("p",)
    whole: ClassVar[tuple[str, ...]] = ("p",)

    def setup(self, context: Context) -> list[str]:
        listed = "".join(f", {name} {type_}" for name, type_ in self.columns.items())
        return [
            f"CREATE TABLE p (id int NOT NULL, k int NOT NULL DEFAULT 1{listed}, CONSTRAINT p_key PRIMARY KEY (id))",
            *(statement for _ in range(3) for statement in self._insert(context)),
        ]

    def actions(self, context: Context) -> list[tuple[int, Action]]:
        choices: list[tuple[int, Action]] = [
            (4, lambda: self._insert(context)),
            (2, lambda: [f"UPDATE p SET k = k + 1 WHERE id % 2 = {context.chance.randrange(2)}"]),
            (1, lambda: [f"DELETE FROM p WHERE id % 5 = {context.chance.randrange(5)}"]),
        ]
        if not self.is_changed and not context.is_in_transaction:
            choices.append((4, lambda: self._change(context)))
        return choices

    def on_refresh(self) -> None:
        self.is_changed = False

    def _insert(self, context: Context) -> list[str]:
        given = {name: context.value(type_) for name, type_ in self.columns.items()}
        names, values = (", ".join(part) for part in (["id", *given], [str(context.next()), *given.values()]))
        return [f"INSERT INTO p ({names}) VALUES ({values})"]

    def _change(self, context: Context) -> list[str]:
        self.is_changed = True
        name, number = context.chance.choice(list(self.columns)), context.next()
        kind = context.chance.randrange(5)
        if kind == 0 and len(self.columns) > 1:
            del self.columns[name]
            return [f"ALTER TABLE p DROP {name}"]
        if kind == 1:
            self.columns = {f"r{number}" if column == name else column: of for column, of in self.columns.items()}
            return [f"ALTER TABLE p RENAME {name} TO r{number}"]
        # A numeric that loses its bound is loaded again where NULL stands for what it cannot hold.
        if kind == 2 and self.columns[name] in WIDER.keys() - {"numeric(9,2)"}:
            self.columns[name] = WIDER[self.columns[name]]
            return [f"ALTER TABLE p ALTER {name} TYPE {self.columns[name]}"]
        if kind == 3:
            self.key = "id, k" if self.key == "id" else "id"
            return [f"ALTER TABLE p DROP CONSTRAINT p_key, ADD CONSTRAINT p_key PRIMARY KEY ({self.key})"]
        self.columns[f"n{number}"] = context.chance.choice(["int", "varchar(9)", "numeric(6,2)"])
        default = context.chance.choice(["", f" DEFAULT {context.value(self.columns[f'n{number}'])}"])
        return [f"ALTER TABLE p ADD n{number} {self.columns[f'n{number}']}{default}"]


__all__ = ["Columns", "Context", "Plain", "Statement", "Subject"]
