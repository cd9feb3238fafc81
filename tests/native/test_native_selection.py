"""The native reader is found by itself, turned off by a variable, and refused with a line where it does not fit."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from logicalrep_runtime.native import TABLE_NUMBER
from tests.conftest import ROOT
from tests.native.installed import needs_native

PROGRAM = """
from logicalrep import v1, v4, walsender
message = v1.parse(bytes.fromhex("4200000000019092800003034062c50000000002e4"))
assert message.xid == 740
try:
    v4.parse(b"B")
except ValueError as error:
    print(error)
print("native" if v4.native_read is not None and walsender.native_read_of_client is not None else "Python")
"""
SHORT = "Begin: final_lsn at offset 1: expected 8 bytes, found 0 bytes to the end of the message\n"
OTHER_NUMBER = (
    f"logicalrep-native reads tables of format 999, and this logicalrep writes format {TABLE_NUMBER}: messages are read in "
    "Python; install the same release of both\n"
)


def _run(folder: Path, program: str = PROGRAM, **environment: str) -> tuple[str, str]:
    """Return what a program prints and what stands in its log, with a folder before all others."""
    path = os.pathsep.join([str(folder), str(ROOT / "generated"), str(ROOT / "src")])
    result = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": path} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout, result.stderr


def test_both_distributions_have_one_version() -> None:
    versions = {
        tomllib.loads((ROOT / path).read_text(encoding="utf-8"))["project"]["version"]
        for path in ("pyproject.toml", "native/pyproject.toml")
    }
    assert len(versions) == 1


@needs_native
def test_it_is_found_by_itself(tmp_path: Path) -> None:
    assert _run(tmp_path, LOGICALREP_NATIVE="") == (f"{SHORT}native\n", "")


def test_it_is_off_by_a_variable(tmp_path: Path) -> None:
    (tmp_path / "logicalrep_native.py").write_text("raise AssertionError('it is imported')\n")
    assert _run(tmp_path, LOGICALREP_NATIVE="0") == (f"{SHORT}Python\n", "")


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("TABLE_NUMBER = 999\n", OTHER_NUMBER),
        (
            "raise ImportError('undefined symbol: PyFoo')\n",
            "logicalrep-native cannot be loaded (undefined symbol: PyFoo): messages are read in Python\n",
        ),
        ("raise ModuleNotFoundError(name='logicalrep_native')\n", ""),
    ],
    ids=["a table of another number", "one that cannot be loaded", "none"],
)
def test_an_incompatible_reader_is_refused_with_a_line(module: str, line: str, tmp_path: Path) -> None:
    (tmp_path / "logicalrep_native.py").write_text(module)
    assert _run(tmp_path, LOGICALREP_NATIVE="") == (f"{SHORT}Python\n", line)


OTHER_WALKS = """
import logicalrep_native
logicalrep_native.WALKS = ("0123456789abcdef",)
"""
OF_BATCHES = """
import pyarrow as pa
from logicalrep_protocol.columnar import Session, decode_batch
for version in (1, 2):
    print(decode_batch(pa.array([b"O" + bytes(8) + b"name\\0"]), Session(version=version))[0]["name"].to_pylist())
"""
NO_MODULE = (
    "the module of logicalrep-native is not installed: Python reads batches message by message, a sixtieth as fast; "
    "install its wheel, or a C compiler to build one\n"
)
NO_WALK = (
    "logicalrep-native has no walk over batches of this spec: Python reads batches message by message, a sixtieth as "
    "fast; install the same release of both, or run pip install ./native after a change of spec/\n"
)


@needs_native
def test_a_walk_of_another_spec_is_refused_with_a_line(tmp_path: Path) -> None:
    assert _run(tmp_path, OTHER_WALKS + OF_BATCHES, LOGICALREP_NATIVE="") == ("['name']\n['name']\n", NO_WALK)


@pytest.mark.parametrize(("variable", "log"), [("", NO_MODULE), ("0", "")])
def test_columns_without_the_module_are_slow_with_a_line(tmp_path: Path, variable: str, log: str) -> None:
    (tmp_path / "logicalrep_native.py").write_text("raise ModuleNotFoundError(name='logicalrep_native')\n")
    assert _run(tmp_path, OF_BATCHES, LOGICALREP_NATIVE=variable) == ("['name']\n['name']\n", log)
