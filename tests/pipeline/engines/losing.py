"""The work of tasks whose first try loses its executor, or its driver: executors import it from the tests' folder."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

FOLDER = "LOSING_FOLDER"
"""The environment variable of executors with the folder that has a file for each kind of work that was lost."""
OF_DRIVER = "of-driver"
"""The file that says, as long as it is there, that the test ends the driver, in place of the executor."""


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
    """End the executor of the first task of a kind, which is the Java above the Python workers, or wait for the test.

    A task whose driver has ended goes on, where its executor does not end too.
    """
    folder = Path(os.environ[FOLDER])
    try:
        (folder / kind).touch(exist_ok=False)
    except FileExistsError:
        return
    if (folder / OF_DRIVER).exists():
        while (folder / OF_DRIVER).exists():
            time.sleep(0.1)
        return
    status = Path("/proc", str(os.getppid()), "stat").read_text()
    os.kill(int(status.rpartition(")")[2].split()[1]), signal.SIGKILL)
    time.sleep(600)
