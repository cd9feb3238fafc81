"""The metrics and the page of `logicalrep replicate --listen`, and the rules of examples/alerts.yml."""

from __future__ import annotations

import http.client
import json
import logging
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from urllib.error import HTTPError

import pytest
import yaml

from logicalrep.cli.main import main
from logicalrep.observe.counts import Observed
from logicalrep.observe.events import (
    BatchApplied,
    CheckpointSaved,
    DestinationFailing,
    PageServed,
    RowsCopied,
    RunEvent,
    RunPrepared,
    WaitReported,
    WarningIssued,
    WarningSolved,
)
from logicalrep.observe.figures import LoadProgress, Phase
from logicalrep.observe.health import readiness
from logicalrep.observe.metrics import METRICS
from logicalrep.observe.metrics import page as metrics_page
from logicalrep.observe.observer import Observer, Observers
from logicalrep.observe.page import page
from logicalrep.observe.serving import serve
from logicalrep.options.listen_address import ListenError
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.engines.timed import TimedEngine
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.state.state import StateError
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn
from tests.conftest import ROOT
from tests.observe.scraping import figures, got
from tests.pipeline.figures import SCRIPT, SLOT, get_status, table_figures
from tests.pipeline.replicating import replicate_meanwhile, settings
from tests.postgres.servers import Database
from tests.waiting import eventually


class Heard(Observer):
    address = ""

    def on_event(self, event: RunEvent) -> None:
        match event:
            case PageServed(address):
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


def test_health_and_readiness(shop: Database, tmp_path: Path) -> None:
    heard = Heard()
    with replicate_meanwhile(shop, tmp_path, heard, listen="0") as caught_up:
        caught_up()
        assert get_status(f"{heard.address}healthz") == (200, "alive\n")
        assert get_status(f"{heard.address}readyz") == (200, "ready: 3 following, 0 loading, 0 stopped\n")


def test_a_run_that_saves_no_checkpoints_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    observed = Observed()
    assert readiness(observed) == (False, "not ready: no checkpoint saved since the start")
    observed.on_event(
        CheckpointSaved(1, {"public.t": table_figures("stopped"), "public.u": table_figures("following")})
    )
    assert readiness(observed) == (True, "ready: 1 following, 0 loading, 1 stopped")
    saved = time.time()
    monkeypatch.setattr(time, "time", lambda: saved + 200)
    with serve("0", list, checks={"/readyz": partial(readiness, observed)}) as url:
        assert get_status(f"{url}readyz") == (503, "not ready: the last checkpoint was saved 200 s ago\n")


def test_metrics_and_page_while_tables_follow(shop: Database, tmp_path: Path) -> None:
    shop.execute('CREATE TABLE "<script>" (id int PRIMARY KEY)')
    heard, script = Heard(), 'public."<script>"'
    with replicate_meanwhile(shop, tmp_path, heard, listen="0") as caught_up:
        caught_up()
        began = time.time()
        # `bare` has no replica identity.
        shop.execute("DELETE FROM customer WHERE id <= 7", 'INSERT INTO "<script>" VALUES (1), (2)')
        committed = time.time()
        caught_up()
        eventually(lambda: figures(heard.address)["logicalrep_lag_bytes"] == 0)
        metrics, text = figures(heard.address), got(heard.address)
        assert {name.split()[0] for name in metrics} == {
            metric.name for metric in METRICS if "replicate" in metric.sources
        } - {"logicalrep_retained_wal_limit_bytes", "logicalrep_load_snapshot_timestamp_seconds"}
        assert metrics["logicalrep_lag_seconds"] == 0
        assert metrics["logicalrep_changes_total"] == 9
        assert metrics["logicalrep_batches_total"] in (1, 2)
        stages = {
            stage: metrics[f"logicalrep_seconds_total {stage}"] for stage in ("server", "decoding", "applying", "spark")
        }
        assert all(seconds > 0 for seconds in stages.values()), stages
        assert metrics["logicalrep_bytes_total"] > 9 * 20
        assert metrics["logicalrep_restarts_total"] == 0
        assert (metrics["logicalrep_mode walsender"], metrics["logicalrep_mode peek"]) == (1, 0)
        assert time.time() - metrics["logicalrep_noted_timestamp_seconds"] < 15
        assert metrics["logicalrep_table_rows_copied_total public.customer"] == 1000
        assert metrics["logicalrep_table_rows_copied_total public.orders"] == 5000
        assert metrics["logicalrep_table_rows public.customer"] == 993
        last = metrics["logicalrep_last_commit_timestamp_seconds"]
        assert began < metrics["logicalrep_table_last_commit_timestamp_seconds public.customer"] < last < committed
        assert "logicalrep_table_last_commit_timestamp_seconds public.orders" not in metrics
        assert metrics["logicalrep_table_version public.customer"] == 1
        assert metrics["logicalrep_table_version public.audit"] == 0
        assert [metrics[f"logicalrep_table_state {state} {script}"] for state in ("following", "loading", "stopped")] == [
            1, 0, 0
        ]  # fmt: skip
        # A broken connection is made anew.
        shop.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active")
        eventually(lambda: figures(heard.address)["logicalrep_restarts_total"] == 1)
        read = Texts(text)
        assert script in read.texts
        assert "script" not in read.tags
        assert "4 following, 0 loading, 0 stopped" in text
        assert re.search(r"public\.bare", text)
    with pytest.raises(OSError, match="refused"):
        got(heard.address)


@contextmanager
def served() -> Iterator[tuple[Observed, str]]:
    observed = Observed()
    observed.on_event(RunPrepared("s"))
    with serve("127.0.0.1:0", observed.figures, {"/": partial(page, observed, "/lake/<b>")}) as address:
        yield observed, address


def test_the_log_of_replicate(shop: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "logicalrep")
    shop.execute("CREATE TABLE moment (id int PRIMARY KEY, at timestamp)")
    with replicate_meanwhile(shop, tmp_path) as caught_up:
        caught_up()
        shop.execute("DELETE FROM customer WHERE id <= 7", "INSERT INTO moment VALUES (1, 'infinity')")
        eventually(lambda: any(record.levelname == "ERROR" for record in caplog.records))
    slot = shop.value("SELECT slot_name FROM pg_replication_slots WHERE database = current_database()")
    records = [(record.name, record.levelname, record.getMessage()) for record in caplog.records]
    batches = [text for name, level, text in records if (name, level) == ("logicalrep.batch", "INFO")]
    assert re.match(
        rf"batch slot={slot} mode=walsender changes=\d+ tables=\d seconds=[\d.]+ committed=\S+ lag_bytes=\d+ lag_seconds=",
        batches[0],
    )
    messages = [(level, text) for name, level, text in records if name == "logicalrep.replicate"]
    assert ("INFO", f"loading slot={slot} table=public.moment estimate=0") in messages
    assert any(
        level == "INFO" and text.startswith(f"loaded slot={slot} table=public.customer rows=1000 ")
        for level, text in messages
    )
    assert any(level == "WARNING" and text.startswith("public.bare ") for level, text in messages)
    (error,) = [text for level, text in messages if level == "ERROR"]
    assert error.startswith("public.moment is stopped: [COLUMN_VALUE]")
    caplog.clear()
    with pytest.raises(StateError):
        replicate_with(settings(shop, tmp_path, slot="another"), Observers())
    (record,) = [log_record for log_record in caplog.records if log_record.levelno > logging.INFO]
    assert (record.name, record.levelname) == ("logicalrep.replicate", "ERROR")
    assert record.getMessage().startswith("[DESTINATION_DIFFERS] this destination is replicated with the slot")


def test_lag_is_the_time_for_which_something_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    observed = Observed()

    def sample(seconds: float, end: int) -> None:
        # The server's clock is an hour ahead.
        clock[0] = seconds
        observed.sample(replace(SLOT, sent_up_to=Lsn(end), time=datetime.fromtimestamp(seconds + 3600, UTC)))

    sample(1000, 5000)
    assert (observed.lag_bytes, observed.lag_seconds) == (None, None)
    observed.on_event(CheckpointSaved(5000, {}))
    assert (observed.lag_bytes, observed.lag_seconds) == (0, 0)
    sample(2000, 5000)
    sample(2010, 5300)
    sample(2020, 5400)
    assert (observed.lag_bytes, observed.lag_seconds) == (400, 20)
    observed.on_event(CheckpointSaved(5300, {}))
    assert (observed.lag_bytes, observed.lag_seconds) == (100, 10)
    observed.on_event(BatchApplied(1, 1, 0.5, 0, datetime.fromtimestamp(2015 + 3600, UTC)))
    assert observed.lag_seconds == 5
    observed.on_event(CheckpointSaved(5400, {}))
    assert observed.lag_seconds == 0
    # Nobody has heard from the server since.
    clock[0] = 2120
    assert (observed.lag_bytes, observed.lag_seconds) == (0, 100)


def test_figures_come_with_the_slot_and_count_from_zero() -> None:
    observed = Observed()
    assert observed.figures() == []
    observed.on_event(RunPrepared("s"))
    (figures,) = observed.figures()
    assert (figures.slot, figures.bytes, figures.restarts, figures.seconds["server"]) == ("s", 0, 0, 0)
    # An engine that has ended, and the next one.
    for _ in range(2):
        TimedEngine(SequentialEngine(), observed.engine_time).run(time.sleep, [0.01], 0)
    (figures,) = observed.figures()
    assert figures.seconds["spark"] >= 0.02


def test_what_is_held_is_bounded() -> None:
    observed = Observed()
    observed.on_event(CheckpointSaved(1, {}))
    for number in range(10_000):
        observed.on_event(WarningIssued(f"warning {number}"))
        observed.sample(SLOT)
        observed.on_event(RowsCopied(TableName("public", f"t{number}"), 1))
        observed.on_event(CheckpointSaved(1, {}))
    assert (len(observed.all_messages()), len(observed.samples), len(observed.rows_copied)) == (30, 4320, 0)
    observed.on_event(WarningIssued("warning 9999"))
    assert len(observed.all_messages()) == 30


def test_what_is_solved_goes_from_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    observed = Observed()
    observed.on_event(WarningIssued("public.bare is not replicated"))
    observed.on_event(WarningIssued("public.a is public.b now"))
    observed.on_event(WaitReported("the server cannot be reached"))
    observed.on_event(WarningSolved("public.bare is not replicated"))
    assert [message.text for message in observed.all_messages()] == [
        "the server cannot be reached",
        "public.a is public.b now",
    ]
    # What is waited for is said again once a minute.
    began = time.time()
    monkeypatch.setattr(time, "time", lambda: began + 200)
    assert [message.text for message in observed.all_messages()] == ["public.a is public.b now"]


def test_a_table_that_became_replicable_is_no_longer_reported(shop: Database, tmp_path: Path) -> None:
    class Solved(Heard):
        solved: tuple[str, ...] = ()

        def on_event(self, event: RunEvent) -> None:
            super().on_event(event)
            match event:
                case WarningSolved(text):
                    self.solved += (text,)

    heard = Solved()
    with replicate_meanwhile(shop, tmp_path, heard, listen="0") as caught_up:
        caught_up()
        assert "public.bare is not replicated" in got(heard.address)
        shop.execute("ALTER TABLE bare REPLICA IDENTITY FULL")
        eventually(lambda: "public.bare is not replicated" not in got(heard.address))
    (text,) = heard.solved
    assert text.startswith("public.bare is not replicated, as nothing identifies its rows")


def test_the_tables_of_the_page_are_searched_and_sorted() -> None:
    with served() as (observed, address):
        moment = datetime(2026, 1, 1, tzinfo=UTC)
        observed.on_event(
            CheckpointSaved(
                4000,
                {
                    "public.a": table_figures("following", 1, rows=5, committed=moment),
                    "public.b": table_figures("following", 1, rows=500),
                    "sales.<c>": table_figures(
                        "stopped", 1, rows=50, error="[COLUMN_VALUE] <i>", committed=moment.replace(day=2)
                    ),
                },
            )
        )

        def shown(query: str) -> list[str]:
            return re.findall(r'class="name">([^<]*)<', got(f"{address}{query}"))

        assert shown("") == ["sales.&lt;c&gt;", "public.a", "public.b"]
        assert shown("?q=&sort=name") == ["public.a", "public.b", "sales.&lt;c&gt;"]
        assert shown("?q=&sort=rows") == ["public.b", "sales.&lt;c&gt;", "public.a"]
        assert shown("?q=&sort=commit") == ["sales.&lt;c&gt;", "public.a", "public.b"]
        assert shown("?q=PUBLIC&sort=nonsense") == ["public.a", "public.b"]
        assert shown("?q=stopped") == ["sales.&lt;c&gt;"]
        text = got(f"{address}?q=%22%3E%3Cscript%3E")
        assert "No table matches." in text
        assert "<script" not in text
        # The page is not refreshed while somebody types.
        assert ("refresh" in text, "refresh" in got(address)) == (False, True)
        assert "COLUMN_VALUE: In a destination of replicate, correct the row" in text


def test_the_page_of_a_table_that_loads_and_one_that_is_stopped() -> None:
    with served() as (observed, address):
        assert "No tables yet." in got(address)
        stopped = "[COLUMN_VALUE] <i>infinity</i> does not fit; run logicalrep resync public.orders"
        observed.on_event(
            CheckpointSaved(
                4000,
                {
                    str(SCRIPT): table_figures("loading", progress=LoadProgress(50, 200, "2026-01-01T11:59:00+01:00")),
                    "public.waits": table_figures("loading", phase=Phase.CATCHING_UP),
                    "public.orders": table_figures("stopped", 3, error=stopped),
                    "public.good": table_figures("following", 12, phase=Phase.FOLLOWING, rows=1234),
                },
            )
        )
        observed.on_event(WarningIssued("<em>warning</em>"))
        observed.on_event(DestinationFailing("no space", is_first=True))
        for _ in range(500):
            observed.sample(SLOT)
        text = got(address)
        read = Texts(text)
        # What a person has to do comes first.
        heads = [head for head in ("Action needed", "no space", "public.orders is stopped", "lag") if head in text]
        assert sorted(heads, key=text.index) == ["Action needed", "no space", "public.orders is stopped", "lag"]
        assert text.index("lag</small>") < text.index("Warnings and waits")
        assert {"script", "i", "em"} & set(read.tags) == set()
        assert read.tags.count("svg") == 2
        assert len(text) < 30_000
        assert text.count("<progress") == 1
        assert '<progress value="50" max="200"' in text
        assert "50 of about 200 rows copied, 25%; the snapshot has been held since 2026-01-01 10:59 UTC" in read.texts
        assert "1,234 rows, version 12" in read.texts
        assert {"loading", "loading: catching up", "following"} <= set(read.texts)
        assert stopped in read.texts
        assert str(SCRIPT) in read.texts
        assert "/lake/<b>" in read.texts
        metrics = figures(address)
        assert metrics["logicalrep_retained_wal_limit_bytes"] == SLOT.retained_bytes + 6000
        since = datetime(2026, 1, 1, 10, 59, tzinfo=UTC)
        assert metrics["logicalrep_load_snapshot_timestamp_seconds"] == since.timestamp()
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
    with pytest.raises(ListenError, match=r"\[LISTEN_ADDRESS\] .* is not HOST:PORT"), serve(listen, list):
        pass


def test_a_port_in_use_is_one_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main(["replicate", "--dsn", "host=/nowhere", "--to", str(tmp_path), "--listen", str(port)]) == 1
    _, line = capsys.readouterr().err.splitlines()
    assert f"[LISTEN_REFUSED] cannot listen at 127.0.0.1:{port}: " in line
    assert list(tmp_path.iterdir()) == []


def test_the_page_of_metrics_is_current() -> None:
    assert (ROOT / "docs/reference/metrics.md").read_text("utf-8") == metrics_page(), (
        "run `make docs/reference/metrics.md`"
    )


def _rules() -> dict[str, str]:
    (group,) = yaml.safe_load((ROOT / "examples" / "alerts.yml").read_text("utf-8"))["groups"]
    return {rule["alert"]: rule["expr"] for rule in group["rules"]}


def test_the_rules_name_metrics_that_exist() -> None:
    rules = _rules()
    assert set(rules) == {"LogicalrepLag", "LogicalrepRetainedWal", "LogicalrepNothingRead"}
    used = {name for text in rules.values() for name in re.findall(r"logicalrep_\w+", text)}
    assert used <= {metric.name for metric in METRICS}


def test_the_dashboard_names_existing_metrics() -> None:
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
      - {{series: 'logicalrep_lag_seconds{{instance="a", slot="s"}}', values: '0x9 400x20'}}
      - {{series: 'logicalrep_retained_wal_bytes{{instance="a", slot="s"}}', values: '69x9 71x20'}}
      - {{series: 'logicalrep_retained_wal_limit_bytes{{instance="a", slot="s"}}', values: '100x29'}}
      - {{series: 'logicalrep_noted_timestamp_seconds{{instance="a", slot="s"}}', values: '0+60x9 540x20'}}
      - {{series: 'up{{job="logicalrep", instance="a"}}', values: '1x29'}}
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
  # A process that has exited, and a process that never gets the slot.
  - interval: 1m
    input_series:
      - {{series: 'up{{job="logicalrep", instance="gone"}}', values: '1x5 0x24'}}
      - {{series: 'up{{job="logicalrep", instance="waits"}}', values: '1x29'}}
      - {{series: 'logicalrep_noted_timestamp_seconds{{instance="gone", slot="s"}}', values: '0+60x5'}}
    promql_expr_test:
      - expr: count by (alertname, instance) (ALERTS{{alertstate="firing"}})
        eval_time: 25m
        exp_samples:
          - {{labels: '{{alertname="LogicalrepNothingRead", instance="gone"}}', value: 1}}
          - {{labels: '{{alertname="LogicalrepNothingRead", instance="waits"}}', value: 1}}
"""


def test_the_rules_fire_when_they_should(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool, which evaluates the rules, is not installed")
    (tmp_path / "test.yml").write_text(_SERIES.format(rules=ROOT / "examples" / "alerts.yml"))
    for command in (["check", "rules", str(ROOT / "examples" / "alerts.yml")], ["test", "rules", "test.yml"]):
        result = subprocess.run([promtool, *command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
