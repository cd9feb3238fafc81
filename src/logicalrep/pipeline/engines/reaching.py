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
_CHECK_AGAIN = 0.001
"""The longest time until the driver sees that the other process begins, in seconds."""


class UnreachedError(StorageError):
    """A destination that a task cannot read and write, and this process can."""

    code = "DESTINATION_NOT_REACHED"
    may_pass = False


@dataclass(frozen=True)
class _Trial:
    storage: Storage
    of_driver: str
    """The path of what the driver has written."""
    of_task: str
    """The path of what the task writes once it begins."""
    contested: Sequence[str]
    """The paths of files that both processes try to make."""


@dataclass(frozen=True)
class _Tried:
    machine: str
    sees_driver: bool
    made: list[str]
    """The paths that it has made."""


def check_destination(engine: Engine, storage: Storage, *, is_shared_folder: bool) -> None:
    """Try whether tasks of an engine reach a destination, and for a shared folder whether files are made by one alone.

    Raises:
        UnreachedError: a task cannot read or write it.
        StateError: a task and this process see different files, or both made the same one.
    """
    names = [f"{FOLDER}/shared/{secrets.token_hex(8)}" for _ in range(2 + (_FILES if is_shared_folder else 0))]
    trial = _Trial(storage, names[0], names[1], names[2:])
    storage.write(trial.of_driver, b"driver")
    ended = threading.Event()
    try:
        with ThreadPoolExecutor(1) as pool:
            ours = pool.submit(_compete, trial, ended)
            try:
                # More than little work, as that would run in this process.
                [tried] = engine.run(_try, [trial], storage.limits.in_process_bytes + 1)
            finally:
                ended.set()
            made = ours.result()
        _refuse_not_shared(trial, tried, made)
    finally:
        for name in names:
            storage.delete(name)


def _compete(trial: _Trial, ended: threading.Event) -> list[str]:
    """Make files while the task does; return the paths that this process has made."""
    while not ended.is_set() and trial.contested and trial.storage.read(trial.of_task) is None:
        time.sleep(_CHECK_AGAIN)
    return [path for path in trial.contested if trial.storage.create(path, b"driver")]


def _try(trial: _Trial) -> _Tried:
    machine, storage = socket.gethostname(), trial.storage
    try:
        sees_driver = storage.read(trial.of_driver) == b"driver"
        storage.write(trial.of_task, b"task")
        made = [path for path in trial.contested if storage.create(path, b"task")]
    except StorageError as error:
        raise UnreachedError(f"a task on {machine} cannot read and write {storage.uri}: {error.description}") from None
    return _Tried(machine, sees_driver, made)


def _refuse_not_shared(trial: _Trial, tried: _Tried, made: Sequence[str]) -> None:
    storage, reason = trial.storage, ""
    if not tried.sees_driver or storage.read(trial.of_task) != b"task":
        reason = f"this process and a task on {tried.machine} do not see each other's files in it"
    elif twice := {*tried.made} & {*made}:
        reason = f"two processes have both made {len(twice)} of {len(trial.contested)} files that were not there"
    elif {*tried.made, *made} != {*trial.contested}:
        reason = "files that were not there could not be made"
    elif any(storage.read(path) != b"task" for path in tried.made) or any(storage.read(p) != b"driver" for p in made):
        reason = "a file that one process has made has what another one wrote"
    if reason:
        raise StateError(
            f"{storage.uri} is not shared as it has to be: {reason}. Name an object store, or a folder on a file "
            "system that never lets two processes make the same file",
            code="DESTINATION_NOT_SHARED",
        )
