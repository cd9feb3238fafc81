"""A file with several databases, and the command that replicates them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.conftest import ROOT
from tests.pipeline.comparison import find_differences
from tests.postgres.servers import Database

COMMAND = [sys.executable, "-m", "logicalrep.cli.main"]

NAMES = ("shop", "crm")


def write_file(folder: Path, databases: Mapping[str, Database], **options: Mapping[str, object]) -> Path:
    """Write a file with databases, whose destinations are in the same folder; `options` has more of each."""
    path = folder / "databases.yaml"
    sections = {
        name: {"dsn": db.dsn, "to": str(folder / name), **options.get(name, {})} for name, db in databases.items()
    }
    path.write_text(yaml.safe_dump({"databases": sections}, sort_keys=False))
    return path


def are_equal(folder: Path, databases: Mapping[str, Database], *names: str) -> bool:
    return all(
        any(folder.glob(f"{name}/public/t/_delta_log/*.json"))
        and find_differences(databases[name].dsn, str(folder / name), ["public.t"]) == {}
        for name in names or databases
    )


@contextmanager
def following(path: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Yield the command that follows the databases of a file; its lines are in a file beside that."""
    with path.with_suffix(".log").open("a") as log:
        parent = subprocess.Popen(
            [*COMMAND, "replicate", "--config", str(path), "--every", "0", *options],
            cwd=ROOT, stdout=log, stderr=log, text=True, start_new_session=True,
        )  # fmt: skip
    try:
        yield parent
    finally:
        parent.kill()
        parent.wait()
