"""The limits of a run, and the page that has their sums."""

from __future__ import annotations

import ast
import pickle
import re
from dataclasses import fields
from itertools import pairwise
from pathlib import Path

from logicalrep.pipeline import limits as module
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.storage.storage import Storage

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reference/sizing.md"


def test_the_page_has_each_sum() -> None:
    rows = dict(re.findall(r"^\| `(\w+)`: .* \| (\d+) \|$", PAGE.read_text("utf-8"), re.MULTILINE))
    sums = [name for name in vars(Limits) if name.endswith("memory")]
    assert {name: int(size) << 20 for name, size in rows.items()} == {name: getattr(Limits(), name) for name in sums}


def test_each_limit_is_documented() -> None:
    text = Path(module.__file__).read_text("utf-8")
    (body,) = [node.body for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    documented = {
        field.target.id
        for field, doc in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(doc, ast.Expr)
    }
    assert documented == {field.name for field in fields(Limits)}


def test_tasks_of_other_processes_have_the_limits_of_the_run() -> None:
    storage = Storage("/lake", limits=Limits(file_rows=7))
    assert pickle.loads(pickle.dumps(storage)).limits == storage.limits
