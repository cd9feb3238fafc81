"""The package that a spec gives, generated in little time and imported in place of the real one for a while."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

import codegen.emit.package
from codegen.fuzz.native import COMPILER, build_module
from codegen.model.model import Protocol
from codegen.model.reader import load
from tests.conftest import ROOT

WALKS = pytest.mark.parametrize(
    "walk",
    ["parsed", pytest.param("native", marks=pytest.mark.skipif(COMPILER is None, reason="there is no C compiler"))],
)
"""What walks batches of a changed spec: `parse`, or `logicalrep-native`, compiled for the spec."""


def run_generated(
    protocols: tuple[Protocol, ...], folder: Path, program: str, *, walk: str = "parsed", given: str = ""
) -> str:
    """Generate a package into a folder and run a program with it; return what that prints."""
    if walk == "native":
        folder.mkdir(exist_ok=True)
        build_module(codegen.emit.package.emit_native(protocols), folder)
    for path, text in emit_unformatted(protocols).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    result = subprocess.run(
        [sys.executable, "-c", program],
        input=given,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "src"), str(ROOT)])}
        | {"LOGICALREP_NATIVE": "" if walk == "native" else "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    return result.stdout


def emit_unformatted(protocols: Iterable[Protocol]) -> dict[Path, str]:
    """What `emit` gives, but not formatted: it works the same, and what is no Python shows when it is imported."""

    def unformatted(texts: Mapping[str, str], package: str) -> dict[Path, str]:
        return {Path(name): text for name, text in texts.items()}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codegen.emit.package.formatted", unformatted)
        return codegen.emit.package.emit(protocols)


def _is_of_package(module: str) -> bool:
    return module.split(".")[0] == "logicalrep_protocol"


@contextmanager
def generate_from(spec: Path, out: Path) -> Iterator[ModuleType]:
    """Generate into a folder and import `logicalrep_protocol` from there."""
    for path, text in emit_unformatted(load(spec)).items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_text(text, encoding="utf-8")
    with imported_from(out) as package:
        yield package


@contextmanager
def imported_from(out: Path) -> Iterator[ModuleType]:
    """Import `logicalrep_protocol` from a folder, in place of the real one for a while."""
    real = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_of_package(name)}
    sys.path.insert(0, str(out))
    try:
        package = importlib.import_module("logicalrep_protocol")
        assert package.__file__ is not None
        assert Path(package.__file__).is_relative_to(out)
        yield package
    finally:
        sys.path.remove(str(out))
        for name in list(filter(_is_of_package, sys.modules)):
            del sys.modules[name]
        sys.modules.update(real)
