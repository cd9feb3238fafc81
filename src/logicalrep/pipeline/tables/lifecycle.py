"""The phases of a table, and the transitions between them: `Table.move` refuses every transition that is not here.

A checkpoint stores the phase for people alone: a new process derives a table's phase from its pending load. This module
also writes docs/explanation/lifecycle.md.
"""

from __future__ import annotations

import pathlib
import sys

from logicalrep.observe.figures import Phase
from logicalrep_runtime.errors import LogicalRepError


class LifecycleError(LogicalRepError, RuntimeError):
    """An undefined transition of a table: a defect of logicalrep, which stops the table."""

    code = "TABLE_TRANSITION"


MEANINGS: dict[Phase, tuple[str, str]] = {
    Phase.OPENING: ("The table is published, and replicate opens its stored table.", "Openings, Table"),
    Phase.QUEUED: (
        "The load waits for other loads, a snapshot, its next try, or, after frequent reloads, a time. Changes are "
        "buffered.",
        "Openings, LoadCoordinator",
    ),
    Phase.COPYING: ("replicate copies the rows under a snapshot. Changes are buffered.", "LoadCoordinator"),
    Phase.CATCHING_UP: (
        "replicate commits the copied rows, and applies the buffered changes to them. New changes are buffered.",
        "LoadCoordinator",
    ),
    Phase.FOLLOWING: (
        "replicate applies changes as they arrive; some may wait until the catalog has their transactions.",
        "Openings, LoadCoordinator",
    ),
    Phase.HELD: (
        "The table refused a commit, and has all earlier commits. Changes from the refused commit on are buffered: "
        "run `logicalrep skip` or `logicalrep resync`.",
        "TableStops",
    ),
    Phase.STOPPED: (
        "The table has an error of its own, and replicate drops its changes: run `logicalrep resync`.",
        "Openings, TableStops",
    ),
    Phase.UNPUBLISHED: (
        "The table is no longer published, or no longer under this name. Its stored rows stay as they are.",
        "TableManager",
    ),
}
"""What each phase means to an operator, and the classes that move a table to it, separated by commas."""

_LOAD, _STOP = "a load is needed or requested", "an error of its own"
TRANSITIONS: dict[tuple[Phase, Phase], str] = {
    (Phase.OPENING, Phase.QUEUED): "it is new, differs from the server, or its load was pending",
    (Phase.OPENING, Phase.CATCHING_UP): "the copy is whole, and buffered changes remain",
    (Phase.OPENING, Phase.FOLLOWING): "no load is pending or needed",
    (Phase.OPENING, Phase.STOPPED): "it was stopped before, or cannot be opened",
    (Phase.QUEUED, Phase.QUEUED): "the next try is due, or a load is needed for a later reason",
    (Phase.QUEUED, Phase.COPYING): "its rows are being copied",
    (Phase.QUEUED, Phase.CATCHING_UP): "its rows were copied between two rounds of the loop",
    (Phase.QUEUED, Phase.STOPPED): "its settings refuse the load, or its rows cannot be copied",
    (Phase.COPYING, Phase.QUEUED): "another try, or a later snapshot, is needed",
    (Phase.COPYING, Phase.CATCHING_UP): "its rows are copied",
    (Phase.COPYING, Phase.STOPPED): "it cannot be copied",
    (Phase.CATCHING_UP, Phase.FOLLOWING): "all buffered changes are applied",
    (Phase.CATCHING_UP, Phase.HELD): "a buffered commit is refused",
    (Phase.CATCHING_UP, Phase.QUEUED): _LOAD,
    (Phase.CATCHING_UP, Phase.STOPPED): _STOP,
    (Phase.FOLLOWING, Phase.QUEUED): _LOAD,
    (Phase.FOLLOWING, Phase.HELD): "a commit is refused",
    (Phase.FOLLOWING, Phase.STOPPED): _STOP,
    (Phase.HELD, Phase.CATCHING_UP): "the refused commit is skipped",
    (Phase.HELD, Phase.QUEUED): _LOAD,
    (Phase.HELD, Phase.STOPPED): "its changes were buffered for too long, or another error",
    (Phase.STOPPED, Phase.QUEUED): _LOAD,
    (Phase.STOPPED, Phase.STOPPED): "another error",
    **{(phase, Phase.UNPUBLISHED): "it is no longer published" for phase in Phase if phase is not Phase.UNPUBLISHED},
}
"""The cause of each defined transition, by the phases before and after it."""


def check_transition(origin: Phase, target: Phase, text: str) -> None:
    """Raise LifecycleError with a text unless the transition is defined."""
    if (origin, target) not in TRANSITIONS:
        raise LifecycleError(text)


_UNSTORED = (Phase.OPENING, Phase.UNPUBLISHED)
"""The phases that a checkpoint never has."""


def diagram() -> str:
    """Return the transitions as a Mermaid diagram, without the transitions to UNPUBLISHED."""
    lines = ["stateDiagram-v2", f"    [*] --> {Phase.OPENING.name}"]
    lines += [
        f"    {origin.name} --> {target.name}: {cause}"
        for (origin, target), cause in TRANSITIONS.items()
        if target is not Phase.UNPUBLISHED
    ]
    return "\n".join([*lines, f"    {Phase.UNPUBLISHED.name} --> [*]"])


def page() -> str:
    """Return the text of docs/explanation/lifecycle.md."""
    phases = [
        f"| {phase} | {'' if phase in _UNSTORED else phase.standing} | {meaning} | `{setters.replace(', ', '`, `')}` |"
        for phase, (meaning, setters) in MEANINGS.items()
    ]
    transitions = [
        f"| {origin} | {target} | {cause} |"
        for (origin, target), cause in TRANSITIONS.items()
        if target is not Phase.UNPUBLISHED
    ]
    return _PAGE.format(diagram=diagram(), phases="\n".join(phases), transitions="\n".join(transitions))


_PAGE = """# A table's life

`logicalrep status` and the page of `--listen` show the phase of each table; in `status --json` and
`_logicalrep/state.json` the key is `phase`. The key `state` of `status --json`, and of the metrics, sums up the phases
for readers in three words. replicate refuses every transition that this page does not list. This page is generated from
`src/logicalrep/pipeline/tables/lifecycle.py`.

<!-- not run: a diagram -->
```mermaid
{diagram}
```

Each phase also leads to `unpublished`, once the table is no longer published.

| phase | `state` | meaning | set by |
| --- | --- | --- | --- |
{phases}

| from | to | cause |
| --- | --- | --- |
{transitions}
"""


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(page(), "utf-8")
