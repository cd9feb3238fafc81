"""The metrics and the page of `logicalrep replicate --listen`, and the rules of examples/alerts.yml."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from logicalrep.cli.main import main
from logicalrep.postgres.slots import Slot
from logicalrep.tables.observe.metrics import METRICS, page
from logicalrep.tables.observe.observed import Observed
from logicalrep.tables.observe.server import ListenError, serving
from logicalrep.tables.report import Quiet, Standing
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn
from tests.conftest import ROOT
from tests.postgres.servers import Database
from tests.tables.test_replicate import following, shop
from tests.waiting import eventually

__all__ = ["shop"]

SCRIPT = TableName("public", "<script>alert(1)</script>")
SLOT = Slot(
    name="s", plugin="pgoutput", database="d", active_pid=1, restart_lsn=Lsn(1000), confirmed_flush_lsn=Lsn(2000),
    two_phase=False, failover=False, lost=None, head=Lsn(5000), sent_up_to=Lsn(5000), useless_standbys=(), timeline=None,
    wal_status="reserved", safe_wal_size=6000, time=datetime.now(UTC),
)  # fmt: skip


def got(address: str) -> str:
    with urlopen(address, timeout=10) as answer:
        return str(answer.read().decode())


def figures(address: str) -> dict[str, Any]:
    """The samples by name, or by name and the values of labels by their names."""
    found: dict[str, Any] = {}
    for family in text_string_to_metric_families(got(f"{address}metrics")):
        for sample in family.samples:
            found[" ".join([sample.name, *(value for _, value in sorted(sample.labels.items()))])] = sample.value
    return found


class Heard(Quiet):
    address = ""

    def listening(self, address: str) -> None:
        self.address = address


class Texts(HTMLParser):
    """The tags and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_metrics_and_page_while_tables_follow(shop: Database, tmp_path: Path) -> None:
    shop.execute('CREATE TABLE "<script>" (id int PRIMARY KEY)')
    heard, script = Heard(), 'public."<script>"'
    with following(shop, tmp_path, heard, listen="0") as caught_up:
        caught_up()
        # `bare` has no replica identity.
        shop.execute("DELETE FROM customer WHERE id <= 7", 'INSERT INTO "<script>" VALUES (1), (2)')
        committed = time.time()
        caught_up()
        eventually(lambda: figures(heard.address)["logicalrep_lag_bytes"] == 0)
        found, text = figures(heard.address), got(heard.address)
        assert {name.split()[0] for name in found} == {
            metric.name for metric in METRICS if metric.name != "logicalrep_retained_wal_limit_bytes"
        }
        assert found["logicalrep_lag_seconds"] == 0
        assert found["logicalrep_changes_total"] == 9
        assert found["logicalrep_batches_total"] in (1, 2)
        assert 0 < found["logicalrep_applying_seconds_total"] < 30
        assert abs(found["logicalrep_last_commit_timestamp_seconds"] - committed) < 5
        assert time.time() - found["logicalrep_noted_timestamp_seconds"] < 15
        assert found["logicalrep_table_rows_copied_total public.customer"] == 1000
        assert found["logicalrep_table_rows_copied_total public.orders"] == 5000
        assert found["logicalrep_table_version public.customer"] == 1
        assert found["logicalrep_table_version public.audit"] == 0
        assert [found[f"logicalrep_table_state {state} {script}"] for state in ("following", "loading", "stopped")] == [
            1, 0, 0
        ]  # fmt: skip
        read = Texts(text)
        assert script in read.texts
        assert "script" not in read.tags
        assert "4 following, 0 loading, 0 standing still" in text
        assert re.search(r"public\.bare", text)
    with pytest.raises(OSError, match="refused"):
        got(heard.address)


@contextmanager
def served() -> Iterator[tuple[Observed, str]]:
    observed = Observed()
    with serving("127.0.0.1:0", observed, "/lake/<b>") as address:
        yield observed, address


def test_lag_is_the_time_for_which_something_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    observed = Observed()

    def sample(seconds: float, end: int) -> None:
        # The server's clock is an hour ahead.
        now[0] = seconds
        observed.sample(replace(SLOT, sent_up_to=Lsn(end), time=datetime.fromtimestamp(seconds + 3600, UTC)))

    sample(1000, 5000)
    assert (observed.lag_bytes, observed.lag_seconds) == (None, None)
    observed.noted(5000, {})
    assert (observed.lag_bytes, observed.lag_seconds) == (0, 0)
    sample(2000, 5000)
    sample(2010, 5300)
    sample(2020, 5400)
    assert (observed.lag_bytes, observed.lag_seconds) == (400, 20)
    observed.noted(5300, {})
    assert (observed.lag_bytes, observed.lag_seconds) == (100, 10)
    observed.batch(1, 1, 0.5, 0, datetime.fromtimestamp(2015 + 3600, UTC))
    assert observed.lag_seconds == 5
    observed.noted(5400, {})
    assert observed.lag_seconds == 0


def test_what_is_held_is_bounded() -> None:
    observed = Observed()
    observed.noted(1, {})
    for number in range(10_000):
        observed.warning(f"warning {number}")
        observed.sample(SLOT)
        observed.loading(TableName("public", f"t{number}"), 1)
        observed.noted(1, {})
    assert (len(observed.messages), len(observed.samples), len(observed.loads), len(observed.rows_copied)) == (
        30, 4320, 0, 0
    )  # fmt: skip
    observed.warning("warning 9999")
    assert len(observed.messages) == 30


def test_the_page_of_a_table_that_loads_and_one_that_stands_still() -> None:
    with served() as (observed, address):
        assert "None yet." in got(address)
        stopped = "[COLUMN_VALUE] <i>infinity</i> does not fit; run logicalrep resync public.orders"
        observed.noted(
            4000,
            {
                str(SCRIPT): Standing("loading", None, None),
                "public.orders": Standing("stopped", 3, stopped),
                "public.good": Standing("following", 12, None),
            },
        )
        observed.loading(SCRIPT, 200)
        observed.copied(SCRIPT, 50)
        observed.warning("<em>warning</em>")
        for _ in range(500):
            observed.sample(SLOT)
        text = got(address)
        read = Texts(text)
        assert {"script", "i", "em"} & set(read.tags) == set()
        assert read.tags.count("svg") == 2
        assert len(text) < 30_000
        assert '<progress value="50" max="200"' in text
        assert stopped in read.texts
        assert str(SCRIPT) in read.texts
        assert "/lake/<b>" in read.texts
        assert figures(address)["logicalrep_retained_wal_limit_bytes"] == SLOT.retained_bytes + 6000
        with pytest.raises(HTTPError, match="404"):
            got(f"{address}other")
        connection = http.client.HTTPConnection(address.split("/")[2], timeout=10)
        connection.request("HEAD", "/")
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"")
        assert "default-src 'none'" in str(answer.headers["Content-Security-Policy"])
        connection.close()


@pytest.mark.parametrize("listen", ["", "host", "host:", "host:70000", "a b:80", "::1:80", "http://h:80", "8o80"])
def test_what_is_no_address_is_refused(listen: str) -> None:
    with pytest.raises(ListenError, match=r"\[LISTEN_ADDRESS\] .* is not HOST:PORT"), serving(listen, Observed(), ""):
        pass


def test_a_port_in_use_is_one_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main(["replicate", "--dsn", "host=/nowhere", "--to", str(tmp_path), "--listen", str(port)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"[LISTEN_REFUSED] cannot listen at 127.0.0.1:{port}: " in line
    assert list(tmp_path.iterdir()) == []


def test_the_page_of_metrics_is_current() -> None:
    assert (ROOT / "docs" / "metrics.md").read_text("utf-8") == page(), "run `make docs/metrics.md`"


def _rules() -> dict[str, str]:
    (group,) = yaml.safe_load((ROOT / "examples" / "alerts.yml").read_text("utf-8"))["groups"]
    return {rule["alert"]: rule["expr"] for rule in group["rules"]}


def test_the_rules_name_metrics_that_there_are() -> None:
    rules = _rules()
    assert set(rules) == {"LogicalrepLag", "LogicalrepRetainedWal", "LogicalrepNothingRead"}
    used = {name for text in rules.values() for name in re.findall(r"logicalrep_\w+", text)}
    assert used <= {metric.name for metric in METRICS}


def test_the_dashboard_names_metrics_that_there_are() -> None:
    dashboard = json.loads((ROOT / "examples" / "grafana.json").read_text("utf-8"))
    used = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"logicalrep_\w+", target["expr"])
    }
    assert used <= {metric.name for metric in METRICS}
    assert len(used) >= 9


_SERIES = """
rule_files: [{rules}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {{series: 'logicalrep_lag_seconds{{instance="a"}}', values: '0x9 400x20'}}
      - {{series: 'logicalrep_retained_wal_bytes{{instance="a"}}', values: '69x9 71x20'}}
      - {{series: 'logicalrep_retained_wal_limit_bytes{{instance="a"}}', values: '100x29'}}
      - {{series: 'logicalrep_noted_timestamp_seconds{{instance="a"}}', values: '0+60x9 540x20'}}
    alert_rule_test:
      - {{alertname: LogicalrepLag, eval_time: 14m, exp_alerts: []}}
      - {{alertname: LogicalrepRetainedWal, eval_time: 10m, exp_alerts: []}}
      - {{alertname: LogicalrepNothingRead, eval_time: 19m, exp_alerts: []}}
    promql_expr_test:
      - expr: count by (alertname) (ALERTS{{alertstate="firing"}})
        eval_time: 25m
        exp_samples:
          - {{labels: '{{alertname="LogicalrepLag"}}', value: 1}}
          - {{labels: '{{alertname="LogicalrepRetainedWal"}}', value: 1}}
          - {{labels: '{{alertname="LogicalrepNothingRead"}}', value: 1}}
"""


def test_the_rules_fire_when_they_should(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool, which evaluates the rules, is not installed")
    (tmp_path / "test.yml").write_text(_SERIES.format(rules=ROOT / "examples" / "alerts.yml"))
    for command in (["check", "rules", str(ROOT / "examples" / "alerts.yml")], ["test", "rules", "test.yml"]):
        result = subprocess.run([promtool, *command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
