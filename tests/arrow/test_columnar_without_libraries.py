"""The columnar code without the packages that it needs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

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
    """Return the output of a program that cannot import the blocked packages."""
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
    code = "import logicalrep; print([n for n in ('numpy', 'pyarrow', 'logicalrep_protocol.columnar') if n in sys.modules])"
    assert run(code) == "[]"


@pytest.mark.parametrize(
    ("absent", "needed"),
    [
        (("pyarrow",), "pyarrow"),
        (("pyarrow", "numpy"), "numpy and pyarrow"),
    ],
)
def test_the_import_says_what_to_install(absent: tuple[str, ...], needed: str) -> None:
    code = "try:\n    import logicalrep_protocol.columnar\nexcept ImportError as error:\n    print(error, error.name)"
    first = needed.partition(" ")[0]
    expected = f"reading in columns needs {needed}: run pip install 'logicalrep[arrow]' {first}"
    assert run(code, blocked=absent) == expected
