"""The limits of a run, and the page that has their sums."""

from __future__ import annotations

import ast
import pickle
import re
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from logicalrep.observe.observer import Observers
from logicalrep.pipeline import limits as module
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.storage.storage import Storage
from tests.pipeline.comparison import find_differences
from tests.pipeline.replicating import settings
from tests.postgres.servers import Database

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reference/sizing.md"


def test_the_page_has_each_sum() -> None:
    rows = dict(re.findall(r"^\| `(\w+)`: .* \| (\d+) \|$", PAGE.read_text("utf-8"), re.MULTILINE))
    sums = [name for name in vars(Limits) if name.endswith("memory")]
    assert {name: int(size) << 20 for name, size in rows.items()} == {name: getattr(Limits(), name) for name in sums}


@pytest.mark.parametrize("megabytes", [80, 81.7, 100, 333.3, 636, 637, 638, 2000])
def test_the_option_memory_bounds_the_sum(megabytes: float) -> None:
    limits = ReplicateSettings("", "lake", memory=megabytes).limits
    assert 0.99 * min(megabytes * 1e6, Limits().memory) < limits.memory <= min(megabytes * 1e6, Limits().memory)
    # An item that is sent to another process is never more than all items together, and work is of a megabyte at least.
    assert 1 << 20 <= limits.in_process_bytes < limits.batch_bytes <= limits.effect_bytes < limits.sent_bytes
    assert limits.sent_bytes < limits.sent_at_once_bytes


class _Sizes(SequentialEngine):
    """Collects the sizes of items that other processes would get."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def run_together(self, function: Any, item: Any, nbytes: int) -> Any:
        self.sizes.append(nbytes)
        return super().run_together(function, item, nbytes)


def test_a_run_with_the_least_memory_divides_a_large_transaction_and_is_right(db18: Database, tmp_path: Path) -> None:
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t SELECT i FROM generate_series(1, 100) AS i"
    )
    engine, wanted = _Sizes(), settings(db18, tmp_path, once=True, memory=80)
    replicate_with(wanted, Observers(), engine=engine)
    db18.execute(
        "INSERT INTO t SELECT i, repeat(md5(i::text), 128) FROM generate_series(101, 4100) AS i; "
        "DELETE FROM t WHERE id % 3 = 0"
    )
    engine.sizes.clear()
    replicate_with(wanted, Observers(), engine=engine)
    assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}
    assert 1 << 20 < max(engine.sizes) <= wanted.limits.batch_bytes < sum(engine.sizes)


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
