"""A run with `once` that ends while a table's load waits for a later time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from logicalrep.pipeline.loop import Loop, TablesStoppedError
from logicalrep_runtime.scalars import Lsn


def test_a_load_whose_time_comes_during_the_upkeep_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = SimpleNamespace(behind={"public.t": "its load waits"}, are_up_to_date=True, refused_parts=[])
    loop = Loop.__new__(Loop)
    loop._checkpoints, loop._tables = cast(Any, SimpleNamespace(lsn=Lsn(2))), cast(Any, tables)
    monkeypatch.setattr(loop, "_refresh_catalog", lambda: True)
    monkeypatch.setattr(loop, "_save_checkpoint", lambda lsn: None)
    tables.finish = lambda: setattr(tables, "behind", {})
    with pytest.raises(TablesStoppedError, match=r"public\.t: its load waits"):
        loop._finish(Lsn(1))
