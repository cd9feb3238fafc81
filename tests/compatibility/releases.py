"""A destination and checkpoints as a release writes them, kept so that later releases are tested with them.

    python -m tests.compatibility.releases

writes `tests/compatibility/releases/VERSION.tar.gz`, once at each release; nothing writes it again.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from logicalrep.observe.observer import Observers
from logicalrep.pipeline.config.config import Config, Entry
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.operate.resync import resync
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.state.requests import pause, request_resync
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.spark import session
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


def replicate(database: Database, storage: Path) -> None:
    """Bring all that has committed into the tables of a destination."""
    settings = ReplicateSettings(
        dsn=database.settings,
        to=str(storage),
        publication="p",
        slot="lake",
        once=True,
        config=CONFIG,
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


def write(folder: Path, spark: Any, database: Database) -> None:
    """Write a destination, and the checkpoints of queries, into a folder, from a server with the tables."""
    lake, storage = folder / "lake", Storage(str(folder / "lake"))
    # The destination makes its slot itself.
    database.execute("SELECT pg_drop_replication_slot('lake')")
    replicate(database, lake)
    database.execute(*CHANGES.split(";\n"))
    for name in QUERIES:
        assert query(spark, database, name, folder / name)
    replicate(database, lake)
    for name in QUERIES:
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
    target = RELEASES / f"{version('logicalrep')}.tar.gz"
    if target.exists():
        print(f"{target} is there, and stays as it is", file=sys.stderr)
        return 1
    RELEASES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        spark = session("local[2]")
        with server() as database:
            write(Path(temporary), spark, database)
        spark.stop()
        with tarfile.open(target, "x:gz") as tar:
            tar.add(temporary, arcname=".")
    print(f"{target}: {target.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
