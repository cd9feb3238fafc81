"""The native reader under the address and undefined-behaviour sanitizers: what its other tests do, in a build of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.thorough
_FLAGS = [
    "-std=c11",
    "-g",
    "-O1",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
]


def test_nothing_is_found_by_sanitizers(tmp_path: Path) -> None:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no gcc")
    library = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout
    if not Path(library.strip()).is_absolute():
        pytest.skip("gcc has no libasan")
    sources = [str(path) for path in sorted((ROOT / "native" / "src").glob("*.c"))]
    include = f"-I{sysconfig.get_path('include')}"
    binary = str(tmp_path / "logicalrep_native.abi3.so")
    command = [compiler, *_FLAGS, "-DPy_LIMITED_API=0x030B0000", include, "-fPIC", "-shared", *sources, "-o", binary]
    subprocess.run(command, check=True)
    # Python frees nothing of its own at its end, so leaks are what test_nothing_is_leaked counts.
    environment = os.environ | {
        "LD_PRELOAD": library.strip(),
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
        "PYTHONMALLOC": "malloc",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT / "generated"), str(ROOT / "src"), str(ROOT)]),
        "LOGICALREP_NATIVE": "",
    }
    tests = [f"tests/native/test_{name}.py" for name in ("reader", "writer", "decoding", "walk", "loops", "loaders")]
    tests += ["-m", "not thorough and not slow", "-p", "no:cacheprovider", "-k", "not leaked"]
    program = (
        f"import sys, logicalrep_native as n, pytest; assert n.__file__ == {binary!r}; sys.exit(pytest.main({tests!r}))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-5000:]
    assert " passed" in result.stdout
