"""The disk cache of compiled kernels, keyed by all source code of a kernel.

numba itself checks only the kernel's own file, although functions and constants of other files are compiled into the
kernel. It also loads code from any existing cache folder, no matter who created the folder.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import inspect
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from logicalrep_runtime.columnar.private_folders import UnsafeFolderError, private_folder

if sys.platform != "win32":
    import fcntl

_caching: Any = importlib.import_module("numba.core.caching")
_compiler_lock: Any = importlib.import_module("numba.core.compiler_lock").global_compiler_lock
_config: Any = importlib.import_module("numba").config
_OURS = ("logicalrep", "logicalrep_protocol", "logicalrep_runtime")
_log = logging.getLogger(__name__)

PATIENCE, _PAUSE = 60.0, 0.05
"""The longest wait for another process that compiles the same kernel, and the seconds between two tries."""
_waits = True
"""False after a wait in vain, as a stopped process may hold many locks."""


def cache_kernel(kernel: Any, function: Callable[..., Any]) -> None:
    """Store a function's compiled kernel on disk. Without a usable folder or file, each process compiles it."""
    if _folder(inspect.getfile(function)) is not None:
        with contextlib.suppress(OSError):
            kernel._cache = cache = _Cache(function)
            kernel.compile = functools.partial(_compile, kernel.compile, cache)


def is_compiled(kernel: Any) -> bool:
    return bool(kernel.signatures) or (isinstance(kernel._cache, _Cache) and kernel._cache.is_filled)


def _compile(compile: Callable[[Any], Any], cache: _Cache, signature: Any) -> Any:
    """Load or compile a kernel for a signature, one process at a time."""
    # All threads take the locks in one order: this process's, then those of kernels, each before its callees'.
    with _compiler_lock, locked(cache.lock_path):
        return compile(signature)


@contextlib.contextmanager
def locked(path: str) -> Iterator[bool]:
    """Hold the lock of a file for at most PATIENCE seconds of waiting; yields whether the lock is held."""
    global _waits
    is_held = False
    with contextlib.ExitStack() as stack:
        if sys.platform != "win32":
            with contextlib.suppress(OSError):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                file = stack.enter_context(open(path, "wb"))
                deadline = time.monotonic() + PATIENCE
                while not (is_held := _lock(file.fileno())) and _waits:
                    time.sleep(_PAUSE)
                    _waits = time.monotonic() < deadline
        yield is_held


def _lock(descriptor: int) -> bool:
    if sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


class _Locator(_caching._CacheLocator):  # type: ignore[misc]
    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._function = function
        self._py_file = file

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        return cls(py_func, py_file)

    def get_cache_path(self) -> str | None:
        return _folder(self._py_file)

    def get_source_stamp(self) -> str:
        return digest(self._function.__module__)

    def get_disambiguator(self) -> str:
        checked = "-checked" if _config.BOUNDSCHECK else ""
        return f"{self._function.__code__.co_firstlineno}{checked}"


class _Files(_caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class _Cache(_caching.FunctionCache):  # type: ignore[misc]
    _impl_class = _Files

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        # numba compares the version before it unpickles the types, which may name a removed class.
        self._cache_file._version += self._cache_file._source_stamp
        self.lock_path: str = os.path.join(self._cache_path, f"{self._impl.filename_base}.lock")

    @property
    def is_filled(self) -> bool:
        return bool(self._cache_file._load_index())


@functools.cache
def digest(name: str) -> str:
    """Return a digest of a module's file and constants, and of the logicalrep modules that it uses."""
    module = sys.modules[name]
    spec: Any = module.__spec__
    parts = [spec.loader.get_data(spec.origin)]
    used_modules = set()
    for name_in_module, value in sorted(vars(module).items()):
        if isinstance(value, int | float | str | bytes | tuple) and not name_in_module.startswith("__"):
            parts.append(f"{name_in_module}={value!r}".encode())
            continue
        module_name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if module_name and module_name != name and module_name.partition(".")[0] in _OURS:
            used_modules.add(module_name)
    parts += [digest(module_name).encode() for module_name in sorted(used_modules)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


@functools.cache
def _folder(file: str) -> str | None:
    """Return the first usable folder for a file's kernels: numba's folders in order, then the temporary folder.

    Without the latter, a user without a home (perhaps of Spark's executors) would compile 15 seconds in each process.
    """
    if _config.CACHE_DIR:
        bases = [_config.CACHE_DIR]
    else:
        bases = [os.path.join(os.path.dirname(file), "__pycache__")] if os.path.exists(file) else []
        bases += [_caching.AppDirs(appname="numba", appauthor=False).user_cache_dir, tempfile.gettempdir()]
    subfolder = _caching._CacheLocator.get_suitable_cache_subpath(file)
    return next((os.path.join(folder, subfolder) for folder in map(_private_folder, bases) if folder is not None), None)


@functools.cache
def _private_folder(base: str) -> str | None:
    try:
        return private_folder(base)
    except UnsafeFolderError as error:
        _log.warning("compiled kernels are not stored on disk: %s", error)
    except OSError:
        pass
    return None
