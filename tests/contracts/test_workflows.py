"""The forge runs what .ci/run runs: each step of a workflow is a command of the Makefile."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conftest import ROOT

FORGE_ALONE = {
    "server-packages": "it installs packages of the machine",
    "test-spark-versions": "it takes half an hour, and the newest PySpark is tested",
    "audit": "it asks a service",
    "wheels": "its compiler takes 400 MB, and make build builds the same for one processor",
    "test-quick": "it is a part of make test, for a system without tests of its own",
    "forge-release": "it publishes",
    "spec-review": "it comments on a pull request; make spec-diff prints the same",
}
"""The commands that .ci/run does not call, and why."""
WITHOUT_MAKE = {
    "python .ci/packages.py",
    "python -m pip install -c .ci/lock.txt ./native -e .[dev,replicate,connect]",
    'python -m pytest -q -n 3 --continue-on-collection-errors -m "not postgres and not spark and not thorough and not slow"',
    "mkdir dist && mv files/*.whl files/logicalrep*-*.tar.gz dist/",
}
"""The commands of jobs without make or without a clone: what make test-packages and make test-quick run."""

WORKFLOWS = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in (ROOT / ".github/workflows").glob("*.yml")}


def _steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def _commands(text: str) -> set[str]:
    lines = re.findall(r"^make ((?:[a-z][a-z-]* ?)+)", text, re.MULTILINE)
    return {command for line in lines for command in line.split()}


@pytest.mark.parametrize("name", sorted(WORKFLOWS))
def test_each_step_of_a_workflow_is_a_command_that_ci_runs_too(name: str) -> None:
    runs = [step["run"] for step in _steps(WORKFLOWS[name]) if step.get("run") not in (None, *WITHOUT_MAKE)]
    assert all(re.fullmatch(r"make [a-z-]+( [A-Z]+=\S+| [A-Z]+=\$\{\{ [a-z._]+ }})*", run) for run in runs), runs
    makefile = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    called = _commands("\n".join(runs))
    assert called <= makefile
    assert called - _commands((ROOT / ".ci/run").read_text("utf-8")) <= FORGE_ALONE.keys()


def test_jobs_without_make_select_the_tests_of_make_test_quick() -> None:
    (selection,) = re.findall(r"-m (\".+\")", " ".join(WITHOUT_MAKE))
    (quick,) = re.findall(r"^test-quick:.*\n\t(.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert quick == f"$(PYTEST) -m {selection}"


def test_the_workflows_run_all_that_ci_runs() -> None:
    runs = "\n".join(step.get("run", "") for step in _steps(WORKFLOWS["tests"]))
    assert _commands((ROOT / ".ci/run").read_text("utf-8")) <= _commands(runs)


def test_actions_are_pinned_but_the_one_that_publishes() -> None:
    used = {step["uses"] for workflow in WORKFLOWS.values() for step in _steps(workflow) if "uses" in step}
    loose = {action for action in used if not re.search(r"@[0-9a-f]{40}$", action)}
    # Its maintainers ask for this branch: what PyPI accepts changes with it.
    assert loose == {"pypa/gh-action-pypi-publish@release/v1"}


def test_a_release_has_one_version() -> None:
    project, native = (
        tomllib.loads((ROOT / path).read_text("utf-8"))["project"]
        for path in ("pyproject.toml", "native/pyproject.toml")
    )
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert native["version"] == citation["version"] == project["version"]
    (required,) = (line for line in project["optional-dependencies"]["arrow"] if line.startswith("logicalrep-native"))
    assert required == f"logicalrep-native=={project['version']}"


def test_the_lock_has_what_the_tests_install() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    locked = [Requirement(line) for line in (ROOT / ".ci/lock.txt").read_text("utf-8").splitlines()]
    versions = {canonicalize_name(requirement.name): requirement.specifier for requirement in locked}
    for requirement in map(Requirement, wanted):
        if requirement.name in ("logicalrep", "logicalrep-native"):
            continue
        (pinned,) = versions[canonicalize_name(requirement.name)]
        assert pinned.operator == "=="
        assert requirement.specifier.contains(pinned.version), f"{requirement} and {pinned}: make lock"
