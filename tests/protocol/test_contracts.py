"""What the package's parts may import."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

GENERATED = ROOT / "generated" / "logicalrep"
PIPELINE = ROOT / "pipeline" / "logicalrep_pipeline"
WITH_SPARK = {"spark", "tables"}


def _imported(path: Path) -> set[str]:
    """The top-level packages that a file imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


def _files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def test_generated_code_imports_neither_the_generator_nor_the_pipeline() -> None:
    own = {"logicalrep", "construct"}
    for path in GENERATED.glob("*.py"):
        foreign = _imported(path) - own - set(sys.stdlib_module_names)
        assert not foreign, f"{path} imports {foreign}"
    for path in _files(GENERATED):
        forbidden = {"codegen", "logicalrep_pipeline", "yaml", "jinja2", "ruff", "pyspark"}
        assert not _imported(path) & forbidden, path


def test_pipeline_imports_spark_in_spark_and_tables_only_and_the_generator_nowhere() -> None:
    for path in _files(PIPELINE):
        imported = _imported(path)
        assert not imported & {"codegen", "yaml", "jinja2", "ruff"}, path
        if path.relative_to(PIPELINE).parts[0] not in WITH_SPARK:
            assert "pyspark" not in imported, path


def test_generator_imports_neither_the_pipeline_nor_spark() -> None:
    for path in _files(ROOT / "codegen"):
        assert not _imported(path) & {"logicalrep_pipeline", "pyspark"}, path


_ONLY_CONSTRUCT = """
import sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in ALLOWED or top in sys.stdlib_module_names:
            return None
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

ALLOWED = {"logicalrep", "construct"}
sys.meta_path.insert(0, Finder())
import logicalrep
message = logicalrep.v4.parse(bytes.fromhex("53000002e501"))
assert message.build().hex() == "53000002e501"
assert logicalrep.v4.StreamStart.struct.parse(message.build()).xid == 741
assert logicalrep.Decoder(4).decode(message.build()) == message
print(sorted({name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names) - {"__main__"}))
"""


def test_the_package_works_where_only_construct_is_installed() -> None:
    result = subprocess.run(
        [sys.executable, "-c", _ONLY_CONSTRUCT], capture_output=True, text=True, check=False, cwd=ROOT.parent
    )
    assert result.returncode == 0, result.stderr
    loaded = set(ast.literal_eval(result.stdout))
    assert {"logicalrep", "construct"} <= loaded
    assert not loaded & {"codegen", "yaml", "jinja2", "numpy", "pyarrow", "pyspark", "psycopg"}


@pytest.mark.parametrize("module", ["codegen", "logicalrep_pipeline", "yaml", "jinja2", "pyspark"])
def test_importing_the_package_loads_none_of_the_rest(module: str) -> None:
    script = f"import logicalrep, sys; print({module!r} in sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert result.stdout == "False\n"
