"""What is there without the packages that it needs."""

from __future__ import annotations

import os
import subprocess
import sys

_BLOCK = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in BLOCKED else found(name, package)
"""


def run(code: str, *, blocked: tuple[str, ...] = (), **environment: str) -> str:
    """What a program prints, without some packages."""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"BLOCKED = {blocked!r}\n{_BLOCK}\n{code}"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_the_package_itself_needs_none_of_it() -> None:
    code = "import logicalrep; print([n for n in ('numpy', 'pyarrow', 'numba', 'logicalrep.columnar') if n in sys.modules])"
    assert run(code) == "[]"


def test_without_pyarrow_the_import_says_what_to_install() -> None:
    code = "try:\n    import logicalrep.columnar\nexcept ImportError as error:\n    print(error)"
    expected = "logicalrep.columnar needs pyarrow: pip install 'logicalrep[arrow]'"
    assert run(code, blocked=("pyarrow",)) == expected
    expected = "logicalrep.columnar needs numpy and pyarrow: pip install 'logicalrep[arrow]'"
    assert run(code, blocked=("pyarrow", "numpy")) == expected


_DECODE = """
import pyarrow as pa
from logicalrep import v1
from logicalrep.columnar import Session, decode_batch, default_backend
data = v1.Origin(origin_lsn=1, name="o").build()
batch, _ = decode_batch(pa.array([data], pa.binary()), Session(version=1))
print(default_backend(), batch["name"].to_pylist(), "numba" in sys.modules)
"""


def test_without_numba_it_is_numpy() -> None:
    assert run(_DECODE, blocked=("numba", "llvmlite")) == "numpy ['o'] False"


def test_importing_compiles_nothing() -> None:
    code = "import logicalrep.columnar; print('numba' in sys.modules)"
    assert run(code) == "False"
