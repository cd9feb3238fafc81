"""Files that pass values between processes of one user on one machine; unnamed where the system supports it."""

from __future__ import annotations

import functools
import itertools
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

from logicalrep.pipeline.engines.engine import EngineError, LocalValue, Shared
from logicalrep.pipeline.engines.memory import release_memory
from logicalrep.pipeline.engines.outcomes import Outcome, pickled

if sys.platform != "win32":
    import fcntl

_Value = TypeVar("_Value")


@contextmanager
def shared_file() -> Iterator[tuple[IO[bytes], str]]:
    """Yield a file and its path for other processes; the file disappears even if this process is killed."""
    is_unnamed = sys.platform == "linux"
    with tempfile.TemporaryFile() if is_unnamed else tempfile.NamedTemporaryFile(prefix="logicalrep-") as file:
        yield file, f"/proc/{os.getpid()}/fd/{file.fileno()}" if is_unnamed else file.name


@contextmanager
def shared_by_file(value: _Value) -> Iterator[Shared[_Value]]:
    """Yield a holder of a value, which other processes read from a file, once for many consecutive items.

    Raises EngineError if the file cannot be written.
    """
    with ExitStack() as stack:
        try:
            file, path = stack.enter_context(shared_file())
            pickle.dump(value, file)
            file.flush()
        except OSError as error:
            with suppress(OSError):  # Closing retries the failed write.
                stack.close()
            raise EngineError(f"a temporary file for tasks cannot be written: {error}") from error
        yield _SharedInFile(path, next(_numbers), value)


_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class _SharedInFile(Generic[_Value]):
    """A value of this process, which other processes read from a file."""

    path: str
    number: int
    """A later file may have the same path."""
    value: _Value

    def __reduce__(self) -> tuple[Callable[[str, int], Shared[Any]], tuple[str, int]]:
        return _read_shared, (self.path, self.number)


@functools.lru_cache(maxsize=1)
def _read_shared(path: str, number: int) -> Shared[Any]:
    """Return a value of another process; many consecutive items have the same value."""
    return LocalValue(pickle.loads(Path(path).read_bytes()))


@dataclass(frozen=True, slots=True)
class FilePart:
    """The location of a pickled value in a file."""

    path: str
    start: int
    end: int

    def read(self) -> Any:
        with open(self.path, "rb") as file:
            file.seek(self.start)
            return pickle.loads(file.read(self.end - self.start))


def parts_of(values: Sequence[object], file: IO[bytes], path: str) -> list[FilePart]:
    """Write values into a file; return their locations."""
    parts = []
    for value in values:
        start = file.tell()
        pickle.dump(value, file)
        parts.append(FilePart(path, start, file.tell()))
    file.flush()
    return parts


@dataclass(frozen=True, slots=True)
class ByFile:
    """A function on values in a file, which writes its outcomes into another file."""

    function: Callable[[Any], Outcome]
    path: str

    def __call__(self, part: FilePart) -> FilePart:
        """Return the location of the outcome. Raises OSError and the function's errors."""
        outcome = pickled(self.function(part.read()))
        release_memory()
        with open(self.path, "ab") as file:
            # Other processes write to the file too.
            fcntl.lockf(file, fcntl.LOCK_EX)
            start = file.seek(0, os.SEEK_END)
            file.write(outcome)
            file.flush()
        return FilePart(self.path, start, start + len(outcome))
