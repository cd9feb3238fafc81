"""The phase of an opened table: from its checkpoint and its pending load, or a load."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from logicalrep.observe.figures import Phase, Standing
from logicalrep.pipeline.buffer.pending_loads import (
    ASKED_FOR,
    BufferedChanges,
    HeldCommit,
    PartitionsLoad,
    PendingLoad,
    TableLoad,
)
from logicalrep.pipeline.formats.since_checkpoint import SinceCheckpoint
from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.state.table_state import Buffered, TableState
from logicalrep.pipeline.tables.openings import Opened, Openings
from logicalrep.pipeline.tables.phases import CatchingUp, CatchUp, Copy, Queued
from logicalrep.pipeline.tables.table import Table
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn

T, FOLDER = TableName("public", "t"), "public/t"
NOW, OTHER = TableSettings(), TableSettings(history=True)


@dataclass
class Loads:
    """Moves tables as LoadCoordinator does, without anything that copies."""

    cleared: list[str]
    reasons: list[str] = field(default_factory=list)

    def clear_reloads(self, table: Table) -> None:
        self.cleared.append("loads")

    def load(self, table: Table, reason: str) -> None:
        self.reasons.append(reason)
        table.move(Queued(reason, table.copy, TableLoad(FOLDER, reason)))

    def queue(self, table: Table, queued: Queued) -> None:
        assert (queued.copy, queued.pending) == (table.copy, table.pending)
        table.move(queued)

    def catch_up(self, table: Table, reason: str, copy: Copy, pending: PendingLoad, action: object) -> None:
        table.move(CatchingUp(reason, CatchUp(copy, pending)))


@dataclass
class Writer:
    """A destination with one table, or without any."""

    has_companions: bool
    has_buffer: bool
    cleared: list[str] = field(default_factory=list)

    def copy_of(self, stored: StoredTable) -> Copy:
        return Copy(stored, "1/1/load 1")

    def open_companions(
        self, copy: Copy, since: SinceCheckpoint, previous: object
    ) -> tuple[Copy, SinceCheckpoint, bool]:
        return copy, since, self.has_companions

    def clear(self, table: Table) -> None:
        self.cleared.append("buffer")

    def open(self, table: Table) -> None: ...

    def has_all(self, table: Table, copy: Copy, end: Lsn) -> bool:
        assert end == Lsn(9)
        return self.has_buffer

    def apply(self, table: Table) -> None: ...


def state(phase: Phase = Phase.FOLLOWING) -> TableState:
    error = "why" if phase.standing is Standing.STOPPED else None
    return TableState(FOLDER, 1, Lsn(5), "load 1", 1, phase, error, 1)


def buffering(load: str | None) -> TableState:
    return replace(state(Phase.QUEUED), buffered=Buffered(Lsn(9), load))


def open_table(
    *,
    previous: TableState | None = state(),  # noqa: B008
    pending: PendingLoad | None = None,
    stored: Any = True,
    relation: int = 1,
    settings: TableSettings = NOW,
    foreign_change: str | None = None,
    restored: str | None = None,
    has_buffer: bool = True,
    has_companions: bool = True,
    has_other_masks: bool = False,
    was_unpublished: bool = False,
) -> tuple[Phase, list[str], list[str]]:
    """Return the phase of a table after it was opened, the reasons of loads, and what was removed."""
    writer = Writer(has_companions, has_buffer)
    loads = Loads(writer.cleared)
    openings = Openings(
        cast(
            Any,
            SimpleNamespace(
                settings=SimpleNamespace(of=lambda name: NOW),
                proven_before=None,
                observer=SimpleNamespace(on_event=lambda event: None),
            ),
        ),
        State(tables={} if previous is None else {str(T): previous}),
        cast(Any, SimpleNamespace(has_other_masks=lambda name: has_other_masks)),
        cast(Any, writer),
        cast(Any, writer),
        cast(Any, loads),
        {} if pending is None else {FOLDER: pending},
    )
    table, opened = Table(T, FOLDER, 1), None
    if stored:
        spec = SimpleNamespace(settings=settings, relation=SimpleNamespace(relation_id=relation), skipped=())
        log = SimpleNamespace(table=spec, applied=lambda application: Lsn(5), load="load 1")
        opened = Opened(cast(Any, log), SinceCheckpoint(restored, foreign_change))
    openings.resume(table, opened, was_unpublished=was_unpublished)
    return table.phase.name, loads.reasons, writer.cleared


GONE = "it was loading at the last checkpoint, but its pending load is missing"
LOST = "the buffered changes before 0/9 are missing"
OLD = "its pending load was restored to an earlier state, so its buffered changes may differ"
NOT_WHOLE = TableLoad(FOLDER, "its columns changed", "load 1")
WHOLE = TableLoad(FOLDER, "its columns changed", "load 0")
BUFFERED = BufferedChanges(FOLDER, "its changes are buffered")
REFUSED = HeldCommit(FOLDER, "0/9", 1.0)
PARTITION = PartitionsLoad(FOLDER, "a partition", (7,))
ASKED = TableLoad(FOLDER, ASKED_FOR, "load 1")


@pytest.mark.parametrize(
    ("facts", "phase", "reasons"),
    [
        ({}, Phase.FOLLOWING, []),
        ({"stored": False}, Phase.QUEUED, ["new table"]),
        ({"stored": False, "previous": None}, Phase.QUEUED, ["new table"]),
        ({"stored": False, "pending": ASKED}, Phase.QUEUED, ["asked for"]),
        ({"previous": None}, Phase.QUEUED, ["published again"]),
        ({"was_unpublished": True}, Phase.QUEUED, ["published again"]),
        ({"relation": 2}, Phase.QUEUED, ["another table has its name"]),
        (
            {"relation": 2, "previous": replace(state(Phase.STOPPED), oid=2)},
            Phase.QUEUED,
            ["another table has its name"],
        ),
        ({"foreign_change": "rows"}, Phase.QUEUED, ["rows"]),
        ({"previous": state(Phase.QUEUED)}, Phase.QUEUED, [GONE]),
        ({"previous": buffering("load 1"), "pending": WHOLE}, Phase.CATCHING_UP, []),
        ({"previous": buffering("load 1"), "pending": WHOLE, "has_buffer": False}, Phase.QUEUED, [LOST]),
        ({"previous": buffering("load 1"), "pending": REFUSED, "has_buffer": False}, Phase.QUEUED, [LOST]),
        ({"previous": buffering(None), "pending": WHOLE}, Phase.QUEUED, [OLD]),
        # Its copied rows were committed after the checkpoint.
        ({"previous": replace(buffering(None), load="load 0"), "pending": WHOLE}, Phase.CATCHING_UP, []),
        ({"previous": buffering(None), "pending": NOT_WHOLE, "has_buffer": False}, Phase.QUEUED, []),
        ({"foreign_change": "rows", "pending": WHOLE}, Phase.QUEUED, ["rows"]),
        ({"restored": "old"}, Phase.QUEUED, ["old"]),
        ({"restored": "old", "pending": WHOLE}, Phase.QUEUED, ["old"]),
        ({"restored": "old", "pending": REFUSED}, Phase.QUEUED, ["old"]),
        ({"restored": "old", "pending": PARTITION}, Phase.QUEUED, ["old"]),
        ({"restored": "old", "pending": NOT_WHOLE}, Phase.QUEUED, []),
        ({"restored": "old", "previous": state(Phase.STOPPED)}, Phase.STOPPED, []),
        ({"has_companions": False}, Phase.QUEUED, ["a companion table is missing, or belongs to another load"]),
        # The next refresh compares the settings.
        ({"settings": OTHER}, Phase.FOLLOWING, []),
        ({"previous": state(Phase.STOPPED)}, Phase.STOPPED, []),
        ({"previous": state(Phase.STOPPED), "settings": OTHER}, Phase.QUEUED, ["its settings changed"]),
        ({"previous": state(Phase.STOPPED), "pending": WHOLE}, Phase.STOPPED, []),
        ({"previous": state(Phase.STOPPED), "pending": NOT_WHOLE}, Phase.QUEUED, []),
        ({"previous": state(Phase.QUEUED), "pending": NOT_WHOLE}, Phase.QUEUED, []),
        ({"previous": state(Phase.QUEUED), "pending": NOT_WHOLE, "relation": 2}, Phase.QUEUED, []),
        ({"previous": state(Phase.QUEUED), "pending": WHOLE}, Phase.CATCHING_UP, []),
        ({"previous": state(Phase.CATCHING_UP), "pending": BUFFERED}, Phase.CATCHING_UP, []),
        ({"was_unpublished": True, "pending": BUFFERED}, Phase.QUEUED, ["published again"]),
        ({"previous": None, "pending": WHOLE}, Phase.QUEUED, ["published again"]),
        ({"was_unpublished": True, "pending": WHOLE}, Phase.QUEUED, ["published again"]),
        ({"previous": state(Phase.STOPPED), "pending": REFUSED}, Phase.CATCHING_UP, []),
        ({"previous": None, "pending": REFUSED}, Phase.QUEUED, ["published again"]),
        ({"was_unpublished": True, "pending": REFUSED}, Phase.QUEUED, ["published again"]),
        ({"relation": 2, "pending": REFUSED}, Phase.QUEUED, ["another table has its name"]),
        ({"foreign_change": "rows", "pending": REFUSED}, Phase.QUEUED, ["rows"]),
        ({"settings": OTHER, "pending": REFUSED}, Phase.QUEUED, ["its settings changed"]),
        ({"previous": state(Phase.QUEUED), "pending": PARTITION}, Phase.QUEUED, []),
        ({"previous": state(Phase.STOPPED), "pending": PARTITION}, Phase.STOPPED, []),
        ({"settings": OTHER, "pending": PARTITION}, Phase.QUEUED, ["its settings changed"]),
        ({"was_unpublished": True, "pending": PARTITION}, Phase.QUEUED, ["published again"]),
        ({"relation": 2, "pending": PARTITION}, Phase.QUEUED, ["another table has its name"]),
        ({"foreign_change": "rows", "pending": PARTITION}, Phase.QUEUED, ["rows"]),
        (
            {"has_companions": False, "pending": PARTITION},
            Phase.QUEUED,
            ["a companion table is missing, or belongs to another load"],
        ),
    ],
    ids=str,
)
def test_an_opened_table_resumes_its_phase_or_is_loaded(
    facts: dict[str, Any], phase: Phase, reasons: list[str]
) -> None:
    assert open_table(**facts)[:2] == (phase, reasons)


@pytest.mark.parametrize(
    ("facts", "removed"),
    [
        ({"pending": NOT_WHOLE}, []),
        ({"pending": NOT_WHOLE, "has_other_masks": True}, ["buffer"]),
        ({"pending": WHOLE, "has_other_masks": True}, []),
        ({"pending": PARTITION}, []),
        ({"pending": ASKED}, ["loads"]),
    ],
    ids=str,
)
def test_only_changes_under_other_masks_are_removed(facts: dict[str, Any], removed: list[str]) -> None:
    assert open_table(**facts)[2] == removed
