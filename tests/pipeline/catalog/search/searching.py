"""The search: plays the histories of a seed, shortens each history that fails and prints it as SQL."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from conformance.histories.generating import History, history
from tests.pipeline.catalog.search.playing import Outcome, Schedule, play
from tests.pipeline.catalog.search.shrinking import shrunk

AT_ONCE = 50
"""The number of histories that share a database, a publication and a `replicate`."""


@dataclass(frozen=True)
class Failure:
    """A history whose tables end wrong, or that ends `replicate`."""

    history: History
    why: str
    schedule: Schedule

    def __str__(self) -> str:
        """Return it as SQL, with what is wrong afterwards."""
        moments = ", ".join(f"{number}: {text}" for number, text in enumerate(self.schedule.moments(), 1))
        return f"-- {self.schedule}\n-- `replicate` in the phases: {moments}\n{self.history}\n-- {self.why}"


def histories(schedule: Schedule, number: int = AT_ONCE) -> list[History]:
    """Return the histories of a schedule."""
    names, with_entries = (f"h{index}" for index in range(number)), not schedule.is_ours
    of = {"with_entries": with_entries, "of_schemas": schedule.has_schemas}
    return [history(name, schedule.seed, schedule.phases, **of) for name in names]


def outcome(played: Sequence[History], schedule: Schedule) -> Outcome:
    """Return what came of histories; an error that ends `replicate` is laid at the history that raises it alone."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return play(played, schedule, Path(folder) / "lake")
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
    if len(played) == 1:
        return Outcome(wrong={played[0].name: why})
    halves = [outcome(half, schedule) for half in (played[: len(played) // 2], played[len(played) // 2 :])]
    wrong = halves[0].wrong | halves[1].wrong
    # An error that does not come again is of some history all the same.
    return replace(halves[0], wrong=wrong or {played[0].name: why}, loads=halves[0].loads | halves[1].loads)


def shortened(played: Sequence[History], schedule: Schedule, result: Outcome) -> Iterator[Failure]:
    """Yield the histories that are wrong, each as short as it was found to be."""
    for candidate in played:
        if candidate.name in result.wrong:
            short = shrunk(candidate, lambda shorter: set(outcome(shorter, schedule).wrong))
            why = outcome([short], schedule).wrong.get(short.name)
            # A history that fails only sometimes is not shortened.
            yield (
                Failure(candidate, result.wrong[candidate.name], schedule)
                if why is None
                else Failure(short, why, schedule)
            )


__all__ = ["AT_ONCE", "Failure", "histories", "outcome", "shortened"]
