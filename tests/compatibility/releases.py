"""Destinations as a release writes them, with their server, kept so that later releases resume them.

    python -m tests.compatibility.releases

writes `tests/compatibility/releases/VERSION.tar.xz`, once at each release; nothing writes it again.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from logicalrep.observe.observer import Observers
from logicalrep.pipeline.config.config import Config, Entry
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.operate.resync import resync
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.schema.table_formats import FormatName
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.state.requests import pause, request_resync
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.transactions.table_names import TableName
from tests.compatibility.server import CHANGES, server
from tests.pipeline.replicating import replicate_meanwhile
from tests.postgres.servers import Database
from tests.waiting import eventually

RELEASES = Path(__file__).parent / "releases"
QUERIES = {
    "feed": {},
    "typed": {"table": "public.plain"},
    "walsender": {"mode": "walsender"},
}
"""The queries with a checkpoint, with their own options; each has the slot of its name."""
_SETTINGS = {
    TableName("public", "kept"): TableSettings(deletes="soft", history=True, append=True),
    TableName("public", "texts"): TableSettings(unrepresentable="text"),
}
CONFIG = Config({name: Entry(str(name), settings) for name, settings in _SETTINGS.items()})
"""The settings of tables that have some of their own."""


FOLDER = Path("/tmp/logicalrep-release")
"""The folder of the files: Iceberg's metadata have the paths of their files."""
DESTINATIONS: dict[str, FormatName] = {"lake": "delta", "iceberg": "iceberg"}
"""The formats of the destinations; each destination has the slot of its name."""


def replicate(database: Database, storage: Path) -> None:
    """Bring all that has committed into the tables of a destination."""
    settings = ReplicateSettings(
        dsn=database.settings,
        to=str(storage),
        publication="p",
        slot=storage.name,
        once=True,
        config=CONFIG,
        format=DESTINATIONS[storage.name],
    )
    replicate_with(settings, Observers(), engine=SequentialEngine())


def query(spark: Any, database: Database, name: str, folder: Path) -> list[Any]:
    """Resume a query from its checkpoint; return the rows that it reads."""
    options = {"dsn": database.dsn, "slot": name, "publication": "p", **QUERIES[name]}
    if options.get("mode") == "walsender":
        options["spool"] = str(folder / "spool")
    rows: list[Any] = []
    frame = spark.readStream.format("logicalrep").options(**options).load()
    writer = frame.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
    running = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    if not running.awaitTermination(120):
        running.stop()
        raise TimeoutError("the query does not end")
    return rows


def write(folder: Path, database: Database, spark: Any = None) -> None:
    """Write destinations, and with Spark the checkpoints of queries, into a folder, from a server with the tables."""
    queries = [] if spark is None else list(QUERIES)
    lake, storage = folder / "lake", Storage(str(folder / "lake"))
    # A destination makes its slot itself.
    database.execute("SELECT pg_drop_replication_slot('lake')")
    for name in DESTINATIONS:
        replicate(database, folder / name)
    database.execute(*CHANGES.split(";\n"))
    for name in queries:
        assert query(spark, database, name, folder / name)
    for name in DESTINATIONS:
        replicate(database, folder / name)
    for name in queries:
        query(spark, database, name, folder / name)
    resync(database.settings, storage, [TableName("public", "loading")])
    # The load of one table waits for a transaction that has written.
    with database.writer() as other:
        other.execute("BEGIN")
        other.execute("INSERT INTO plain VALUES (-1)")
        database.execute("UPDATE loading SET v = 'kept'")
        options = {"publication": "p", "slot": "lake", "config": CONFIG}
        with replicate_meanwhile(database, lake, **options):
            eventually(lambda: list((lake / "_logicalrep" / "buffered").rglob("*.parquet")) != [])
        other.execute("ROLLBACK")
    pause(storage)
    request_resync(storage, [TableName("public", "toasted")])


def main() -> int:
    """Write the file of this release, which must not be there."""
    target = RELEASES / f"{version('logicalrep')}.tar.xz"
    if target.exists():
        print(f"{target} is there, and stays as it is", file=sys.stderr)
        return 1
    RELEASES.mkdir(exist_ok=True)
    FOLDER.mkdir()
    try:
        with server(stored_in=FOLDER / "server") as database:
            write(FOLDER, database)
        with tarfile.open(target, "x:xz") as tar:
            tar.add(FOLDER, arcname=".")
    finally:
        shutil.rmtree(FOLDER)
    print(f"{target}: {target.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
