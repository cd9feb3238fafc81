"""What the Spark source costs, beside what bounds it: `python -m bench.spark [CAPTURE]`.

From a slot: messages a second to a noop sink and to Parquet, by mode and master, beside the server's own ceiling for
the same query without Spark. From captures: the feed and a typed table, beside an identity mapInArrow over the same
messages and a decode row by row in mapInArrow. Every figure is the median of interleaved rounds.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from struct import Struct
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from logicalrep import v1
from logicalrep_pipeline.assembler import Assembler
from logicalrep_pipeline.captures import Capture
from logicalrep_pipeline.change_feed import events
from logicalrep_pipeline.connection import ConnectionSettings
from logicalrep_pipeline.peek import peek_rows
from logicalrep_pipeline.plugin_options import PluginOptions
from logicalrep_pipeline.relations import Relation
from logicalrep_pipeline.server import LocalServer, find_installation
from logicalrep_pipeline.slots import create_slot, newest_protocol
from logicalrep_pipeline.spark import feed_schema, session
from logicalrep_pipeline.spark.typed import relation_schema
from logicalrep_pipeline.transactions import Transaction

ROUNDS = 3
ROWS = 300_000
FILES = 4
_FRAME = Struct(">QI")
_ROW_BY_ROW = "table int, new array<string>"
_DEFAULT = Path(__file__).parent.parent.parent / "shared" / "perf" / "v1.bin.gz"


def main() -> None:
    """Print the table."""
    capture = Path(sys.argv[1]) if len(sys.argv) > 1 else _DEFAULT
    with tempfile.TemporaryDirectory(prefix="logicalrep-bench-") as folder:
        from_slot(Path(folder))
        if capture.is_file():
            from_captures(capture, Path(folder))


def from_slot(folder: Path) -> None:
    """A backlog of ROWS inserts in transactions of 1 and of 1000 rows, read again and again."""
    server = LocalServer(find_installation(18), logical_decoding_work_mem="64MB", fsync="off")
    with server, ConnectionSettings(server.dsn).connect() as connection:
        connection.execute("CREATE TABLE t (id bigint PRIMARY KEY, a text, n numeric(12,2), at timestamptz)")
        connection.execute("CREATE PUBLICATION p FOR ALL TABLES")
        create_slot(connection, "ceiling")
        for start in range(0, ROWS, 1000):
            connection.execute(
                "INSERT INTO t SELECT i, 'some text of a row ' || i, i * 0.01, now() "
                "FROM generate_series(%s::bigint, %s) AS i",
                (start, start + 999),
            )
        options = PluginOptions(publication_names=("p",), proto_version=newest_protocol(connection))
        messages = sum(1 for _ in peek_rows(connection, "ceiling", options))
        connection.execute("SELECT pg_copy_logical_replication_slot('ceiling', 'copy')")
        print(f"\nFrom a slot: {messages:,} messages\n", flush=True)

        def ceiling() -> None:
            for _ in peek_rows(connection, "ceiling", options):
                pass

        for master in ("local[1]", "local[2]"):
            spark = session(master, **{"spark.driver.memory": "2g"})
            spark.sparkContext.setLogLevel("OFF")

            def stream(mode: str, sink: str, spark: Any = spark) -> None:
                # A copy of the slot, so that each run finds the same.
                connection.execute("SELECT pg_drop_replication_slot('copy')")
                connection.execute("SELECT pg_copy_logical_replication_slot('ceiling', 'copy')")
                run = Path(tempfile.mkdtemp(dir=folder))
                frame = spark.readStream.format("logicalrep")
                frame = frame.options(dsn=server.dsn, slot="copy", publication="p", mode=mode, spool=str(run / "spool"))
                writer = frame.load().writeStream.format(sink).option("checkpointLocation", str(run / "checkpoint"))
                if sink == "parquet":
                    writer = writer.option("path", str(run / "out"))
                writer.trigger(availableNow=True).start().awaitTermination()
                _free(connection)
                shutil.rmtree(run, ignore_errors=True)

            measured = _rounds(
                {
                    "peek without Spark": ceiling,
                    "mode=peek to noop": lambda: stream("peek", "noop"),
                    "mode=peek to Parquet": lambda: stream("peek", "parquet"),
                    "mode=walsender to noop": lambda: stream("walsender", "noop"),
                }
            )
            _print(master, messages, measured, "peek without Spark")
            spark.stop()


def from_captures(capture: Path, folder: Path) -> None:
    """Copies of a capture, each read by a task."""
    with Capture.open(capture) as opened:
        messages = [(int(lsn), data) for lsn, data in opened]
    relation = _largest_table(capture)
    files = folder / "captures"
    files.mkdir()
    for number in range(FILES):
        with (files / f"{number}.bin").open("wb") as file:
            file.writelines(_FRAME.pack(lsn, len(data)) + data for lsn, data in messages)
        table = pa.table({"data": pa.array([data for _, data in messages], pa.binary())})
        (folder / "parquet").mkdir(exist_ok=True)
        pa.parquet.write_table(table, folder / "parquet" / f"{number}.parquet")
    total = len(messages) * FILES
    print(f"\nFrom {FILES} captures: {total:,} messages\n", flush=True)
    for master in ("local[1]", "local[2]"):
        spark = session(master, **{"spark.driver.memory": "2g"})
        spark.sparkContext.setLogLevel("OFF")
        raw = spark.read.schema("data binary").parquet(str(folder / "parquet"))
        source = spark.read.format("logicalrep")
        feed = source.schema(feed_schema()).load(str(files))
        typed = source.schema(relation_schema(relation)).option("table", str(relation)).load(str(files))
        measured = _rounds(
            {
                "identity mapInArrow": lambda raw=raw: _noop(raw.mapInArrow(_identity, "data binary")),
                "captures to the feed": lambda feed=feed: _noop(feed),
                "captures to a typed table": lambda typed=typed: _noop(typed),
                "row by row in mapInArrow": lambda raw=raw: _noop(raw.mapInArrow(_row_by_row, _ROW_BY_ROW)),
            }
        )
        _print(master, total, measured, "identity mapInArrow")
        spark.stop()


def _largest_table(capture: Path) -> Relation:
    """The table with the most changes."""
    changes: Counter[Relation] = Counter()
    with Capture.open(capture) as opened, Assembler() as assembler:
        decoder = opened.session.decoder()
        for event in events(islice(opened, 20_000), decoder, assembler):
            if isinstance(event, Transaction):
                changes.update(change.relation for change in event.changes if change.relation is not None)
    return changes.most_common(1)[0][0]


def _identity(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def _row_by_row(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        tables, rows = [], []
        for data in batch.column(0).to_pylist():
            message = v1.parse(data)
            if message.tag in "IU":
                tables.append(message.relation_id)
                rows.append([None if value is None else value.decode() for value in message.new.values])
        yield pa.RecordBatch.from_arrays(
            [pa.array(tables, pa.int32()), pa.array(rows, pa.list_(pa.string()))], names=["table", "new"]
        )


def _noop(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _free(connection: Any) -> None:
    """Wait until the slot is let go of."""
    query = "SELECT active FROM pg_replication_slots WHERE slot_name = 'copy'"
    while connection.execute(query).fetchone()[0]:
        connection.execute(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = 'copy' AND active"
        )
        time.sleep(0.1)


def _rounds(cases: dict[str, Callable[[], None]]) -> dict[str, float]:
    """The median seconds of each case, after a round that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(ROUNDS + 1):
        for name, case in cases.items():
            began = time.perf_counter()
            case()
            if number:
                seconds[name].append(time.perf_counter() - began)
    return {name: statistics.median(values) for name, values in seconds.items()}


def _print(master: str, messages: int, measured: dict[str, float], bound: str) -> None:
    for name, seconds in measured.items():
        ratio = measured[bound] / seconds
        print(f"{master}  {name:26} {messages / seconds:12,.0f} messages/s  {ratio:6.2f} of {bound}", flush=True)


if __name__ == "__main__":
    main()
