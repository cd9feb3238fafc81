"""`logicalrep-native` with the walks of another spec, which reads batches for a while."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

from codegen.shared import ROOT

_SOURCES = ROOT / "native" / "src"
_FLAGS = ["-O0", "-std=c11", "-Wall", "-Werror", "-fPIC", "-shared", "-DPy_LIMITED_API=0x030B0000"]

COMPILER = shutil.which(os.environ.get("CC", "cc"))


def build_module(walks: str, folder: Path) -> Path:
    """Compile the module with the text of walks.c into a folder. Raises RuntimeError with the compiler's messages."""
    assert COMPILER is not None
    path, own = folder / "logicalrep_native.abi3.so", folder / "walks.c"
    own.write_text(walks, encoding="utf-8")
    sources = [own, *(source for source in _SOURCES.glob("*.c") if source.name != own.name)]
    includes = [f"-I{sysconfig.get_path('include')}", f"-I{_SOURCES}"]
    command = [COMPILER, *_FLAGS, *includes, *map(str, sources), "-o", str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(result.stderr)
    return path


def loaded(path: Path) -> ModuleType:
    """Return the module of a file, whatever module of this name is installed."""
    spec = spec_from_file_location("logicalrep_native", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def walked_by(module: ModuleType | None) -> Iterator[None]:
    """Let a module walk batches for a while; None for the walk by `parse`."""
    from logicalrep_runtime.columnar import native_walk as walks

    # Without a module, the variable says that its absence is no fault of the installation.
    variables = {"LOGICALREP_NATIVE": "0"} if module is None else {}
    with patch.object(walks, "native_module", lambda: module), patch.dict(os.environ, variables):
        walks.native_walk.cache_clear()
        try:
            yield
        finally:
            walks.native_walk.cache_clear()
