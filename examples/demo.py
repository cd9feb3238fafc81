"""Decode a capture, replicate a PostgreSQL 18 under load with Spark, kill replicate, verify, query, and stream.

    make demo                                      # in a clone: installs what it needs
    python examples/demo.py                        # the same, with the extras replicate and server installed

It starts its own server in a temporary folder, and deletes both at the end.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

import logicalrep
from logicalrep.captures import Capture
from logicalrep.observe.figures import Standing
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.local_server import LocalServer, find_installation
from logicalrep.postgres.server import Connection, query_wal_head
from logicalrep.spark import session
from logicalrep.spark.quiet import silence_java

CLONE = Path(__file__).parents[1]
CAPTURE = CLONE / "tests/captures/pg18/mixed/v4-late.sql.jsonl.gz"
YAML = CLONE / "spec/logicalrep/begin.yaml"
ACCOUNTS = 300_000
LONGEST_WAIT = 600.0
EVENT_LOG = "spark.eventLog.enabled true\nspark.eventLog.compress false\nspark.eventLog.rolling.enabled false\n"


PROCESSES: list[subprocess.Popen[bytes]] = []


def main() -> int:
    """Run the demonstration, and end all its processes; return 0 if the tables have the server's rows."""
    try:
        return show()
    finally:
        for process in PROCESSES:
            process.kill()
            process.wait()


def show() -> int:
    began = time.monotonic()
    messages = show_protocol()
    with (
        tempfile.TemporaryDirectory(prefix="logicalrep-demo-") as name,
        LocalServer(find_installation(18)) as server,
        ConnectionSettings(server.dsn).connect() as connection,
        silence_java(),
    ):
        folder = Path(name)
        pgbench = Pgbench(server)
        title("2. logicalrep replicate, on Spark")
        version = connection.info.parameter_status("server_version")
        say(f"PostgreSQL {version} runs; pgbench makes {ACCOUNTS:,} accounts.")
        pgbench.run("--initialize", f"--scale={ACCOUNTS // 100_000}", "--quiet")
        # The table of the history has no key.
        connection.execute("ALTER TABLE public.pgbench_history REPLICA IDENTITY FULL")
        work = replicate_under_load(server.dsn, folder, connection, pgbench)
        code = command("verify", "--dsn", server.dsn, "--to", str(folder / "lake")).wait()
        spark_version = query_and_stream(server.dsn, folder, connection, pgbench)
        title(f"What you saw, in {time.monotonic() - began:.0f} seconds")
        say(f"""\
{YAML.relative_to(CLONE)} -> logicalrep_protocol.v4.Begin -> {messages:,} decoded messages
PostgreSQL 18 under load -> logicalrep replicate --engine spark, killed in the middle -> Delta tables, {result(code)}
{work}
Spark SQL over the tables, and spark.readStream.format("logicalrep") in micro-batches on Spark {spark_version}

Next:
  logicalrep check --dsn postgresql://USER@HOST/DATABASE --to ./lake    # what your server lacks
  logicalrep replicate --dsn postgresql://USER@HOST/DATABASE --to ./lake --listen 8080
  docs/how-to/spark.md                                                  # streams, MERGE, clusters
  make regen; make reference                                            # the codecs, and every message""")
        return code


def show_protocol() -> int:
    """Show a YAML row, its message in a capture, and how many messages of each kind follow; return their number."""
    title("1. The protocol: from a row of YAML to a decoded message")
    lines = [line for line in YAML.read_text("utf-8").splitlines() if line.startswith("    - ")]
    say(f"{YAML.relative_to(CLONE)}:", *lines, "")
    kinds: Counter[str] = Counter()
    with Capture.open(CAPTURE) as capture:
        decoder = capture.session.decoder()
        for _, data in capture:
            message = decoder.decode(data)
            if message.tag == "B" and not kinds["Begin"]:
                say(f"{data.hex(' ')}\n{message}\n")
            kinds[type(message).__name__] += 1
    say(f"{kinds.total():,} messages: " + ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common(6)) + " …")
    return kinds.total()


def replicate_under_load(dsn: str, folder: Path, connection: Connection, pgbench: Pgbench) -> str:
    """Replicate under load, kill the command while Spark works, and resume; return a sentence on Spark's work."""
    lake, storage = folder / "lake", Storage(str(folder / "lake"))
    options = ("replicate", "--dsn", dsn, "--to", str(lake), "--engine", "spark", "--every", "1", "--quiet")
    load = pgbench.start("--time=3600", "--client=2", "--rate=200", "--no-vacuum")
    say("pgbench writes 200 transactions a second.")
    first = command(*options, spark_log=folder / "first")
    wait(lambda: is_following(storage), first)
    say(f"The tables are loaded. A transaction changes {ACCOUNTS // 2:,} accounts ...")
    old_jobs = spark_work(folder / "first").jobs
    connection.execute(f"UPDATE public.pgbench_accounts SET filler = 'changed' WHERE aid <= {ACCOUNTS // 2}")
    end = query_wal_head(connection)
    wait(lambda: spark_work(folder / "first").jobs > old_jobs or State.read(storage).lsn >= end, first)
    first.send_signal(signal.SIGKILL)
    first.wait()
    say(f"... and SIGKILL ends replicate in the middle, at {State.read(storage).lsn}. The same command resumes:")
    second = command(*options, spark_log=folder / "second")
    wait(lambda: State.read(storage).lsn >= end, second)
    load.terminate()
    load.wait()
    end = query_wal_head(connection)
    wait(lambda: State.read(storage).lsn >= end and is_following(storage), second)
    second.terminate()
    second.wait()
    work, more = spark_work(folder / "first"), spark_work(folder / "second")
    jobs, tasks, seconds = work.jobs + more.jobs, work.tasks + more.tasks, work.seconds + more.seconds
    inserted, updated = connection.execute(
        "SELECT sum(n_tup_ins), sum(n_tup_upd) FROM pg_stat_user_tables WHERE relname LIKE 'pgbench_%'"
    ).fetchone() or (0, 0)
    sentence = (
        f"Spark {work.version} on {work.cores} cores ran {jobs} jobs, {tasks} tasks, {seconds:.0f} seconds of tasks; "
        f"the server inserted {inserted:,} rows and updated {updated:,}"
    )
    say(sentence, "Small batches ran in the command itself; Spark did the load and the large batches.")
    return sentence


def query_and_stream(dsn: str, folder: Path, connection: Connection, pgbench: Pgbench) -> str:
    """Query the tables with Spark SQL, and stream changes in micro-batches; return Spark's version."""
    title("3. Spark SQL, and a stream")
    spark = session(**{"spark.driver.memory": "1g"})
    try:
        for table in ("accounts", "branches"):
            rows = logicalrep.read(str(folder / "lake"), f"public.pgbench_{table}").spark(spark)
            rows.createOrReplaceTempView(table)
        query = """
SELECT bid, bbalance, count(*) AS accounts, sum(abalance) AS sum_of_accounts,
       count_if(rtrim(accounts.filler) = 'changed') AS changed
FROM accounts JOIN branches USING (bid) GROUP BY ALL ORDER BY bid"""
        say(f'spark.sql("""{query}""").show()')
        spark.sql(query).show()
        connection.execute("CREATE PUBLICATION demo FOR TABLE public.pgbench_history")
        options = {"dsn": dsn, "slot": "demo", "publication": "demo", "table": "public.pgbench_history"}
        changes = spark.readStream.format("logicalrep").options(**options, create_slot="true").load()
        sums: Counter[str] = Counter()

        def add(batch: DataFrame, number: int) -> None:
            for row in batch.groupBy().agg({"*": "count", "delta": "sum"}).collect():
                count, delta = row["count(1)"], row["sum(delta)"] or 0
                sums.update(rows=count, delta=delta)
                if count:
                    say(f"batch {number}: {count} rows, sum of delta {delta}")

        def has_rows(count: int) -> bool:
            return is_running(stream) and sums["rows"] >= count

        writer = changes.writeStream.foreachBatch(add).option("checkpointLocation", str(folder / "checkpoint"))
        stream = writer.start()
        say('spark.readStream.format("logicalrep").option("table", "public.pgbench_history") … foreachBatch:')
        has_slot = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'demo'"
        wait(lambda: is_running(stream) and connection.execute(has_slot).fetchone() == (1,))
        totals = "SELECT count(*), coalesce(sum(delta), 0) FROM public.pgbench_history"
        old_rows, old_delta = connection.execute(totals).fetchone() or (0, 0)
        for count in (200, 400, 600):
            pgbench.run("--transactions=200", "--no-vacuum")
            wait(partial(has_rows, count))
        stream.stop()
        rows, delta = connection.execute(totals).fetchone() or (0, 0)
        is_equal = (sums["rows"], sums["delta"]) == (rows - old_rows, delta - old_delta)
        say(f"The stream had {sums['rows']} rows: {result(0 if is_equal else 1)}.")
        if not is_equal:
            raise SystemExit("the stream's rows differ from the server's")
        return spark.version
    finally:
        spark.stop()


class SparkWork:
    """The work of a Spark application, from its event log."""

    def __init__(self, lines: list[str]) -> None:
        """Read complete lines; Spark may be writing the last one."""
        events = [json.loads(line) for line in lines]
        by_kind = Counter(event["Event"] for event in events)
        self.jobs, self.tasks = by_kind["SparkListenerJobStart"], by_kind["SparkListenerTaskEnd"]
        times = [event["Task Info"] for event in events if event["Event"] == "SparkListenerTaskEnd"]
        self.seconds = sum(task["Finish Time"] - task["Launch Time"] for task in times) / 1000
        executors = [event["Executor Info"] for event in events if event["Event"] == "SparkListenerExecutorAdded"]
        self.cores = sum(executor["Total Cores"] for executor in executors)
        self.version = "".join(event["Spark Version"] for event in events if event["Event"] == "SparkListenerLogStart")


def spark_work(folder: Path) -> SparkWork:
    """Return the work that the event log in a folder has so far."""
    lines = [line for log in folder.glob("log/*") for line in log.read_text("utf-8").splitlines(keepends=True)]
    return SparkWork([line for line in lines if line.endswith("\n")])


class Pgbench:
    """PostgreSQL's load generator, on a server's own database."""

    def __init__(self, server: LocalServer) -> None:
        installation = server.installation
        self._command = [str(installation.bin / "pgbench"), "--host", str(server.folder)]
        self._environment = os.environ | {"LD_LIBRARY_PATH": str(installation.folder / "lib"), "PGUSER": "postgres"}

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start pgbench."""
        quiet = subprocess.DEVNULL
        program = [*self._command, *arguments, "postgres"]
        process = subprocess.Popen(program, stdout=quiet, stderr=quiet, env=self._environment)
        PROCESSES.append(process)
        return process

    def run(self, *arguments: str) -> None:
        """Run pgbench to its end."""
        if self.start(*arguments).wait():
            raise SystemExit(f"pgbench {' '.join(arguments)} failed")


def command(name: str, *arguments: str, spark_log: Path | None = None) -> subprocess.Popen[bytes]:
    """Start a command of logicalrep; Spark writes its event log into a folder."""
    say(f"$ logicalrep {name} {' '.join(arguments)}")
    environment = dict(os.environ)
    if spark_log is not None:
        (spark_log / "log").mkdir(parents=True)
        (spark_log / "spark-defaults.conf").write_text(
            f"{EVENT_LOG}spark.eventLog.dir {(spark_log / 'log').as_uri()}\n"
        )
        environment["SPARK_CONF_DIR"] = str(spark_log)
    program = [sys.executable, "-P", "-m", "logicalrep.cli.main", name, *arguments]
    process = subprocess.Popen(program, start_new_session=True, env=environment)
    PROCESSES.append(process)
    return process


def is_following(storage: Storage) -> bool:
    """Return whether all four tables of pgbench are loaded."""
    tables = State.read(storage).tables.values()
    return len(tables) == 4 and all(table.state is Standing.FOLLOWING for table in tables)


def is_running(stream: StreamingQuery) -> bool:
    """Return True, or exit with the stream's error."""
    if not stream.isActive:
        raise SystemExit(f"the stream ended: {stream.exception()}")
    return True


def wait(condition: Callable[[], bool], process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait until a condition holds; exit if the process ends before."""
    deadline = time.monotonic() + LONGEST_WAIT
    while not condition():
        if time.monotonic() > deadline or (process is not None and process.poll() is not None):
            raise SystemExit(
                f"the demonstration failed: a step took longer than {LONGEST_WAIT} s, or its process ended"
            )
        time.sleep(0.2)


def result(code: int) -> str:
    return "equal to the server's rows" if code == 0 else "DIFFERENT from the server's rows"


def title(text: str) -> None:
    say("", text, "=" * len(text))


def say(*lines: str) -> None:
    print(*lines, sep="\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
