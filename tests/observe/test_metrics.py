"""The exposition of the metrics."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime

import pytest
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from logicalrep.observe.figures import Figures, Standing, TableFigures
from logicalrep.observe.metrics import METRICS, registry
from tests.observe.scraping import figures_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ODD = 'public."<script> \\ "" \n"'
ALL = Figures(
    slot="a", lag_bytes=1, lag_seconds=2.5, retained_bytes=3, retained_limit=4, changes=5, bytes=6, batches=7, restarts=8,
    errors={"load": 12}, mode="peek", seconds={"spark": 0.5}, committed=NOW, checkpointed=NOW.timestamp(), load_snapshot=NOW,
    tables={ODD: TableFigures(state=Standing.LOADING, version=9, rows=10, rows_copied=11, committed=NOW, unfit=13)},
)  # fmt: skip


def exposed(*figures: Figures) -> str:
    return generate_latest(registry(lambda: figures)).decode()


def test_every_figure_is_a_metric_of_its_slot() -> None:
    figures = figures_of(text_string_to_metric_families(exposed(ALL)))
    assert {name.split()[0] for name in figures} == {metric.name for metric in METRICS}
    assert figures[f"logicalrep_table_rows {ODD}"] == 10
    assert figures[f"logicalrep_table_unrepresentable_values {ODD}"] == 13
    assert figures["logicalrep_seconds_total spark"] == 0.5
    assert figures["logicalrep_errors_total load"] == 12
    text = exposed(ALL, Figures(slot="b", lag_bytes=12))
    assert 'logicalrep_lag_bytes{slot="a"} 1.0\nlogicalrep_lag_bytes{slot="b"} 12.0\n' in text
    assert text.count('slot="b"') == 1


def test_prometheus_finds_nothing_to_mend() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool, which reads metrics as Prometheus does, is not installed")
    command = [promtool, "check", "metrics"]
    result = subprocess.run(command, input=exposed(ALL), capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout + result.stderr) == (0, "")
