"""The arguments of `replicate` in Python, and the names of the package that need an extra."""

from __future__ import annotations

import subprocess
import sys

import pytest

import logicalrep


def test_an_unknown_argument_is_an_error_of_the_function(tmp_path: object) -> None:
    pytest.importorskip("psycopg")
    unknown: dict[str, bool] = {"onec": True}
    with pytest.raises(TypeError) as raised:
        logicalrep.replicate("dbname=x", str(tmp_path), **unknown)  # type: ignore[arg-type]
    assert str(raised.value) == "replicate() got an unexpected keyword argument 'onec'; did you mean once?"
    assert raised.value.__cause__ is None
    with pytest.raises(TypeError, match=r"^replicate\(\) missing a required argument: 'to'"):
        logicalrep.replicate("dbname=x")  # type: ignore[call-arg]


def test_a_prompt_completes_the_names_that_are_imported_late() -> None:
    pytest.importorskip("psycopg")
    pytest.importorskip("pyarrow")
    assert {"replicate", "read", "at", "stream", "Decoder", "v4"} <= set(dir(logicalrep))


_PROGRAM = """
import sys
sys.modules["psycopg"] = None
import logicalrep
print({"replicate", "stream"} & set(dir(logicalrep)))
try:
    logicalrep.replicate
except ImportError as error:
    print(error)
"""


def test_a_missing_extra_is_one_line() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == [
        "set()",
        "psycopg is not installed: run pip install 'logicalrep[local]'",
    ]
