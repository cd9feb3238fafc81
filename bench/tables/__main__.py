"""The speed of `logicalrep replicate` beside what bounds it: `python -m bench.tables [PART …]`; --help has options.

The parts, all of them by default but `index`, `upkeep`, `commits`, `memory` and `disk`, which take up to an hour:

- load: first loads of 4 times the scale, of a table with few columns and of one with many types, by both engines,
  beside COPY into nothing and beside writing the same rows to a Delta table from memory.
- backlog: changes of three tables, by both engines, beside receiving the same changes and dropping them.
- spread: as many changes as a table has rows, spread over all of it, by copying files and by marking rows.
- latency: the seconds from a commit until its rows are visible, at 2,000 changes a second, for inserts and for updates
  spread over a small and a large table.
- small: the same for ten tables of 100,000 rows.
- few: the same for 200 updates a second, spread over a table of 2 times the scale whose rows are marked.
- many: the same for 300 tables with a change a second each.
- idle: the first load of 300 small tables, and their processor time and statements without changes.
- batches: transactions of 1,000 to 1,000,000 updates of a large table.
- tables: the same rows and changes in 1, 20 and 200 tables.
- partitions: the first load of a table in 100, 300, 600 and 3,000 partitions.
- amplification: random updates of tables of 1 and 10 times the scale, by copying files and by marking rows.
- index: random updates, found by an index and marked, of tables of 1, 10 and 100 times the scale.
- formats: updates of tables of 2 and 10 times the scale, in Delta and in Iceberg beside each other, and the objects of
  a commit.
- commits: thousands of small commits of one table, in both formats: seconds and bytes of a commit as they become many.
- upkeep: an hour of random updates while rows are marked: bytes written, files, and a reader's seconds in its parts.
- memory: the most memory for a load, a transaction and a batch over many tables, each small and large.
- first: three tables of 1,000 rows, a run with nothing to do, and an idle process that follows.
- cluster: what the tasks and the driver of a cluster cost, by one worker with a core of its own and by two, and a model
  of more; of a load, and of updates by copying and by marking.
- disk: the disk of a table after updates that are spread over it, by the options that change it.
- workers: a first load and updates by one worker of a cluster and by two, into an object store on loopback.

Below a figure stands whether it reaches its aims, which `bench/tables/aims.py` has. With --write the tables of
docs/explanation/figures.md have the figures, and their aims, too: each part as soon as it is measured.

The command runs as a process of its own, with a server on the same machine. Each figure has the processor seconds of
the command's processes and of the server's beside it, and the most memory that the command's processes have at a
moment, shared pages counted once. build/bench-tables.json has the same figures.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.pages import filled, parts_of, setting_text, write_part
from bench.tables import (
    amplification,
    backlog,
    cluster,
    disk,
    first,
    formats,
    growth,
    latency,
    load,
    memory,
    upkeep,
    workers,
)
from bench.tables.aims import aims_of
from bench.tables.figures import PAGE, part_text
from bench.tables.setting import Setting
from bench.writer import connect_writer
from logicalrep.postgres.local_server import LocalServer, find_installation

_JSON = Path(__file__).parents[2] / "build" / "bench-tables.json"
_LONG = ("index", "upkeep", "commits", "memory", "disk")
_PARTS = {
    "load": load.measure,
    "backlog": backlog.measure,
    "spread": backlog.of_one_table,
    "latency": latency.measure,
    "small": latency.of_small_tables,
    "few": latency.of_few_changes,
    "many": latency.of_many_tables,
    "idle": growth.of_idle_tables,
    "batches": growth.of_batches,
    "tables": growth.of_tables,
    "partitions": growth.of_partitions,
    "amplification": amplification.measure,
    "index": amplification.of_index,
    "formats": formats.measure,
    "commits": formats.of_commits,
    "upkeep": upkeep.measure,
    "memory": memory.measure,
    "first": first.measure,
    "disk": disk.measure,
    "workers": workers.measure,
    "cluster": cluster.measure,
}


def main() -> None:
    """Measure, print each figure, and write all of them."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.tables", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(_PARTS))
    parser.add_argument("--scale", type=int, default=1_000_000, help="the rows of the large tables")
    parser.add_argument("--seconds", type=float, default=30, help="the seconds of each measurement of latency")
    parser.add_argument("--minutes", type=float, default=60, help="the minutes of the part `upkeep`")
    parser.add_argument("--write", action="store_true", help="put the parts into docs/explanation/figures.md")
    options = parser.parse_args()
    if unknown := set(options.parts) - _PARTS.keys():
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(_PARTS)}")
    parts = options.parts or [name for name in _PARTS if name not in _LONG]
    if options.write and (unplaced := set(parts) - set(parts_of(PAGE))):
        parser.error(f"{PAGE.name} has no place for {', '.join(sorted(unplaced))}")
    figures: list[dict[str, Any]] = [{"processors": os.cpu_count(), "load at the start": os.getloadavg()[0]}]
    began = time.monotonic()
    for name in parts:
        introduction, part_figures = _measured(name, options)
        if options.write:
            write_part(PAGE, name, f"{filled(introduction)}\n\n{part_text(name, part_figures)}")
        figures += part_figures
    print(f"{time.monotonic() - began:.0f} s")
    _JSON.parent.mkdir(exist_ok=True)
    _JSON.write_text(json.dumps(figures, indent=2))


def _measured(name: str, options: argparse.Namespace) -> tuple[str, list[dict[str, Any]]]:
    """Return the sentence that dates a part's measurement, and its figures; print each figure."""
    folder, figures = Path(tempfile.mkdtemp(prefix="logicalrep-bench-")), []
    try:
        with (
            LocalServer(find_installation(18), fsync="off", max_wal_size="4GB", shared_buffers="256MB") as server,
            connect_writer(server.dsn) as connection,
        ):
            (version,) = connection.execute("SHOW server_version").fetchone()
            introduction = setting_text(version, f"PySpark {importlib.metadata.version('pyspark')}")
            setting = Setting(server, connection, folder, options.scale, options.seconds, options.minutes)
            for figure in _PARTS[name](setting):
                figures.append(figure)
                print(json.dumps(figure), *(aim.verdict(figure) for aim in aims_of(name, figure)), sep="\n", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return introduction, figures


if __name__ == "__main__":
    main()
