"""Processes that run no code but ours start without pandas, and without what few runs use."""

from __future__ import annotations

import subprocess
import sys

import pytest

_START = "import sys\nfrom logicalrep.pipeline.engines.own_process import importing, leave_out_pandas\n"


def _printed(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-P", "-c", _START + program], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_arrow_converts_values_without_pandas() -> None:
    values = "import pyarrow as pa; pa.array([1, None]); pa.scalar(b''); pa.table({'a': ['x']}).to_pylist()\n"
    assert _printed(f"leave_out_pandas()\n{values}print('pandas' in sys.modules)") == "False"


def test_pandas_still_works_where_it_is_asked_for() -> None:
    pytest.importorskip("pandas")
    both_ways = (
        "import pandas, pyarrow as pa\n"
        "frame = pandas.DataFrame({'a': [1.0, float('nan')], 'b': pandas.Categorical(['u', 'v'])})\n"
        "table = pa.Table.from_pandas(frame)\n"
        "print(table.column('a').null_count, table.to_pandas().equals(frame))"
    )
    assert _printed(f"leave_out_pandas()\n{both_ways}") == "1 True"


def test_a_process_that_has_pandas_keeps_it() -> None:
    pytest.importorskip("pandas")
    series = "import pyarrow as pa; print(pa.array(pandas.Series([1.0, float('nan')])).null_count)"
    assert _printed(f"import pandas\nleave_out_pandas()\n{series}") == "1"


def test_garbage_is_collected_again_after_imports() -> None:
    fails = "import gc\ntry:\n    with importing():\n        import no_such_module\nexcept ImportError:\n    pass\n"
    assert _printed(f"{fails}print(gc.isenabled())") == "True"
    assert _printed("import gc\nwith importing():\n    print(gc.isenabled())\nprint(gc.isenabled())") == "False\nTrue"


def test_a_run_imports_what_few_runs_use_only_for_them() -> None:
    rare = "{'rich', 'http.client', 'prometheus_client', 'pandas', 'pyspark'}"
    program = f"import logicalrep.observe.terminal, logicalrep.pipeline.run.run\nprint({rare} & sys.modules.keys())"
    assert _printed(f"leave_out_pandas()\n{program}") == "set()"
