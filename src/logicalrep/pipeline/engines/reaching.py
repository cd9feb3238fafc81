"""The trial of a destination by two processes: each reads the other's files, and only one creates each new file."""

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
"""The number of files that both processes try to create at the same time."""
_CHECK_INTERVAL = 0.001
"""The most seconds until the driver notices that the other process has begun."""


class UnreachedError(StorageError):
    """A destination that this process can read and write, but a task cannot."""

    code = "DESTINATION_NOT_REACHED"
    may_pass = False


@dataclass(frozen=True)
class _Trial:
    storage: Storage
    driver_path: str
    """The path of the driver's file."""
    task_path: str
    """The path of the file that the task writes when it begins."""
    contested: Sequence[str]
    """The paths of files that both processes try to create."""


@dataclass(frozen=True)
class _TaskResult:
    machine: str
    sees_driver: bool
    created_paths: list[str]


def check_destination(engine: Engine, storage: Storage, *, is_shared_folder: bool) -> None:
    """Check that an engine's tasks reach the destination, and that in a shared folder only one process creates a file.

    Raises:
        UnreachedError: a task cannot read or write the destination.
        StateError: a task and this process see different files, or both created the same file.
    """
    names = [f"{FOLDER}/shared/{secrets.token_hex(8)}" for _ in range(2 + (_FILES if is_shared_folder else 0))]
    trial = _Trial(storage, names[0], names[1], names[2:])
    storage.write(trial.driver_path, b"driver")
    ended = threading.Event()
    try:
        with ThreadPoolExecutor(1) as pool:
            competition = pool.submit(_compete, trial, ended)
            try:
                # Little work would run in this process.
                [task_result] = engine.run(_run_trial, [trial], storage.limits.in_process_bytes + 1)
            finally:
                ended.set()
            created_paths = competition.result()
        _refuse_not_shared(trial, task_result, created_paths)
    finally:
        for name in names:
            storage.delete(name)


def _compete(trial: _Trial, ended: threading.Event) -> list[str]:
    """Create files while the task does; return the paths of the created files."""
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
        reason = f"two processes both created {len(duplicates)} of {len(trial.contested)} new files"
    elif {*task_result.created_paths, *driver_paths} != {*trial.contested}:
        reason = "neither process could create some new files"
    elif {storage.read(path) for path in task_result.created_paths} - {b"task"} or (
        {storage.read(path) for path in driver_paths} - {b"driver"}
    ):
        reason = "a file that one process created has the content of another process"
    if reason:
        raise StateError(
            f"{storage.uri} is not shared correctly: {reason}. Name an object store, or a folder on a file system that "
            "never lets two processes create the same file",
            code="DESTINATION_NOT_SHARED",
        )
