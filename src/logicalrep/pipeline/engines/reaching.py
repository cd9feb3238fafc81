"""The trial of a destination by two processes: each reads what the other writes, and one alone makes a file."""

from __future__ import annotations

import secrets
import socket
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from logicalrep.pipeline.engines.engine import Engine
from logicalrep.pipeline.state.state import FOLDER, StateError
from logicalrep.pipeline.storage.storage import Storage, StorageError

_FILES = 64
"""The number of files that both processes try to make at the same time."""
_CHECK_INTERVAL = 0.001
"""The longest time until the driver sees that the other process begins, in seconds."""


class UnreachedError(StorageError):
    """A destination that a task cannot read and write, and this process can."""

    code = "DESTINATION_NOT_REACHED"
    may_pass = False


@dataclass(frozen=True)
class _Trial:
    storage: Storage
    driver_path: str
    """The path of what the driver has written."""
    task_path: str
    """The path of what the task writes once it begins."""
    contested: Sequence[str]
    """The paths of files that both processes try to make."""


@dataclass(frozen=True)
class _TaskResult:
    machine: str
    sees_driver: bool
    created_paths: list[str]
    """The paths that it has made."""


def check_destination(engine: Engine, storage: Storage, *, is_shared_folder: bool) -> None:
    """Try whether tasks of an engine reach a destination, and for a shared folder whether files are made by one alone.

    Raises:
        UnreachedError: a task cannot read or write it.
        StateError: a task and this process see different files, or both made the same one.
    """
    names = [f"{FOLDER}/shared/{secrets.token_hex(8)}" for _ in range(2 + (_FILES if is_shared_folder else 0))]
    trial = _Trial(storage, names[0], names[1], names[2:])
    storage.write(trial.driver_path, b"driver")
    ended = threading.Event()
    try:
        with ThreadPoolExecutor(1) as pool:
            competition = pool.submit(_compete, trial, ended)
            try:
                # More than little work, as that would run in this process.
                [task_result] = engine.run(_run_trial, [trial], storage.limits.in_process_bytes + 1)
            finally:
                ended.set()
            created_paths = competition.result()
        _refuse_not_shared(trial, task_result, created_paths)
    finally:
        for name in names:
            storage.delete(name)


def _compete(trial: _Trial, ended: threading.Event) -> list[str]:
    """Make files while the task does; return the paths that this process has made."""
    while not ended.is_set() and trial.contested and trial.storage.read(trial.task_path) is None:
        time.sleep(_CHECK_INTERVAL)
    return [path for path in trial.contested if trial.storage.create(path, b"driver")]


def _run_trial(trial: _Trial) -> _TaskResult:
    machine, storage = socket.gethostname(), trial.storage
    try:
        sees_driver = storage.read(trial.driver_path) == b"driver"
        storage.write(trial.task_path, b"task")
        created_paths = [path for path in trial.contested if storage.create(path, b"task")]
    except StorageError as error:
        raise UnreachedError(f"a task on {machine} cannot read and write {storage.uri}: {error.description}") from None
    return _TaskResult(machine, sees_driver, created_paths)


def _refuse_not_shared(trial: _Trial, task_result: _TaskResult, driver_paths: Sequence[str]) -> None:
    storage, reason = trial.storage, ""
    if not task_result.sees_driver or storage.read(trial.task_path) != b"task":
        reason = f"this process and a task on {task_result.machine} do not see each other's files in it"
    elif duplicates := {*task_result.created_paths} & {*driver_paths}:
        reason = f"two processes have both made {len(duplicates)} of {len(trial.contested)} files that were not there"
    elif {*task_result.created_paths, *driver_paths} != {*trial.contested}:
        reason = "files that were not there could not be made"
    elif {storage.read(path) for path in task_result.created_paths} - {b"task"} or (
        {storage.read(path) for path in driver_paths} - {b"driver"}
    ):
        reason = "a file that one process has made has what another one wrote"
    if reason:
        raise StateError(
            f"{storage.uri} is not shared as it has to be: {reason}. Name an object store, or a folder on a file "
            "system that never lets two processes make the same file",
            code="DESTINATION_NOT_SHARED",
        )
