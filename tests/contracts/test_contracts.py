"""What may import what, and what each package can be used without.

Imports point one way: logicalrep_runtime <- logicalrep_protocol <- values, transactions <- arrow, options <- postgres, captures
<- observe <- spark <- pipeline <- reader; the command line stands beside them. The generator stands outside.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping

import pytest

from tests.conftest import ROOT
from tests.contracts.modules import MODULES, imported_names

# Each may import those before it on its line's left, and what these may import.
ABOVE = {
    "logicalrep_runtime": set(),
    "logicalrep_protocol": {"logicalrep_runtime"},
    "values": {"logicalrep_protocol"},
    "transactions": {"values"},
    "arrow": {"transactions"},
    "captures": {"arrow"},
    "options": {"transactions"},
    "postgres": {"arrow", "options"},
    "observe": {"error_codes", "postgres"},
    "spark": {"captures", "observe"},
    "pipeline": {"spark"},
    "reader": {"pipeline"},
    "metrics": {"spark"},
    "cli": {"captures", "arrow", "pipeline"},
    "logicalrep": {"logicalrep_protocol", "reader"},
    "error_codes": set(),
    "codegen": set(),
    "fuzz": {"codegen", "logicalrep_runtime"},
    "codegen.__main__": {"fuzz"},
}
FOREIGN = {
    "logicalrep_runtime": {"construct", "hypothesis", "numpy", "pyarrow"},
    "logicalrep_protocol": {"construct", "hypothesis"},
    "values": {"pyarrow"},
    "transactions": set(),
    "arrow": {"numpy", "pyarrow"},
    "captures": set(),
    "options": set(),
    "postgres": {"psycopg", "pyarrow"},
    "observe": {"openlineage", "prometheus_client", "rich"},
    "spark": {"deltalake", "numpy", "prometheus_client", "psycopg", "pyarrow", "pyspark"},
    "pipeline": {
        "deltalake",
        "msgspec",
        "numpy",
        "obstore",
        "psycopg",
        "pyarrow",
        "pyiceberg",
        "pyroaring",
        "pyspark",
        "yaml",
    }
    # The libraries of catalogs of Iceberg tables.
    | {"botocore", "requests", "sqlalchemy"},
    "reader": {"duckdb", "pandas", "polars", "pyarrow", "pyspark"},
    "metrics": set(),
    "cli": set(),
    "logicalrep": set(),
    "error_codes": set(),
    "codegen": {"jinja2", "markupsafe", "ruff", "yaml"},
    "fuzz": {"numpy", "pyarrow"},
    "codegen.__main__": set(),
}


def _part(module: str) -> str:
    """The package of a module, or the sub-package of one of `logicalrep`."""
    if module.startswith("codegen.fuzz"):
        return "fuzz"
    if module == "codegen.__main__":
        return module
    top, _, rest = module.partition(".")
    return rest.partition(".")[0] or top if top == "logicalrep" else top


def _below(part: str) -> set[str]:
    """All that a part may import, itself among it."""
    return {part}.union(*map(_below, ABOVE[part]))


def test_imports_point_one_way() -> None:
    for module, imported in imported_names().items():
        allowed = _below(_part(module))
        for other in imported & MODULES.keys():
            assert _part(other) in allowed, f"{module} imports {other}"


def test_nothing_below_imports_the_top_level_package() -> None:
    for module, imported in imported_names().items():
        assert "logicalrep" not in imported, f"{module} imports logicalrep itself"


def test_each_part_needs_its_own_libraries_alone() -> None:
    for module, imported in imported_names().items():
        # Type checkers have typing_extensions; that it is not imported when run, the tests without libraries see.
        foreign = imported - MODULES.keys() - set(sys.stdlib_module_names) - {"typing_extensions"}
        assert foreign <= FOREIGN[_part(module)], f"{module} imports {foreign - FOREIGN[_part(module)]}"


def test_spark_is_in_one_folder_of_the_pipeline() -> None:
    packages = {
        module.rpartition(".")[0]
        for module, imported in imported_names().items()
        if _part(module) == "pipeline" and ("pyspark" in imported or any(_part(name) == "spark" for name in imported))
    }
    # One asks whether PySpark is there, by its name.
    assert packages == {"logicalrep.pipeline.engines.spark"}


def _circle(imports: Mapping[str, set[str]]) -> list[str]:
    """Names that import each other in a circle; none where there is none."""
    done: set[str] = set()

    def visit(name: str, way: list[str]) -> list[str]:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return []
        for other in sorted(imports.get(name, ())):
            if circle := visit(other, [*way, name]):
                return circle
        done.add(name)
        return []

    return next(filter(None, (visit(name, []) for name in imports)), [])


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert (
        _circle({module: (imported & MODULES.keys()) - {module} for module, imported in imported_names().items()}) == []
    )


def test_no_sub_packages_import_each_other_in_a_circle() -> None:
    """A folder and its subfolders may import each other."""
    folders: dict[str, set[str]] = {}
    for module, imported in imported_names().items():
        folder = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
        imported_folders = folders.setdefault(folder, set())
        for other in imported & MODULES.keys():
            other_folder = other if MODULES[other].name == "__init__.py" else other.rpartition(".")[0]
            if not f"{other_folder}.".startswith(f"{folder}.") and not f"{folder}.".startswith(f"{other_folder}."):
                imported_folders.add(other_folder)
    assert _circle(folders) == []


PIPELINE_FLOORS = [
    {"errors", "limits", "schema"},
    {"storage"},
    {"formats", "index"},
    {"config", "state"},
    {"buffer", "catalog", "engines", "masks"},
    {"apply", "requirements", "run_context", "table_errors", "upkeep"},
    {"load"},
    {"history", "verify"},
    {"tables"},
    {"operate"},
    {"run"},
]
"""The rooms of the pipeline, from the lowest floor up: a room imports rooms on lower floors alone."""


def test_no_import_within_the_pipeline_runs_upwards() -> None:
    floors = {room: number for number, rooms in enumerate(PIPELINE_FLOORS) for room in rooms}
    prefix = "logicalrep.pipeline."
    upwards = {
        (module, imported)
        for module, imports in imported_names().items()
        for imported in imports & MODULES.keys()
        if module.startswith(prefix) and imported.startswith(prefix)
        if (room := module.split(".")[2]) != (imported_room := imported.split(".")[2])
        and floors[room] <= floors[imported_room]
    }
    assert upwards == set()
    assert floors.keys() == {module.split(".")[2] for module in MODULES if module.startswith(prefix)}


def test_a_circle_is_found() -> None:
    assert _circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


def test_the_guide_has_a_sentence_of_each_folder() -> None:
    top = ROOT / "src" / "logicalrep"
    folders = {path.parent.relative_to(top).as_posix() for path in top.rglob("__init__.py")} - {"."}
    assert folders == set(re.findall(r"^\| `([\w/]+)/` \| \S", (top / "README.md").read_text("utf-8"), re.MULTILINE))


_WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""


def _run(code: str, *blocked: str) -> str:
    """What a program prints where some packages are not installed."""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"BLOCKED = {blocked!r}\n{_WITHOUT}\n{code}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_the_package_works_with_construct_alone() -> None:
    code = """
import logicalrep
message = logicalrep.v4.parse(bytes.fromhex("53000002e501"))
assert message.build().hex() == "53000002e501"
assert logicalrep.v4.StreamStart.struct.parse(message.build()).xid == 741
assert logicalrep.Decoder(4).decode(message.build()) == message
assert logicalrep.__version__
import logicalrep.cli.main
"""
    _run(code, "numpy", "pyarrow", "psycopg", "pyspark", "pandas", "codegen", "yaml", "jinja2")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "without"),
    [
        ("logicalrep.arrow", ("pyspark", "psycopg", "pandas")),
        ("logicalrep.arrow.table.table_decoder", ("pyspark", "psycopg", "pandas")),
        ("logicalrep.arrow.committing", ("pyspark", "psycopg", "pandas")),
        ("logicalrep.postgres", ("pyspark", "numpy", "pyarrow", "pandas")),
        ("logicalrep.postgres.sessions.server_connection", ("pyspark", "numpy", "pyarrow", "pandas")),
        ("logicalrep.postgres.sessions.replication", ("pyspark", "numpy", "pyarrow", "pandas")),
        ("logicalrep.postgres.preflight", ("pyspark", "numpy", "pyarrow", "pandas")),
        ("logicalrep.postgres.peek", ("pyspark", "numpy", "pyarrow", "pandas")),
        ("logicalrep.postgres.slots.copies", ("pyspark", "numpy", "pyarrow", "pandas")),
        ("logicalrep.postgres.snapshots", ("pyspark", "numpy", "pyarrow", "pandas")),
    ],
)
def test_a_part_is_importable_without_what_it_does_not_need(module: str, without: tuple[str, ...]) -> None:
    _run(f"import {module}", *without)


def test_importing_the_package_is_light() -> None:
    code = "import logicalrep, sys; print([name for name in ('numpy', 'pyarrow', 'psycopg') if name in sys.modules])"
    assert _run(code) == "[]"
