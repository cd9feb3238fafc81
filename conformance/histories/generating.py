"""Random histories: statements of one or two subjects, alone, in transactions, in savepoints, and in two sessions."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from conformance.histories.subjects import Columns, Context, Plain, Statement, Subject
from conformance.histories.subjects_keys import Keys
from conformance.histories.subjects_maintenance import Maintenance
from conformance.histories.subjects_masks import Masked
from conformance.histories.subjects_names import Entries, Swaps
from conformance.histories.subjects_parts import Parts
from conformance.histories.subjects_types import Types

SUBJECTS: dict[type[Subject], int] = {
    Columns: 8,
    Plain: 1,
    Parts: 5,
    Types: 6,
    Swaps: 2,
    Entries: 6,
    Keys: 4,
    Masked: 1,
}
"""What histories are about, each with its weight."""
OF_SCHEMAS: dict[type[Subject], int] = {Maintenance: 4, Plain: 1}
"""The same for a publication of schemas, which has no column lists."""


# Rows that were there from the beginning have lower numbers.
_INSERTED = re.compile(r"INSERT INTO \w+ \(id\b.* VALUES \((\d{3,})")


@dataclass(frozen=True)
class History:
    """Statements in a schema of their own, `{schema}` in the statements; the server may refuse some statements."""

    name: str
    """The schema's name."""
    setup: tuple[str, ...]
    """The statements before all tables are loaded."""
    entries: tuple[str, ...]
    """The entries of the publication then."""
    phases: tuple[tuple[Statement, ...], ...]
    """The statements of each phase; at the end of each the catalog is refreshed."""
    is_plain: bool = False
    """Whether no load may be needed."""
    whole: frozenset[str] = frozenset()
    """The tables whose every version has all rows of a transaction or none."""
    masks: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """The settings of tables with masks, by their names."""

    @property
    def transactions(self) -> list[set[int]]:
        """The numbers in `id` of the rows that one transaction inserts each."""
        inserted = []
        for statements in self.phases:
            for _, part in groupby(statements, lambda statement: statement.step):
                texts = [statement.text for statement in part if not statement.session]
                if texts[:1] == ["BEGIN"] and texts[-1].startswith("COMMIT"):
                    inserted.append({int(number) for text in texts for number in _INSERTED.findall(text)})
        return inserted

    def __str__(self) -> str:
        """Return the history as SQL."""
        lines = [f"CREATE SCHEMA {self.name}; CREATE SCHEMA {self.name}_b; SET search_path = {self.name};"]
        lines += [f"{text};" for text in self.setup]
        lines += [f"ALTER PUBLICATION p ADD TABLE {entry};" for entry in self.entries]
        for number, phase in enumerate(self.phases, 1):
            lines += [f"-- phase {number}"]
            lines += [
                f"{statement.text};{' -- in a second session' if statement.session else ''}" for statement in phase
            ]
        return "\n".join(lines).replace("{schema}", self.name)


def history(
    name: str,
    seed: object,
    phases: int,
    *,
    with_entries: bool = True,
    of_schemas: bool = False,
    about: Collection[type[Subject]] | None = None,
) -> History:
    """Return a history.

    Args:
        name: the name of the history, and of its schema.
        seed: the seed of its statements.
        phases: the number of its phases.
        with_entries: whether it may write entries of the publication, which is then the user's.
        of_schemas: whether the publication has schemas.
        about: the subjects that it may be about; None for all.
    """
    context = Context(random.Random(f"{seed}/{name}"))
    weights = {
        kind: weight
        for kind, weight in (OF_SCHEMAS if of_schemas else SUBJECTS).items()
        if (with_entries or not kind.needs_own_entries) and (about is None or kind in about)
    }
    kinds = context.chance.choices([*weights], [*weights.values()], k=1 if context.chance.random() < 0.8 else 2)
    if Plain in kinds:
        # What others do in a transaction may be a reason to load.
        kinds = [Plain]
    subjects = [kind() for kind in dict.fromkeys(kinds)]
    setup = [statement for subject in subjects for statement in subject.setup(context)]
    entries = tuple(entry for subject in subjects for entry in subject.published)
    phase_statements = []
    for _ in range(phases):
        statements: list[Statement] = []
        for subject in subjects:
            subject.on_refresh()
        for step in range(context.chance.randint(2, 6)):
            subjects, more = _action_or_transaction(subjects, context)
            statements += (new_statement._replace(step=step) for new_statement in more)
        phase_statements.append(tuple(statements))
    return History(
        name,
        tuple(setup),
        entries,
        tuple(phase_statements),
        Plain in kinds,
        frozenset(table for subject in subjects for table in subject.whole),
        {table: subject.masks for subject in subjects if subject.masks for table in subject.published},
    )


def _action_or_transaction(subjects: list[Subject], context: Context) -> tuple[list[Subject], list[Statement]]:
    """Return one action or a transaction of some, and the model after it."""
    chance = context.chance
    kind = chance.random()
    if kind < 0.5 or (kind > 0.9 and isinstance(subjects[0], Plain)):
        return subjects, _statements(chance.choice(subjects).act(context))
    if kind < 0.9:
        return _transaction(subjects, context)
    # An id that is given early, of a transaction that commits late.
    first = [Statement("BEGIN", 1), Statement("SELECT pg_current_xact_id()", 1)]
    meanwhile = _statements(chance.choice(subjects).act(context))
    context.is_in_transaction = True
    last = [Statement(text, 1) for text in chance.choice(subjects).act(context)]
    context.is_in_transaction = False
    return subjects, [*first, *meanwhile, *last, Statement("COMMIT", 1)]


def _transaction(subjects: list[Subject], context: Context) -> tuple[list[Subject], list[Statement]]:
    chance, previous = context.chance, copy.deepcopy(subjects)
    texts = ["BEGIN"]
    context.is_in_transaction = True
    for number in range(chance.randint(1, 4)):
        model = copy.deepcopy(subjects)
        action = chance.choice(subjects).act(context)
        kind = chance.random()
        if kind < 0.7:
            texts += action
        else:
            texts += [f"SAVEPOINT s{number}", *action, f"{'RELEASE' if kind < 0.85 else 'ROLLBACK TO'} s{number}"]
            if kind >= 0.85:
                subjects = model
    context.is_in_transaction = False
    ends = {"COMMIT": 14, "ROLLBACK": 2, "COMMIT PREPARED": 3, "ROLLBACK PREPARED": 1}
    end = chance.choices([*ends], [*ends.values()])[0]
    if "PREPARED" in end:
        gid = f"'{{schema}}_{context.next()}'"
        texts.append(f"PREPARE TRANSACTION {gid}")
        end = f"{end} {gid}"
    return previous if "ROLLBACK" in end else subjects, _statements([*texts, end])


def _statements(texts: Sequence[str]) -> list[Statement]:
    return [Statement(text) for text in texts]


__all__ = ["SUBJECTS", "History", "Statement", "history"]
