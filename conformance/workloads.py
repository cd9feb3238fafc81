"""The workloads: cases, random schema changes, and kills, each with one tool on one database."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from conformance.cases import Case
from conformance.histories.generating import History
from conformance.histories.statements import Part, Players, interleaved, setup_statements
from conformance.rows import TABLES, Writer
from conformance.run import Run, ToolFailedError
from conformance.verdicts import Verdict

_MOMENTS = "follows", "stopped", "killed"
"""What happens to the tool in a phase of histories."""
_SECOND_KILL = 3.0
"""The most seconds from the first to the second kill of a phase: the tool resumes between them."""
_LIFE = 1.0, 15.0
"""The least and the most seconds between a start and a kill."""


@dataclass(frozen=True)
class Outcome:
    """What a workload found of one tool."""

    verdicts: dict[str, Verdict] = field(default_factory=dict)
    """The verdicts by table, and by phase if there are phases."""
    statements: int = 0
    """The statements or transactions that ran while the tool was compared."""
    kills: int = 0
    exits: int = 0
    """The times that the tool exited by itself."""

    def __add__(self, other: Outcome) -> Outcome:
        """Return the outcome of both; `other` is of another seed."""
        return Outcome(
            self.verdicts | other.verdicts,
            self.statements + other.statements,
            self.kills + other.kills,
            self.exits + other.exits,
        )


def play_cases(run: Run, cases: Sequence[Case]) -> Outcome:
    """Run the statements of cases while a tool follows."""
    with run:
        for case in cases:
            for statement in case.setup:
                run.connection.execute(statement.encode())
        try:
            _load(run)
            for case in cases:
                for statement in case.changes:
                    run.connection.execute(statement.encode())
            run.catch_up()
            verdicts = run.compare()
        except ToolFailedError as error:
            verdicts = run.failed(str(error))
        return Outcome(verdicts, sum(len(case.changes) for case in cases), run.kills, run.exits)


def play_histories(run: Run, histories: Sequence[History], seed: int) -> Outcome:
    """Run histories while a tool follows, is stopped or is killed, by the seed; compare all tables after each phase."""
    chance = random.Random(f"{seed}/conformance")
    verdicts: dict[str, Verdict] = {}
    with run, closing(run.connect()) as first, closing(run.connect()) as second:
        players = Players([first, second])
        for history in histories:
            first.execute("; ".join(setup_statements(history)).encode())
        phase = 0
        try:
            _load(run)
            for phase in range(len(histories[0].phases)):
                _change(run, players, interleaved(histories, phase, chance), chance)
                run.catch_up()
                verdicts |= _named(run.compare(), f"after phase {phase + 1} of seed {seed}")
        except ToolFailedError as error:
            verdicts |= _named(run.failed(str(error)), f"after phase {phase + 1} of seed {seed}")
        return Outcome(verdicts, players.statements, run.kills, run.exits)


def play_kills(run: Run, seed: int, kills: int) -> Outcome:
    """Kill a tool again and again, at moments of a seed, while random transactions run."""
    chance = random.Random(f"{seed}/kills")
    with run:
        run.connection.execute(TABLES.encode())
        with Writer(run.connect, seed) as writer:
            for _ in range(kills):
                run.start()
                time.sleep(chance.uniform(*_LIFE))
                run.kill()
        run.start()
        try:
            run.catch_up()
            verdicts = run.compare()
        except ToolFailedError as error:
            verdicts = run.failed(str(error))
        return Outcome(_named(verdicts, f"of seed {seed}"), writer.transactions, run.kills, run.exits)


def _load(run: Run) -> None:
    """Start the tool, and wait until it has copied the tables."""
    run.start()
    run.catch_up()
    run.compare()


def _change(run: Run, players: Players, parts: Sequence[Part], chance: random.Random) -> None:
    """Play the statements of a phase; the tool runs in the end."""
    moment, kill_at = chance.choice(_MOMENTS), chance.randrange(len(parts))
    if moment == "stopped":
        run.stop()
    for number, part in enumerate(parts):
        if moment == "killed" and number == kill_at:
            run.kill()
            run.start()
        players.play(part)
    if moment == "stopped":
        run.start()
    if moment == "killed":
        time.sleep(chance.uniform(0, _SECOND_KILL))
        run.kill()
        run.start()


def _named(verdicts: Mapping[str, Verdict], when: str) -> dict[str, Verdict]:
    return {f"{table} {when}": verdict for table, verdict in verdicts.items()}


__all__ = ["Outcome", "play_cases", "play_histories", "play_kills"]
