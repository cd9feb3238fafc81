"""The files for services, containers and orchestrators: their commands are ours, and their own tools take them."""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from logicalrep.cli.main import argument_parser
from tests.documents import ROOT

DEPLOY = ROOT / "examples/deploy"


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "logicalrep.service").read_text("utf-8")
    (line,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    program, *arguments = shlex.split(line)
    assert argument_parser().parse_args(arguments).listen == "8080"
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "logicalrep.service"
    # systemd looks for the program, and for the user where it has a database of them.
    unit.write_text(text.replace(program, str(Path(sys.executable).parent / "logicalrep")))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit],
        env=os.environ | {"SYSTEMD_LOG_LEVEL": "warning"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert [message for message in done.stderr.splitlines() if "logicalrep.service" in message] == []
    assert done.returncode == 0, done.stderr


def _rendered(name: str) -> dict[str, Any]:
    """Return the resources of a Kustomize folder by their kind, each valid by the schema of Kubernetes."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    text = subprocess.run(["kubectl", "kustomize", DEPLOY / "kustomize" / name], capture_output=True, check=True).stdout
    resources = {resource["kind"]: resource for resource in yaml.safe_load_all(text)}
    for resource in resources.values():
        kubernetes_validate.validate(resource, "1.37", strict=True)
    return resources


def test_kustomize_puts_tables_into_an_object_store() -> None:
    resources = _rendered("object-store")
    stateful = resources["StatefulSet"]["spec"]
    (container,) = stateful["template"]["spec"]["containers"]
    assert argument_parser().parse_args(container["args"]).to == "s3://lake/shop"
    assert "volumeMounts" not in container
    assert "volumeClaimTemplates" not in stateful
    assert container["envFrom"] == [{"secretRef": {"name": resources["Secret"]["metadata"]["name"]}}]
    assert {"PGPASSWORD", "AWS_REGION"} < resources["Secret"]["data"].keys()


def test_kubernetes_runs_one_process_with_probes() -> None:
    resources = _rendered("base")
    assert resources.keys() == {"Secret", "Service", "StatefulSet"}
    stateful = resources["StatefulSet"]["spec"]
    (container,) = stateful["template"]["spec"]["containers"]
    options = argument_parser().parse_args(container["args"])
    assert (stateful["replicas"], options.to, options.listen) == (1, "/lake", "0.0.0.0:8080")
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/lake"]
    probes = {name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("liveness", "readiness")}
    assert probes == {"liveness": "/healthz", "readiness": "/readyz"}
    assert container["image"] in (DEPLOY / "Containerfile").read_text("utf-8")


def test_airflow_calls_existing_commands() -> None:
    tree = ast.parse((DEPLOY / "airflow_dag.py").read_text("utf-8"))
    place = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PLACE"
    )
    texts = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    commands = [shlex.split(eval(text, {"PLACE": place})) for text in texts]
    assert [command[1] for command in commands] == ["replicate", "verify"]
    for command in commands:
        assert argument_parser().parse_args(command[1:]).to == "s3://lake/shop"
