"""The metrics of the source, served by the driver's reader, and of the listener; and the log of batches."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import prometheus_client
import pytest

from logicalrep import Lsn
from logicalrep.metrics import METRICS, listener
from logicalrep.observe import slot_samples
from logicalrep.observe.serving import serve
from logicalrep.options.listen_address import ListenError
from logicalrep.spark import auto
from logicalrep.spark.monitoring import monitor as monitoring
from logicalrep.spark.monitoring.monitor import Monitor
from logicalrep.spark.options import OptionError, read_options
from logicalrep.spark.peek.admission import HAS_ADMISSION_CONTROL
from logicalrep.spark.source import LogicalRepDataSource
from tests.documents import example
from tests.observe.scraping import figures, figures_of, got
from tests.postgres.servers import Database
from tests.spark.queries import MODES, Query, create_table_and_slot
from tests.spark.streams import Stream
from tests.spark.workload import prepare
from tests.waiting import eventually

OF_A_SERVER_WITHOUT_BOUND = {"logicalrep_retained_wal_limit_bytes"}


def free_port() -> str:
    with serve("0", list) as address:
        return address.split(":")[-1].strip("/")


def of(giver: str) -> set[str]:
    return {metric.name for metric in METRICS if giver in metric.sources} - OF_A_SERVER_WITHOUT_BOUND


@pytest.fixture
def db(db18: Database) -> Database:
    create_table_and_slot(db18)
    return db18


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_samples, "PAUSE", 0.05)


@pytest.fixture
def query(db: Database, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Query]:
    started_query = Query(db, tmp_path, mode=request.param, listen="0", poll_interval="0")
    yield started_query
    started_query.restart(reopen=False)


def monitor_of(query: Query) -> Monitor:
    monitor = query.reader.driver.monitor
    assert isinstance(monitor, Monitor)
    return monitor


def idle(query: Query) -> bool:
    """Let Spark ask for a batch while there is none; return that there was none."""
    query.end = query.reader.latestOffset(query.start, None)
    assert query.end["lsn"] == query.start["lsn"]
    return True


def has_everything(query: Query) -> None:
    """Wait until the query has all WAL, to which the server itself adds some now and then."""
    address = monitor_of(query).address
    eventually(lambda: idle(query) and figures(address).get("logicalrep_lag_bytes") == 0)


@pytest.mark.parametrize("query", MODES, indirect=True)
def test_what_is_served_is_what_was_read(db: Database, query: Query) -> None:
    began = time.time()
    idle(query)
    address = monitor_of(query).address
    eventually(lambda: idle(query) and figures(address).get("logicalrep_lag_seconds") == 0)
    assert figures(address)["logicalrep_changes_total"] == 0
    db.execute("INSERT INTO t SELECT i, 'v' FROM generate_series(1, 100) AS i")
    committed = time.time()
    assert len(query.plan(300)) == 100
    # Spark has not ended the batch.
    eventually(lambda: figures(address)["logicalrep_lag_bytes"] > 100)
    metrics = figures(address)
    assert (metrics["logicalrep_changes_total"], metrics["logicalrep_batches_total"]) == (0, 0)
    assert 0 < metrics["logicalrep_lag_seconds"] < time.time() - began + 1
    query.commit()
    has_everything(query)
    metrics = figures(address)
    assert {name.split()[0] for name in metrics} == of("source")
    assert (metrics["logicalrep_changes_total"], metrics["logicalrep_batches_total"]) == (100, 1)
    assert metrics["logicalrep_bytes_total"] > 100 * 20
    assert began < metrics["logicalrep_last_commit_timestamp_seconds"] < committed
    assert committed < metrics["logicalrep_noted_timestamp_seconds"] < time.time()
    assert all(metrics[f"logicalrep_seconds_total {stage}"] > 0 for stage in ("server", "decoding", "spark"))
    (mode,) = (mode for mode in ("peek", "walsender") if metrics[f"logicalrep_mode {mode}"])
    # The server may have no free walsender, as sessions of an earlier test still end.
    assert query.options.mode in (mode, "auto")
    # WAL that is not for the query is no lag, as Spark asks for more.
    db.execute("CREATE TABLE other (id int)")
    has_everything(query)


@pytest.mark.parametrize("query", ["auto"], indirect=True)
def test_counts_continue_from_one_reader_to_the_other(
    db: Database, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto, "RECEIVE_BACKLOG", 1 << 20)
    db.execute("INSERT INTO t SELECT i, repeat('x', 200) FROM generate_series(1, 9000) AS i")
    assert len(query.plan()) == 9000
    address = monitor_of(query).address
    query.commit()
    db.execute("INSERT INTO t VALUES (9001)")
    assert len(query.plan()) == 1
    query.commit()
    idle(query)
    metrics = figures(address)
    assert (metrics["logicalrep_changes_total"], metrics["logicalrep_batches_total"]) == (9001, 2)
    assert metrics["logicalrep_bytes_total"] > 9000 * 200
    assert metrics["logicalrep_restarts_total"] == 0
    assert metrics["logicalrep_mode walsender"] == 1
    # Both connections of the driver break.
    db.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
        "pg_backend_pid()"
    )
    db.execute("INSERT INTO t VALUES (9002)")
    assert len(query.plan()) == 1
    assert figures(address)["logicalrep_restarts_total"] in (1, 2)


@pytest.mark.parametrize("query", ["peek"], indirect=True)
def test_figures_that_executors_lack_are_omitted(
    db: Database, query: Query, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = monitor_of(query)
    counts_sender = monitor.counts_sender
    # Nothing listens there.
    monkeypatch.setattr(
        monitor, "counts_sender", lambda end: replace(counts_sender(end), address="http://127.0.0.1:9/counts/x")
    )
    for number in (1, 2):
        db.execute(f"INSERT INTO t VALUES ({number})")
        assert len(query.plan()) == 1
        query.commit()
        idle(query)
    metrics = figures(monitor.address)
    assert "logicalrep_changes_total" not in metrics
    assert "logicalrep_bytes_total" not in metrics
    assert metrics["logicalrep_batches_total"] == 2
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [warning for warning in warnings if "the executors cannot reach http://127.0.0.1:" in warning] == warnings[
        :1
    ]


@pytest.mark.parametrize("query", ["peek"], indirect=True)
def test_counts_come_from_the_querys_own_tasks_alone(query: Query) -> None:
    monitor = monitor_of(query)
    path = monitor.counts_sender(Lsn(1)).address

    def post(address: str, content: bytes) -> int:
        try:
            with urlopen(Request(address, content), timeout=10) as answer:
                return int(answer.status)
        except HTTPError as error:
            return error.code

    good = b'{"end": "0/1", "changes": 1, "bytes": 2, "committed": null, "receiving": 0, "decoding": 0}'
    assert post(f"{monitor.address}counts/guessed", good) == 404
    assert [post(path, content) for content in (b"", b"[1]", b'{"end": 1}', good[:-1] + b', "x": 1}')] == [400] * 4
    assert post(path, good) == 204
    assert post(path, b"x" * 100_000) == 404


def test_an_address_is_checked_before_anything_starts(db: Database, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"option 'listen': 'nowhere' is not HOST:PORT"):
        read_options({"listen": "nowhere", "slot": "s", "publication": "p"})
    source = LogicalRepDataSource({"listen": "0", "slot": "s", "publication": "p", "dsn": db.dsn})
    with pytest.raises(OptionError, match="option 'listen' is for readStream"):
        source.reader(source.schema())


def test_a_port_that_stays_taken_ends_the_query(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "PORT_PATIENCE", 0.5)
    with serve("0", list) as taken:
        query = Query(db, tmp_path, mode="peek", listen=taken.split("/")[2])
        with pytest.raises(ListenError, match=r"\[LISTEN_REFUSED\] cannot listen at 127\.0\.0\.1:"):
            query.reader.latestOffset(query.start, None)
    # It is free now.
    query.reader.latestOffset(query.start, None)
    query.restart(reopen=False)


@pytest.mark.parametrize("query", MODES, indirect=True)
def test_each_batch_is_a_line_of_figures(db: Database, query: Query, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "logicalrep")
    db.execute("INSERT INTO t VALUES (1), (2)")
    assert len(query.plan()) == 2
    lines = [record for record in caplog.records if record.name == "logicalrep.batch"]
    by_peek = query.options.mode == "peek"
    assert [record.levelname for record in lines] == ["INFO"] * (1 + by_peek)
    batch = lines[0].getMessage()
    mode = "peek" if by_peek else "walsender"
    assert re.match(rf"batch slot=s mode={mode} start=[0-9A-F]+/[0-9A-F]+ end=[0-9A-F]+/[0-9A-F]+ ", batch)
    assert ("changes=2" in batch) != by_peek
    assert re.search(r" lag_bytes=\d+.* retained_bytes=\d+$", batch)
    if by_peek:
        assert re.search(r"^read slot=s .* changes=2 bytes=\d+ seconds=[\d.]+ server_seconds=", lines[1].getMessage())
    assert vars(lines[-1])["figures"]["changes"] == 2


@pytest.mark.parametrize("mode", ["auto", pytest.param("peek", marks=pytest.mark.thorough)])
def test_a_query_of_spark_serves_its_metrics_and_a_listener_hears_of_it(
    spark: Any, db18: Database, tmp_path: Path, mode: str
) -> None:
    prepare(db18, "spark")
    port, other = free_port(), free_port()
    stream = Stream(spark, db18, tmp_path, mode=mode, listen=port, max_changes_per_batch="2")
    namespace: dict[str, Any] = {"spark": spark}
    exec(example("docs/how-to/spark-monitoring.md", "start_http_server").replace("9401", other), namespace)
    heard = namespace["listener"]
    try:
        query = stream.start()
        address = f"http://127.0.0.1:{port}/"
        db18.execute(*(f"INSERT INTO plain VALUES ({number})" for number in range(10)))
        query.processAllAvailable()

        def served() -> dict[str, float]:
            try:
                return figures(address)
            except OSError:
                return {}

        eventually(lambda: served().get("logicalrep_changes_total") == 10, query)
        assert {name.split()[0] for name in served()} == of("source")
        eventually(lambda: figures_of(heard.collect()).get("logicalrep_changes_total") == 10, query)
        metrics = figures_of(heard.collect())
        since_4_2 = {"logicalrep_lag_bytes", "logicalrep_retained_wal_bytes", "logicalrep_mode"}
        assert {name.split()[0] for name in metrics} == of("listener") - (set() if HAS_ADMISSION_CONTROL else since_4_2)
        assert metrics["logicalrep_batches_total"] >= (5 if HAS_ADMISSION_CONTROL else 1)
        assert metrics["logicalrep_seconds_total spark"] > 0
        assert 'logicalrep_changes_total{slot="spark"} 10.0' in got(f"http://127.0.0.1:{other}/metrics")
        query.stop()
        # The figures of a query that was stopped are gone, the port is free, and those of one that fails stay.
        eventually(lambda: figures_of(heard.collect()) == {})
        query = stream.start()
        db18.execute("INSERT INTO plain VALUES (10)")
        query.processAllAvailable()
        eventually(lambda: served().get("logicalrep_changes_total") == 1, query)
        db18.execute("DROP PUBLICATION p", "INSERT INTO plain VALUES (11)")
        eventually(lambda: not query.isActive)
        assert query.exception() is not None
        eventually(lambda: "logicalrep_noted_timestamp_seconds" in figures_of(heard.collect()))
    finally:
        spark.streams.removeListener(heard)
        prometheus_client.REGISTRY.unregister(heard)
        for active_query in spark.streams.active:
            active_query.stop()


def test_a_listener_tells_queries_and_sources_apart() -> None:
    def progress(query: str, *sources: Any, **took: int) -> Any:
        return SimpleNamespace(progress=SimpleNamespace(id=query, durationMs=took, sources=sources))

    def source(start: str, end: str, rows: int, latest: str | None = None) -> Any:
        return SimpleNamespace(startOffset=start, endOffset=end, latestOffset=latest, numInputRows=rows)

    heard = listener()
    ours = '{"lsn": "0/%s", "slot": "%s"}'
    latest = '{"lsn": "0/9", "behind_bytes": 7, "retained_bytes": 8, "mode": "peek", "retained_limit_bytes": 9}'
    heard.onQueryProgress(
        progress("1", source("", "17", 5), source(ours % (1, "a"), ours % (2, "a"), 3, latest), triggerExecution=1500)
    )
    # Nothing came; another query reads another slot, and Spark Connect sends the text of a dictionary.
    heard.onQueryProgress(progress("1", source(ours % (2, "a"), ours % (2, "a"), 0), triggerExecution=10))
    python = "{'lsn': '0/%s', 'slot': 'b'}"
    heard.onQueryProgress(progress("2", source(python % 1, python % 2, 4), triggerExecution=900, latestOffset=400))
    first, second = heard.figures()
    assert (first.slot, first.changes, first.batches, first.seconds) == ("a", 3, 1, {"spark": 1.5})
    assert (first.lag_bytes, first.retained_bytes, first.retained_limit, first.mode) == (7, 8, 9, "peek")
    assert (second.slot, second.changes, second.batches, second.seconds) == ("b", 4, 1, {"spark": 0.5})
    noted = second.checkpointed
    heard.onQueryIdle(SimpleNamespace(id="2"))  # type: ignore[arg-type]
    assert noted is not None
    assert heard.figures()[1].checkpointed > noted  # type: ignore[operator]
    heard.onQueryTerminated(SimpleNamespace(id="1", exception="[SLOT_LOST] …"))  # type: ignore[arg-type]
    heard.onQueryTerminated(SimpleNamespace(id="2", exception=None))  # type: ignore[arg-type]
    assert [figure.slot for figure in heard.figures()] == ["a"]
