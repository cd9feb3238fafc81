"""The work of tasks whose first try is lost in some way: executors import it from the tests' folder."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any, Literal

FOLDER = "LOSING_FOLDER"
"""The environment variable of executors with the folder that has a file for each kind of work that was lost."""
_HOW, _AGAIN = "how", "-again"

How = Literal["executor", "driver", "decommission", "speculation"]
"""The loss of a first try: of its executor, at once or after its tasks, of its driver, or of a race with a second."""


def lose(folder: Path, how: How, *kinds: str) -> None:
    """Let the next tries of some kinds of work be lost in a way."""
    (folder / _HOW).write_text(how)
    for kind in kinds:
        (folder / kind).unlink(missing_ok=True)
        (folder / (kind + _AGAIN)).unlink(missing_ok=True)


def is_lost(folder: Path, kind: str) -> bool:
    """Return whether a try of a kind of work was lost, or waits for the end of its driver."""
    return (folder / kind).exists()


def was_repeated(folder: Path, kind: str) -> bool:
    """Return whether a second try of a kind of work has begun."""
    return (folder / (kind + _AGAIN)).exists()


def copy(task: Any) -> Any:
    """Copy a part of a table, but for the first try."""
    from logicalrep.pipeline.load.copying import copy

    lose_first("copy")
    return copy(task)


def rewrite(work: Any) -> Any:
    """Rewrite files, but for the first try."""
    from logicalrep.pipeline.apply.rewriting import rewrite

    lose_first("rewrite")
    return rewrite(work)


def lose_first(kind: str) -> None:
    """Lose the first try of a kind of work; others return, and so does a first try whose executor ends after it.

    A task whose driver has ended continues unless its executor ends too.
    """
    from pyspark import TaskContext

    folder = Path(os.environ[FOLDER])
    task = TaskContext.get()
    if task is not None and task.attemptNumber():
        (folder / (kind + _AGAIN)).touch()
    try:
        (folder / kind).touch(exist_ok=False)
    except FileExistsError:
        return
    how = (folder / _HOW).read_text()
    if how == "executor":
        os.kill(executor(), signal.SIGKILL)
        time.sleep(600)
    elif how == "decommission":
        os.kill(executor(), signal.SIGPWR)
    else:
        # Until the test has ended the driver, or the second try has begun.
        while (folder / _HOW).read_text() == how and not was_repeated(folder, kind):
            time.sleep(0.1)


def executor() -> int:
    """Return the process of a task's executor, which is the Java above the Python workers."""
    status = Path("/proc", str(os.getppid()), "stat").read_text()
    return int(status.rpartition(")")[2].split()[1])
