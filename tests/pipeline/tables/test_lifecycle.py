"""The phases of a table's life: which may follow which, who sets them, and the page that shows them."""

from __future__ import annotations

import ast
import random
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast, get_args

import pytest

from logicalrep.arrow.changes.table_changes import TableChanges
from logicalrep.observe.figures import Phase, Standing
from logicalrep.pipeline.buffer.pending_loads import HeldCommit, TableLoad
from logicalrep.pipeline.table_errors import is_table_error
from logicalrep.pipeline.tables import lifecycle
from logicalrep.pipeline.tables.lifecycle import MEANINGS, TRANSITIONS, LifecycleError
from logicalrep.pipeline.tables.phases import (
    CatchingUp,
    CatchUp,
    Copying,
    Following,
    Held,
    Opening,
    Queued,
    Stopped,
    TablePhase,
    Unproven,
    Unpublished,
)
from logicalrep.pipeline.tables.table import Table
from logicalrep.transactions.table_names import TableName
from tests.conftest import ROOT

SOURCES = ROOT / "src" / "logicalrep"
PHASES = {phase.__name__: phase.name for phase in get_args(TablePhase)}


def ways() -> dict[Phase, list[Phase]]:
    """Return for each phase the shortest way to it."""
    paths: dict[Phase, list[Phase]] = {Phase.OPENING: []}
    queue = [Phase.OPENING]
    for phase in queue:
        for source, target in TRANSITIONS:
            if source is phase and target not in paths:
                paths[target] = [*paths[phase], target]
                queue.append(target)
    return paths


def data(phase: Phase, reason: str) -> TablePhase:
    """Return a phase with what a table may have in it."""
    copy = cast(Any, SimpleNamespace(stored_tables=[], is_whole_after=lambda pending: True))
    pending = TableLoad("public/t", "because")
    phases: dict[Phase, TablePhase] = {
        Phase.OPENING: Opening(reason),
        Phase.QUEUED: Queued(reason, None, pending),
        Phase.COPYING: Copying(reason, None, pending),
        Phase.CATCHING_UP: CatchingUp(reason, CatchUp(None, pending)),
        Phase.FOLLOWING: Following(reason, copy),
        Phase.HELD: Held(reason, copy, HeldCommit("public/t", "0/9", 1.0)),
        Phase.STOPPED: Stopped(reason, None, None),
        Phase.UNPUBLISHED: Unpublished(reason),
    }
    return phases[phase]


def table_in(phase: Phase) -> Table:
    table = Table(TableName("public", "t"), "public/t", 1)
    for step in ways()[phase]:
        table.move(data(step, f"to {step}"))
    return table


def test_each_phase_is_reached_and_has_a_meaning() -> None:
    assert ways().keys() == set(Phase) == MEANINGS.keys()


@pytest.mark.parametrize(("source", "target"), [*product(Phase, Phase)])
def test_listed_transitions_happen_and_all_other_transitions_are_refused(source: Phase, target: Phase) -> None:
    table = table_in(source)
    phase = table.phase
    if (source, target) in TRANSITIONS:
        table.move(data(target, "because"))
        assert (table.phase.name, table.phase.reason) == (target, "because")
    else:
        with pytest.raises(LifecycleError, match=rf"\[TABLE_TRANSITION\] .* {source} .* cannot be {target} next \(bec"):
            table.move(data(target, "because"))
        assert table.phase is phase


def test_a_refused_transition_is_an_error_of_its_table_alone() -> None:
    with pytest.raises(LifecycleError) as raised:
        Table(TableName("public", "t"), "public/t", 1).move(data(Phase.HELD, ""))
    assert is_table_error(raised.value)
    # Whatever phase it is in, it can be stopped, and loaded again.
    for phase in set(Phase) - {Phase.UNPUBLISHED}:
        assert (phase, Phase.STOPPED) in TRANSITIONS
        assert (phase, Phase.QUEUED) in TRANSITIONS


def test_random_transitions_end_only_in_unpublished() -> None:
    chance = random.Random(7)
    for _ in range(200):
        table, seen = Table(TableName("public", "t"), "public/t", 1), [Phase.OPENING]
        for _ in range(50):
            after = chance.choice(list(Phase))
            if (table.phase.name, after) in TRANSITIONS:
                table.move(data(after, "chance"))
                seen.append(after)
            assert table.phase.name is seen[-1]
            assert (table.stopped is not None) == (seen[-1].standing is Standing.STOPPED)
            assert table.takes_changes == (seen[-1] not in (Phase.OPENING, Phase.STOPPED, Phase.UNPUBLISHED))
            assert table.is_up_to_date == (seen[-1] is Phase.FOLLOWING)
        assert Phase.UNPUBLISHED not in seen[:-1]
        assert Phase.OPENING not in seen[1:]


def test_a_new_phase_ends_the_work_and_drops_the_unproven_changes_of_the_previous_phase() -> None:
    table, is_catching_up, saw = table_in(Phase.QUEUED), threading.Event(), list[bool]()
    work = CatchUp(None, TableLoad("public/t", "because"))

    def catch_up(work: CatchUp) -> None:
        is_catching_up.set()
        while not work.is_ending:
            pass
        saw.append(True)

    with ThreadPoolExecutor(1) as pool:
        table.move(CatchingUp("its rows are copied", work))
        work.begin(pool, catch_up)
        is_catching_up.wait()
        assert not work.is_done
        table.move(data(Phase.QUEUED, "asked for"))
        # It has ended before anything else is done with the table.
        assert saw == [True]
    table = table_in(Phase.FOLLOWING)
    assert isinstance(table.phase, Following)
    table.update(replace(table.phase, unproven=Unproven(TableChanges(), has_new_labels=True)))
    assert not table.is_up_to_date
    table.move(data(Phase.QUEUED, "its columns changed"))
    assert table.unproven is None


def test_the_data_of_a_phase_is_only_taken_in_that_phase() -> None:
    table = table_in(Phase.FOLLOWING)
    with pytest.raises(LifecycleError, match="that is following cannot take the data of queued"):
        table.update(data(Phase.QUEUED, "because"))
    assert table.phase.name is Phase.FOLLOWING


def test_the_page_shows_the_current_transitions() -> None:
    page = (ROOT / "docs/explanation/lifecycle.md").read_text("utf-8")
    assert page == lifecycle.page(), "run python -m logicalrep.pipeline.tables.lifecycle docs/explanation/lifecycle.md"
    drawn = set(re.findall(r"(?m)^    ([A-Z_]+) --> ([A-Z_]+): \w", page))
    assert drawn == {(a.name, b.name) for a, b in TRANSITIONS if b is not Phase.UNPUBLISHED}


def moves(path: Path) -> list[tuple[str, str]]:
    """Return the phases that a module's classes make, with the classes."""
    tree = ast.parse(path.read_text("utf-8"))
    return [
        (of.name, PHASES[call.func.id].name)
        for of in ast.walk(tree)
        if isinstance(of, ast.ClassDef)
        for call in ast.walk(of)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in PHASES
    ]


def test_the_page_names_the_classes_that_set_a_phase() -> None:
    classes: dict[str, set[str]] = {phase.name: set() for phase in Phase}
    for path in SOURCES.rglob("*.py"):
        for name, phase in moves(path):
            classes[phase].add(name)
    assert classes == {phase.name: set(setters.split(", ")) for phase, (_, setters) in MEANINGS.items()}


def test_nothing_else_changes_a_phase() -> None:
    assigned = {
        path.relative_to(SOURCES).as_posix()
        for path in (SOURCES / "pipeline").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "_phase" and isinstance(node.ctx, ast.Store)
    }
    assert assigned == {"pipeline/tables/table.py"}
