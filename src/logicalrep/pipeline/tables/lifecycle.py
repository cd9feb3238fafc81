"""The phases of a replicated table's life, and the transitions between them.

Every transition that may happen is in `TRANSITIONS`, and `Life.move` is the only function that makes one: it refuses
all others. `python -m logicalrep.pipeline.tables.lifecycle docs/explanation/lifecycle.md` draws them.

The phase itself is not stored. A checkpoint has one of three words for it (`Phase.stored`), and the pending load of a
table tells the rest, so that another process finds it again.
"""

from __future__ import annotations

import pathlib
import sys
from enum import StrEnum

from logicalrep_runtime.errors import LogicalRepError


class LifecycleError(LogicalRepError, RuntimeError):
    """A transition that no table makes: a mistake in logicalrep, which stops the table."""

    code = "TABLE_TRANSITION"


class Phase(StrEnum):
    """The phases of a table's life."""

    OPENING = "opening"
    QUEUED = "queued"
    COPYING = "copying"
    CATCHING_UP = "catching up"
    FOLLOWING = "following"
    HELD = "held"
    STOPPED = "stopped"
    LEFT = "left"

    @property
    def stored(self) -> str:
        """The word that a checkpoint, the metrics and `status` have for it: `following`, `loading` or `stopped`."""
        if self in (Phase.HELD, Phase.STOPPED):
            return "stopped"
        return "following" if self is Phase.FOLLOWING else "loading"

    @property
    def takes_changes(self) -> bool:
        """Whether changes that come are applied or buffered; else they are dropped."""
        return self not in (Phase.OPENING, Phase.STOPPED, Phase.LEFT)

    @classmethod
    def of_stored(cls, word: str, *, is_refused: bool, is_copied: bool, is_whole: bool) -> Phase:
        """Return the phase of a table of another process, as far as stored files tell it.

        Args:
            word: its word in the checkpoint.
            is_refused: whether the checkpoint has the commit that the table does not take.
            is_copied: whether the checkpoint has the progress of the copying.
            is_whole: whether its rows are those of its last load, so that only buffered changes are left.
        """
        if word == "stopped":
            return cls.HELD if is_refused else cls.STOPPED
        if word == "following":
            return cls.FOLLOWING
        return cls.COPYING if is_copied else cls.CATCHING_UP if is_whole else cls.QUEUED


MEANINGS: dict[Phase, tuple[str, str]] = {
    Phase.OPENING: ("The table is published, and its stored table is being opened.", "Life"),
    Phase.QUEUED: (
        "A load is pending, and waits for other loads, a snapshot, its next try, or a time, if it was loaded often. "
        "Changes are buffered.",
        "TableLoads",
    ),
    Phase.COPYING: ("Its rows are copied under a snapshot. Changes are buffered.", "TableLoads"),
    Phase.CATCHING_UP: (
        "Its copied rows are committed, and the buffered changes are applied to them. Changes are buffered.",
        "TableLoads",
    ),
    Phase.FOLLOWING: (
        "Its changes are applied as they come; some may wait until the catalog has their transactions.",
        "Openings, TableLoads",
    ),
    Phase.HELD: (
        "It refused a commit. It has those before that one, and changes from it on are buffered: `logicalrep skip` or "
        "`logicalrep resync`.",
        "TableStops",
    ),
    Phase.STOPPED: (
        "It has an error of its own, and its changes are dropped: `logicalrep resync`.",
        "Openings, TableStops",
    ),
    Phase.LEFT: ("It is not published any more, or not by this name. Its rows stay as they are.", "TableManager"),
}
"""The meaning of each phase, and the classes that set it."""

_LOAD, _STOP = "a load is needed, or asked for", "an error of its own"
TRANSITIONS: dict[tuple[Phase, Phase], str] = {
    (Phase.OPENING, Phase.QUEUED): "it is new, differs from the server, or its load was pending",
    (Phase.OPENING, Phase.CATCHING_UP): "its copy was whole, and buffered changes are left",
    (Phase.OPENING, Phase.FOLLOWING): "it is as the last checkpoint has it",
    (Phase.OPENING, Phase.STOPPED): "it was stopped before, or cannot be opened",
    (Phase.QUEUED, Phase.QUEUED): "the next try is due, or a load is needed for a later reason",
    (Phase.QUEUED, Phase.COPYING): "its rows are being copied",
    (Phase.QUEUED, Phase.CATCHING_UP): "its few rows are copied",
    (Phase.QUEUED, Phase.STOPPED): "it must not be loaded, or cannot be copied",
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
    **{(phase, Phase.LEFT): "it is not published any more" for phase in Phase if phase is not Phase.LEFT},
}
"""The transitions that may happen, each with its cause."""


class Life:
    """The phase that one table is in, and the reason for it."""

    def __init__(self) -> None:
        """Begin with a table that is found in the publication."""
        self._phase, self._reason = Phase.OPENING, "it is published"

    @property
    def phase(self) -> Phase:
        """The phase."""
        return self._phase

    @property
    def reason(self) -> str:
        """The reason for the last transition, in words."""
        return self._reason

    def move(self, to: Phase, reason: str) -> None:
        """Change the phase. Raises LifecycleError for a transition that is not in `TRANSITIONS`."""
        if (self._phase, to) not in TRANSITIONS:
            raise LifecycleError(f"a table that is {self._phase} ({self._reason}) cannot be {to} next ({reason})")
        self._phase, self._reason = to, reason


_UNSTORED = (Phase.OPENING, Phase.LEFT)
"""The phases of tables that no checkpoint has."""


def diagram() -> str:
    """Return the picture of all transitions, in Mermaid's language."""
    lines = ["stateDiagram-v2", f"    [*] --> {Phase.OPENING.name}"]
    lines += [
        f"    {before.name} --> {after.name}: {cause}"
        for (before, after), cause in TRANSITIONS.items()
        if after is not Phase.LEFT
    ]
    return "\n".join([*lines, f"    {Phase.LEFT.name} --> [*]"])


def page() -> str:
    """Return the page of all phases and transitions as Markdown."""
    phases = [
        f"| {phase} | {'' if phase in _UNSTORED else phase.stored} | {meaning} | `{setters.replace(', ', '`, `')}` |"
        for phase, (meaning, setters) in MEANINGS.items()
    ]
    transitions = [
        f"| {before} | {after} | {cause} |" for (before, after), cause in TRANSITIONS.items() if after is not Phase.LEFT
    ]
    return _PAGE.format(diagram=diagram(), phases="\n".join(phases), transitions="\n".join(transitions))


_PAGE = """# A table's life

`logicalrep status` and the page of `--listen` show the phase of each table; `status --json` has it as `phase`. The key
`state` there, in `_logicalrep/state.json` and in the metrics has one of three words. This page is written from
`src/logicalrep/pipeline/tables/lifecycle.py`, whose table of transitions is the only one: each other transition is
refused.

```mermaid
{diagram}
```

From each phase a table may also be left, once it is not published any more.

| phase | `state` | meaning | set by |
| --- | --- | --- | --- |
{phases}

| from | to | cause |
| --- | --- | --- |
{transitions}
"""


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(page(), "utf-8")
