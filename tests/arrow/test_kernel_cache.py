"""Compiled kernels on disk: recompiled when their sources change, in a folder that only the user can write to."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from logicalrep_runtime.columnar.private_folders import UnsafeFolderError, private_folder
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

_PROGRAM = """
import numpy as np
from logicalrep.arrow.kernels.frames import cut_out
messages, places = np.frombuffer(b"abcdef", np.uint8), np.array([0, 3, 6])
offsets, target = np.zeros(3, np.int64), np.zeros(4, np.uint8)
cut_out(messages, places, 1, 1, offsets, target)
assert (target.tobytes(), offsets.tolist()) == (b"acdf", [0, 2, 4])
stats = cut_out.stats
kept, _, _ = (stats.cache_path or "").rpartition("/")
print("not kept" if not kept else "compiled" if stats.cache_misses else "loaded", kept)
"""


class _Copy:
    """A copy of the packages, and a user's folder for their cache."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        self.home = folder / "home"
        for package in ("generated/logicalrep_protocol", "src/logicalrep_runtime", "src/logicalrep"):
            source = ROOT / package
            shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__"))
        self.beside = folder / "logicalrep" / "arrow" / "kernels" / "__pycache__" / f"logicalrep-{os.geteuid()}"

    def run(self, program: str = _PROGRAM, *arguments: str, **environment: str) -> str:
        """Return the output of a program that uses the copy."""
        path = {"PYTHONPATH": str(self.root), "XDG_CACHE_HOME": str(self.home)}
        result = subprocess.run(
            [sys.executable, "-W", "error", "-c", program, *arguments],
            env=os.environ | path | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout.strip()

    def change(self, path: str) -> None:
        with (self.root / path).open("a", encoding="utf-8") as file:
            file.write("\n_CHANGED = True\n")


@pytest.fixture
def copy(tmp_path: Path) -> _Copy:
    return _Copy(tmp_path)


def test_a_kernel_is_recompiled_when_a_file_of_its_functions_changes(copy: _Copy) -> None:
    assert copy.run() == f"compiled {copy.beside}"
    # A file with no function of the kernel does not matter.
    copy.change("logicalrep_runtime/columnar/arrow.py")
    copy.change("logicalrep/arrow/kernels/maps.py")
    assert copy.run() == f"loaded {copy.beside}"
    copy.change("logicalrep_runtime/columnar/memory.py")
    assert copy.run() == f"compiled {copy.beside}"
    assert copy.run(NUMBA_BOUNDSCHECK="1") == f"compiled {copy.beside}"


_AT_ONCE = """
import sys, time
from pathlib import Path
import logicalrep.arrow.kernels.frames
own, others = Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]]
own.touch()
while not all(map(Path.exists, others)):
    time.sleep(0.01)
"""


def test_processes_that_need_a_kernel_at_once_compile_it_once(copy: _Copy) -> None:
    ready = [str(copy.root / f"ready{number}") for number in range(3)]
    with ThreadPoolExecutor() as pool:
        outputs = [*pool.map(lambda own: copy.run(_AT_ONCE + _PROGRAM, own, *ready), ready)]
    assert sorted(outputs) == [f"compiled {copy.beside}", *2 * [f"loaded {copy.beside}"]]


_HOLDS = """
import sys
from logicalrep_runtime.columnar.kernel_cache import locked
with locked(sys.argv[1]) as first, locked(sys.argv[2]) as second:
    print(first and second, flush=True)
    sys.stdin.read()
"""
_WAITS = """
import sys, time
from logicalrep_runtime.columnar import kernel_cache
kernel_cache.PATIENCE = 1.0
for path in sys.argv[1:]:
    began = time.monotonic()
    with kernel_cache.locked(path) as is_held:
        print(is_held, time.monotonic() - began >= kernel_cache.PATIENCE)
"""


def test_a_process_that_is_stopped_while_it_compiles_is_waited_for_once(tmp_path: Path) -> None:
    paths = [str(tmp_path / "kernels" / name) for name in ("outer.lock", "inner.lock", "free.lock")]
    command = [sys.executable, "-c", _HOLDS, *paths[:2]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as stopped:
        assert stopped.stdout is not None
        assert stopped.stdout.readline() == "True\n"
        waited = subprocess.run([sys.executable, "-c", _WAITS, *paths], capture_output=True, text=True, check=True)
        stopped.communicate()
    assert waited.stdout == "False True\nFalse False\nTrue False\n"


_OF_ROW_CELLS = """
import numpy as np
from logicalrep.arrow.kernels import finding
numbers, characters = np.zeros(0, np.int64), np.zeros(0, np.uint8)
found = getattr(finding, "RowCells", getattr(finding, "Renamed", None))(numbers, numbers)
finding.find_rows(numbers, numbers, characters, characters, characters, characters, found, found)
print("compiled" if finding.find_rows.stats.cache_misses else "loaded")
"""


def test_a_kernel_is_recompiled_when_a_class_of_its_arrays_is_gone(copy: _Copy) -> None:
    assert [copy.run(_OF_ROW_CELLS), copy.run(_OF_ROW_CELLS)] == ["compiled", "loaded"]
    path = copy.root / "logicalrep" / "arrow" / "kernels" / "finding.py"
    path.write_text(path.read_text("utf-8").replace("RowCells", "Renamed"), "utf-8")
    assert copy.run(_OF_ROW_CELLS) == "compiled"


_DIGESTS = """
import sys
from importlib import import_module
from logicalrep.values import kernel
from logicalrep_runtime.columnar import kernel_cache, utf8
kernels = [
    "logicalrep_runtime.columnar.utf8",
    *(f"logicalrep.arrow.kernels.{name}" for name in ("copy_rows", "finding", "frames", "loaders", "maps", "rows", "transactions")),
]
def digests():
    kernel_cache.digest.cache_clear()
    return {name: kernel_cache.digest(import_module(name).__name__) for name in kernels}
for module in (utf8, kernel):
    before = digests()
    with open(module.__file__, "a") as file:
        print("# changed", file=file)
    after = digests()
    print([name for name in kernels if after[name] != before[name]])
sys.modules["logicalrep.arrow.kernels.transactions"].FREE -= 1
print([name for name, digest in digests().items() if digest != after[name]])
"""


def test_a_kernel_is_made_of_the_files_of_its_functions_and_of_numbers(copy: _Copy) -> None:
    assert copy.run(_DIGESTS).splitlines() == [
        "['logicalrep_runtime.columnar.utf8', 'logicalrep.arrow.kernels.loaders']",
        "['logicalrep.arrow.kernels.loaders']",
        "['logicalrep.arrow.kernels.transactions']",
    ]


@pytest.mark.parametrize("foreign", ["writable", "link", "owner", "replaceable"])
def test_a_folder_that_is_not_only_the_users_is_not_used(foreign: str, tmp_path: Path) -> None:
    path = tmp_path / f"logicalrep-{os.geteuid()}"
    if foreign == "link":
        (tmp_path / "planted").mkdir(mode=0o700)
        path.symlink_to(tmp_path / "planted")
    else:
        path.mkdir(mode=0o700)
        if foreign == "writable":
            path.chmod(0o720)
        elif foreign == "replaceable":
            tmp_path.chmod(0o777)
        elif os.geteuid() == 0:
            os.chown(path, 12345, 12345)
        else:
            pytest.skip("only root can give a folder away")
    with pytest.raises(UnsafeFolderError, match="is not a folder that only this user can write to"):
        private_folder(str(tmp_path))


def test_users_that_share_a_folder_have_one_each_in_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    path = private_folder(str(tmp_path))
    assert path == str(tmp_path / f"logicalrep-{os.geteuid()}")
    assert os.stat(path).st_mode & 0o777 == 0o700


def test_the_next_place_is_taken_and_without_any_each_process_recompiles(copy: _Copy) -> None:
    copy.beside.parent.touch()
    assert copy.run() == f"compiled {copy.home / 'numba' / copy.beside.name}"
    shutil.rmtree(copy.home)
    copy.home.touch()
    temporary = copy.root / "temporary"
    temporary.mkdir()
    own = temporary / copy.beside.name
    assert copy.run(TMPDIR=str(temporary)) == f"compiled {own}"
    assert copy.run(TMPDIR=str(temporary)) == f"loaded {own}"
    own.chmod(0o722)
    assert copy.run(TMPDIR=str(temporary)) == "not kept"
    shutil.rmtree(own)
    own.touch()
    assert copy.run(TMPDIR=str(temporary)) == "not kept"
