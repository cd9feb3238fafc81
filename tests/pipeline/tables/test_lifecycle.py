"""The phases of a table's life: which may follow which, who sets them, and the page that shows them."""

from __future__ import annotations

import ast
import random
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

from logicalrep.pipeline.table_errors import is_of_one_table
from logicalrep.pipeline.tables import lifecycle
from logicalrep.pipeline.tables.lifecycle import MEANINGS, TRANSITIONS, Life, LifecycleError, Phase
from logicalrep.pipeline.tables.table import Table
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn
from tests.conftest import ROOT

SOURCES = ROOT / "src" / "logicalrep"


def ways() -> dict[Phase, list[Phase]]:
    """Return for each phase the shortest way to it."""
    found: dict[Phase, list[Phase]] = {Phase.OPENING: []}
    queue = [Phase.OPENING]
    for phase in queue:
        for before, after in TRANSITIONS:
            if before is phase and after not in found:
                found[after] = [*found[phase], after]
                queue.append(after)
    return found


def table_in(phase: Phase) -> Table:
    table = Table(TableName("public", "t"), "public/t", 1)
    for each in ways()[phase]:
        table.move(each, f"to {each}")
    return table


def test_each_phase_is_reached_and_has_a_meaning() -> None:
    assert ways().keys() == set(Phase) == MEANINGS.keys()


@pytest.mark.parametrize(("before", "after"), [*product(Phase, Phase)])
def test_the_transitions_of_the_table_happen_and_all_others_are_refused(before: Phase, after: Phase) -> None:
    table = table_in(before)
    reason = table.life.reason
    if (before, after) in TRANSITIONS:
        table.move(after, "because")
        assert (table.phase, table.life.reason) == (after, "because")
    else:
        with pytest.raises(LifecycleError, match=rf"\[TABLE_TRANSITION\] .* {before} .* cannot be {after} next \(bec"):
            table.move(after, "because")
        assert (table.phase, table.life.reason) == (before, reason)


def test_a_mistake_stops_its_table_alone() -> None:
    with pytest.raises(LifecycleError) as raised:
        Life().move(Phase.HELD, "")
    assert is_of_one_table(raised.value)
    # Whatever phase it is in, it can be stopped, and loaded again.
    for phase in set(Phase) - {Phase.LEFT}:
        assert (phase, Phase.STOPPED) in TRANSITIONS
        assert (phase, Phase.QUEUED) in TRANSITIONS


def test_random_lives_end_only_where_a_table_is_left() -> None:
    chance = random.Random(7)
    for _ in range(200):
        table, seen = Table(TableName("public", "t"), "public/t", 1), [Phase.OPENING]
        for _ in range(50):
            after = chance.choice(list(Phase))
            if (table.phase, after) in TRANSITIONS:
                table.move(after, "chance")
                seen.append(after)
            assert table.phase is seen[-1]
            assert (table.stopped is not None) == (table.phase in (Phase.HELD, Phase.STOPPED))
            assert table.state(Lsn(5), 1, None).state == table.phase.stored
        assert Phase.LEFT not in seen[:-1]
        assert Phase.OPENING not in seen[1:]


def test_another_phase_ends_the_job_of_the_one_before_and_what_waited_in_it() -> None:
    table, is_catching_up, saw = table_in(Phase.CATCHING_UP), threading.Event(), []

    def catch_up() -> None:
        is_catching_up.set()
        while table.phase is Phase.CATCHING_UP:
            pass
        saw.append(table.phase)

    with ThreadPoolExecutor(1) as pool:
        table.job = pool.submit(catch_up)
        is_catching_up.wait()
        table.move(Phase.QUEUED, "asked for")
        # It has ended before anything else is done with the table.
        assert saw == [Phase.QUEUED]
    assert table.job is None
    table = table_in(Phase.FOLLOWING)
    table.unproven, table.has_new_labels = pa.table({}), True
    assert not table.is_up_to_date
    table.move(Phase.QUEUED, "its columns changed")
    assert table.unproven is None
    assert not table.has_new_labels


@pytest.mark.parametrize("phase", sorted(set(Phase) - {Phase.OPENING, Phase.LEFT}))
def test_another_process_tells_the_phase_from_what_is_stored(phase: Phase) -> None:
    assert phase is Phase.of_stored(
        phase.stored,
        is_refused=phase is Phase.HELD,
        is_copied=phase is Phase.COPYING,
        is_whole=phase not in (Phase.QUEUED, Phase.COPYING),
    )


def test_the_page_shows_the_transitions_of_now() -> None:
    page = (ROOT / "docs/explanation/lifecycle.md").read_text("utf-8")
    assert page == lifecycle.page(), "run python -m logicalrep.pipeline.tables.lifecycle docs/explanation/lifecycle.md"
    drawn = set(re.findall(r"(?m)^    ([A-Z_]+) --> ([A-Z_]+): \w", page))
    assert drawn == {(a.name, b.name) for a, b in TRANSITIONS if b is not Phase.LEFT}


def moves(path: Path) -> list[tuple[str, str]]:
    """Return the phases that a module's classes move tables to, with the classes."""
    tree = ast.parse(path.read_text("utf-8"))
    return [
        (of.name, argument.attr)
        for of in ast.walk(tree)
        if isinstance(of, ast.ClassDef)
        for call in ast.walk(of)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ("move", "_move")
        for argument in call.args
        if isinstance(argument, ast.Attribute) and isinstance(argument.value, ast.Name) and argument.value.id == "Phase"
    ]


def test_the_classes_that_set_a_phase_are_those_that_the_page_has() -> None:
    found: dict[str, set[str]] = {phase.name: set() for phase in Phase}
    found["OPENING"].add("Life")
    for path in SOURCES.rglob("*.py"):
        for name, phase in moves(path):
            found[phase].add(name)
    assert found == {phase.name: set(setters.split(", ")) for phase, (_, setters) in MEANINGS.items()}


def test_nothing_else_changes_a_phase() -> None:
    assigned = {
        path.relative_to(SOURCES).as_posix()
        for path in (SOURCES / "pipeline").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in ("_phase", "life") and isinstance(node.ctx, ast.Store)
    }
    assert assigned == {"pipeline/tables/lifecycle.py"}
