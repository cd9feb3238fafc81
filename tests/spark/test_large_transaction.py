"""A transaction of 2 GiB passes through a driver of 1 GiB, without a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from logicalrep.postgres.slots.creating import create_slot
from tests.conftest import ROOT
from tests.postgres.servers import Database
from tests.spark.cluster import PATHS

pytestmark = [pytest.mark.spark, pytest.mark.thorough]

GIB = 1 << 30
ROW = 1024
PROGRAM = """
import json
import sys
import threading
import time

import psycopg

from bench.spark.memory import KINDS, resident
from logicalrep.spark import session

dsn, folder, rows, row = sys.argv[1:]
spark = session("local[2]", **{"spark.driver.memory": "1g"})
options = {"dsn": dsn, "slot": "s", "publication": "p"}
counts, peaks, ended = [], dict.fromkeys(KINDS, 0), threading.Event()


def sink(batch, number):
    counts.append(list(batch.selectExpr("count(*)", "sum(length(after['v']))", "max(ordinal)").first()))


def sample():
    while not ended.wait(0.5):
        for kind, size in resident().items():
            peaks[kind] = max(peaks[kind], size)


threading.Thread(target=sample, daemon=True).start()
frame = spark.readStream.format("logicalrep").options(**options).load()
query = frame.writeStream.foreachBatch(sink).option("checkpointLocation", folder).start()
with psycopg.connect(dsn, autocommit=True) as connection:
    connection.execute("INSERT INTO public.t VALUES (0, '')")
    while not counts:
        assert not query.awaitTermination(0.1)
    connection.execute(
        f"INSERT INTO public.t SELECT i, repeat(md5(i::text), {row} / 32) FROM generate_series(1, {rows}) AS i"
    )
began = time.monotonic()
while sum(count for count, *_ in counts) <= int(rows):
    assert not query.awaitTermination(0.1)
took = time.monotonic() - began
query.stop()
ended.set()
print(json.dumps({"batches": counts, "seconds": took, "peaks": peaks}))
"""


def test_a_transaction_of_two_gib_with_a_driver_of_one(db18: Database, tmp_path: Path) -> None:
    db18.execute("CREATE TABLE public.t (id int PRIMARY KEY, v text)", "CREATE PUBLICATION p FOR TABLE public.t")
    create_slot(db18.connection, "s")
    rows = 2 * GIB // ROW
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, db18.dsn, tmp_path / "checkpoint", str(rows), str(ROW)],
        env=os.environ | {"PYTHONPATH": PATHS}, cwd=ROOT, capture_output=True, text=True, timeout=1800,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert [batch for batch in report["batches"] if batch[0]] == [[1, 0, 0], [rows, 2 * GIB, rows - 1]]
    assert "too large to be sent to the executors" in done.stderr
    # Neither the process that plans nor those that read hold half of the transaction.
    assert max(report["peaks"]["planner"], report["peaks"]["workers"]) < GIB
