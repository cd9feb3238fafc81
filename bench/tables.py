"""The speed of `logicalrep replicate` beside what bounds it: `python -m bench.tables [--scale ROWS] [--seconds N]`.

The first load, beside COPY into nothing and beside writing the same rows to files from memory. A backlog of changes of
three tables, beside receiving the same changes and dropping them. The seconds from a commit until its rows are visible,
at 2,000 changes a second, for inserts and for updates spread over a small and a large table. The command runs as a
process of its own, with a server on the same machine. build/bench-tables.json has the same figures.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import psycopg
import pyarrow as pa

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.copy_stream import received, send
from logicalrep.postgres.local_server import LocalServer, find_installation
from logicalrep.postgres.slots import newest_protocol, wal_head
from logicalrep.tables.delta.data_files import read_rows, write_rows
from logicalrep.tables.delta.delta_log import DeltaLog
from logicalrep.tables.delta.place import Place
from logicalrep.tables.follow.state import Identity, State
from logicalrep.tables.replicate.changes import Receiver
from logicalrep_runtime.scalars import Lsn

_JSON = Path(__file__).parents[1] / "build" / "bench-tables.json"
_TABLE = "CREATE TABLE {} (aid int PRIMARY KEY, bid int, abalance int, filler char(84))"
_ROWS = "INSERT INTO {} SELECT i, i % 100, 0, '' FROM generate_series(1, {}) AS i"
_RATE = 2000
"""The changes a second of the measurement of latency."""
_IN_ONE = 20
"""The changes of each of its transactions."""
_ORIGIN = Lsn(0)


def main() -> None:
    """Measure, print a table, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=int, default=1_000_000, help="the rows of the large tables")
    parser.add_argument("--seconds", type=float, default=30, help="the seconds of each measurement of latency")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="logicalrep-bench-"))
    figures: list[dict[str, Any]] = []
    try:
        with (
            LocalServer(find_installation(18), fsync="off", max_wal_size="4GB", shared_buffers="256MB") as server,
            ConnectionSettings(server.dsn, options="-c search_path=public").connect() as connection,
        ):
            for part in (_load, _backlog, _latency):
                for figure in part(server, connection, folder, options):
                    print(json.dumps(figure), flush=True)
                    figures.append(figure)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _JSON.parent.mkdir(exist_ok=True)
    _JSON.write_text(json.dumps(figures, indent=2))


def _load(server: LocalServer, connection: Any, folder: Path, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Measure the first load of one large table."""
    connection.execute(_TABLE.format("accounts"))
    connection.execute(_ROWS.format("accounts", options.scale))
    connection.execute("VACUUM ANALYZE accounts")
    began = time.monotonic()
    send(connection, psycopg.sql.SQL("COPY accounts TO STDOUT"))  # type: ignore[arg-type]
    for _ in received(connection):
        pass
    copy = time.monotonic() - began
    place = folder / "load"
    seconds, cpu = _once(server, place)
    log = DeltaLog.open(Place(str(place)), "public/accounts")
    assert log is not None
    rows = pa.concat_tables(
        read_rows(log.place, log.folder, file, log.table.schema, log.table.names) for file in log.files.values()
    )
    began = time.monotonic()
    write_rows(Place(str(folder / "memory")), "t", rows)
    memory = time.monotonic() - began
    loaded = _loaded_seconds(place)
    yield {
        "measured": f"first load of {options.scale:,} rows",
        "rows a second": round(options.scale / loaded),
        "COPY into nothing": round(options.scale / copy),
        "written from memory": round(options.scale / memory),
        "seconds with the start of Spark": round(seconds, 1),
        "CPU-seconds a million rows": round(cpu / options.scale * 1e6, 1),
    }


def _backlog(
    server: LocalServer, connection: Any, folder: Path, options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Measure a backlog of three changes for each row of three tables."""
    connection.execute("DROP TABLE accounts")
    names = ["one", "two", "three"]
    for name in names:
        connection.execute(_TABLE.format(name))
        connection.execute(_ROWS.format(name, options.scale))
    place = folder / "backlog"
    _once(server, place)
    changes = 0
    for name in names:
        # Updates of a third of the rows, in transactions of 1,000, twice; inserts and deletes of a sixth.
        for start in range(1, options.scale, 1000):
            stop = start + 333
            connection.execute(f"UPDATE {name} SET abalance = abalance + 1 WHERE aid BETWEEN {start} AND {stop - 1}")
            connection.execute(f"UPDATE {name} SET bid = bid + 1 WHERE aid BETWEEN {start} AND {stop - 1}")
            connection.execute(f"DELETE FROM {name} WHERE aid BETWEEN {stop} AND {stop + 165}")
            first = start + 10**8
            connection.execute(
                f"INSERT INTO {name} SELECT i, 1, 1, '' FROM generate_series({first}, {first + 165}) AS i"
            )
            changes += 333 * 2 + 166 * 2
    received_in, rows = _received(server, connection, place)
    assert rows == changes
    bytes_before = _size(place)
    seconds, cpu = _once(server, place)
    start_of_spark = _spark_seconds()
    yield {
        "measured": f"a backlog of {changes:,} changes of three tables of {options.scale:,} rows",
        "changes a second": round(changes / max(seconds - start_of_spark, 0.1)),
        "received and dropped": round(changes / received_in),
        "seconds with the start of Spark": round(seconds, 1),
        "seconds of that for the start": round(start_of_spark, 1),
        "CPU-seconds a million changes": round(cpu / changes * 1e6, 1),
        "MB written": round((_size(place) - bytes_before) / 1e6, 1),
    }


def _latency(
    server: LocalServer, connection: Any, folder: Path, options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Measure the time from a commit until the state names it, for three kinds of changes."""
    for name in ("one", "two", "three"):
        connection.execute(f"DROP TABLE {name}")
    for name, rows in (("small", 10_000), ("large", options.scale), ("log", 1)):
        connection.execute(_TABLE.format(name))
        connection.execute(_ROWS.format(name, rows))
    for kind, statement in (
        ("inserts", "INSERT INTO log SELECT i, 1, 1, '' FROM generate_series({next}, {next} + {more}) AS i"),
        ("updates spread over 10,000 rows", "UPDATE small SET abalance = {next} WHERE aid = ANY('{{{of_small}}}')"),
        (
            f"updates spread over {options.scale:,} rows",
            "UPDATE large SET abalance = {next} WHERE aid = ANY('{{{of_large}}}')",
        ),
    ):
        place = folder / f"latency-{len(kind)}"
        _once(server, place)
        with _following(server, place) as process:
            _settled(connection, place)
            before = _size(place)
            seconds = _seconds_to_visible(connection, place, statement, options.seconds, options.scale)
            used = sum(process.cpu_times()[:4])
        yield {
            "measured": f"seconds from commit to visible, {kind}, {_RATE:,} changes a second",
            "median": round(float(np.median(seconds)), 2),
            "99th percentile": round(float(np.percentile(seconds, 99)), 2),
            "MB written a second": round((_written(place) - before) / 1e6 / options.seconds, 1),
            "CPU-seconds": round(used, 1),
        }


def _command(server: LocalServer, place: Path, *more: str) -> list[str]:
    arguments = [sys.executable, "-m", "logicalrep.cli.main", "replicate", "--dsn", server.dsn, "--to", str(place)]
    return [*arguments, *more]


def _once(server: LocalServer, place: Path) -> tuple[float, float]:
    """Run the command with --once. Returns its seconds, and the CPU-seconds of all its processes."""
    began, before = time.monotonic(), os.times()
    with (place.parent / f"{place.name}.log").open("ab") as log:
        subprocess.run(_command(server, place, "--once"), check=True, stdout=log, stderr=log)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return time.monotonic() - began, cpu


def _loaded_seconds(place: Path) -> float:
    """Return the seconds of the load that the command's log names."""
    line = next(line for line in (place.parent / f"{place.name}.log").read_text().splitlines() if " loaded " in line)
    return float(line.rpartition(" in ")[2].partition(" ")[0])


def _spark_seconds() -> float:
    """Return the seconds that a local session takes to start and end, with a first task."""
    program = (
        "from logicalrep.tables.delta.place import Place\n"
        "from logicalrep.tables.replicate.sessions import spark_tasks\n"
        "with spark_tasks(Place('/tmp')) as tasks: tasks.run(len, ['x'])\n"
    )
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", program], check=True, stderr=subprocess.DEVNULL)
    return time.monotonic() - began


def _received(server: LocalServer, connection: Any, place: Path) -> tuple[float, int]:
    """Receive what the slot has, and drop it. Returns the seconds and the number of changes."""
    identity = Identity.read(Place(str(place)))
    assert identity is not None
    end, rows = wal_head(connection), 0
    with Receiver(
        ConnectionSettings(server.dsn), identity.slot, (identity.publication,), newest_protocol(connection)
    ) as receiver:
        receiver.wait_until_started()
        began = time.monotonic()
        reached = _ORIGIN
        while reached < end:
            receiver.wait(0.1)
            taken = receiver.take()
            rows += sum(batch.num_rows for batch in taken.batches)
            reached = taken.end
        return time.monotonic() - began, rows


@contextmanager
def _following(server: LocalServer, place: Path) -> Iterator[psutil.Process]:
    with (place.parent / f"{place.name}.log").open("ab") as log:
        process = subprocess.Popen(_command(server, place, "--every", "0"), stdout=log, stderr=log)
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(60)


def _settled(connection: Any, place: Path) -> None:
    connection.execute("UPDATE small SET bid = bid WHERE aid = 1")
    connection.execute("UPDATE large SET bid = bid WHERE aid = 1")
    end = wal_head(connection)
    while State.read(Place(str(place))).lsn < end:
        time.sleep(0.1)


def _seconds_to_visible(connection: Any, place: Path, statement: str, seconds: float, scale: int) -> list[float]:
    commits: list[tuple[Lsn, float]] = []
    seen: list[tuple[Lsn, float]] = []
    ended = threading.Event()

    def look() -> None:
        there = Place(str(place))
        while not ended.is_set():
            lsn = State.read(there).lsn
            if not seen or lsn > seen[-1][0]:
                seen.append((lsn, time.monotonic()))
            time.sleep(0.01)

    thread = threading.Thread(target=look)
    thread.start()
    began = time.monotonic()
    number = 0
    while (now := time.monotonic()) - began < seconds:
        due = began + number * _IN_ONE / _RATE
        if due > now:
            time.sleep(due - now)
        of_small, of_large = (
            ",".join(str(random.randrange(1, rows)) for _ in range(_IN_ONE)) for rows in (10_000, scale)
        )
        connection.execute(
            statement.format(next=10 + number * _IN_ONE, more=_IN_ONE - 1, of_small=of_small, of_large=of_large)
        )
        commits.append((wal_head(connection), time.monotonic()))
        number += 1
    while not seen or seen[-1][0] < commits[-1][0]:
        time.sleep(0.05)
    ended.set()
    thread.join()
    lsns, moments = [lsn for lsn, _ in seen], [moment for _, moment in seen]
    places = np.searchsorted(lsns, [lsn for lsn, _ in commits])
    return [moments[at] - moment for at, (_, moment) in zip(places.tolist(), commits, strict=True)]


def _size(place: Path) -> int:
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


def _written(place: Path) -> int:
    """Return the bytes that have been written, by the log: some of the files may be gone."""
    sizes = 0
    for path in place.rglob("_delta_log/*.json"):
        sizes += sum(json.loads(line).get("add", {}).get("size", 0) for line in path.read_text().splitlines())
    return sizes


if __name__ == "__main__":
    main()
