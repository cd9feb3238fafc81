"""docs/how-to/dba.md's statements, run as they stand, for a role that owns nothing and tables that come later."""

from __future__ import annotations

from pathlib import Path

import pytest

from logicalrep.pipeline.run.setup import query_unmet
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from tests.documents import examples
from tests.pipeline.replicating import replicate_once, settings
from tests.postgres.servers import Database

pytestmark = pytest.mark.postgres


class OfReplicator(Database):
    """The same database, as the role of the page sees it."""

    @property
    def dsn(self) -> str:
        return self.server.dsn_as("replicator", self.name)


def test_tables_of_other_owners_come_by_an_event_trigger_and_all_of_it_goes(db18: Database, tmp_path: Path) -> None:
    making, ending = examples("docs/how-to/dba.md", "sql")
    db18.execute(
        "CREATE TABLE before (id int PRIMARY KEY)",
        "CREATE ROLE replicator LOGIN REPLICATION",
        "CREATE ROLE maker LOGIN",
        "GRANT CREATE ON SCHEMA public TO maker",
    )
    reader = OfReplicator(db18.server, db18.name, 18, db18.connection)
    named = {"publication": "shop_lake", "slot": "shop_lake"}
    script = query_unmet(settings(reader, tmp_path, **named)).script
    db18.execute(*(line for line in script.splitlines() if line.endswith(";")), making)
    replicate_once(reader, tmp_path, **named)
    with Database(db18.server, db18.name, 18, db18.connection).writer() as maker:
        maker.execute("SET ROLE maker")
        for statement in (
            "CREATE TABLE later (id int PRIMARY KEY)",
            "CREATE TABLE bare (id int)",
            "CREATE TABLE keyed_later (id int)",
            "ALTER TABLE keyed_later ADD PRIMARY KEY (id)",
            'CREATE TABLE "Odd "" name" (id int PRIMARY KEY)',
            "CREATE TABLE root (id int PRIMARY KEY) PARTITION BY RANGE (id)",
            "CREATE TABLE leaf PARTITION OF root FOR VALUES FROM (0) TO (10)",
            "CREATE TABLE generated (id int, g int GENERATED ALWAYS AS (id) STORED)",
            "ALTER TABLE generated REPLICA IDENTITY FULL",
            "CREATE TEMPORARY TABLE passing (id int PRIMARY KEY)",
            "INSERT INTO later VALUES (1)",
            "INSERT INTO root VALUES (1)",
            # What cannot be published takes its updates.
            "INSERT INTO bare VALUES (1)",
            "UPDATE bare SET id = 2",
            "INSERT INTO generated VALUES (1)",
            "UPDATE generated SET id = 2",
        ):
            maker.execute(statement)
    replicate_once(reader, tmp_path, **named)
    tables = State.read(Storage(str(tmp_path))).tables
    assert {name: (table.state, table.rows) for name, table in tables.items()} == {
        "public.before": ("following", 0),
        "public.later": ("following", 1),
        "public.keyed_later": ("following", 0),
        'public."Odd "" name"': ("following", 0),
        "public.root": ("following", 1),
    }
    db18.execute(*ending.split(";\n"))
    assert db18.rows("SELECT FROM pg_event_trigger") == db18.rows("SELECT FROM pg_publication") == []
    assert db18.rows("SELECT FROM pg_replication_slots WHERE slot_name = 'shop_lake'") == []
    db18.execute("CREATE TABLE after_the_end (id int PRIMARY KEY)", "DROP OWNED BY maker CASCADE", "DROP ROLE maker")
