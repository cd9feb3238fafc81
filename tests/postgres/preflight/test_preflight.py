"""The checks before a reader starts: one sentence for each finding, with its remedy."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from logicalrep import v1
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.local_server import LocalServer, find_installation
from logicalrep.postgres.peek import peek
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.preflight import checks as preflight
from logicalrep.postgres.preflight.checks import check
from logicalrep.postgres.preflight.findings import Needs, PreflightError
from logicalrep.postgres.publications import query_published_tables
from logicalrep.postgres.server import Connection
from logicalrep.postgres.sessions.walsender import Walsender
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.slot import query_slot
from logicalrep.transactions.table_names import TableName
from tests.postgres.servers import Database, connect_writer, create_database
from tests.waiting import eventually


def findings(db: Database, needs: Needs) -> list[str]:
    try:
        return check(db.connection, needs)
    except PreflightError as error:
        return [finding.text for finding in error.findings]


def test_all_is_well(db: Database) -> None:
    db.execute("CREATE TABLE t (a int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE t")
    create_slot(db.connection, "s")
    assert findings(db, Needs(slot="s", publications=("p",), tables=(TableName("public", "t"),))) == []


def test_every_unmet_requirement_is_reported_together(db: Database) -> None:
    unmet = findings(db, Needs(slot="s", publications=("p", "q"), protocol_version=4 if db.major < 16 else None))
    assert any("pg_create_logical_replication_slot('s', 'pgoutput')" in finding for finding in unmet)
    assert any("Publication 'p' does not exist" in finding and "CREATE PUBLICATION p" in finding for finding in unmet)
    assert any("Publication 'q' does not exist" in finding for finding in unmet)
    assert (len(unmet) == 4) == (db.major < 16)


@pytest.mark.parametrize(
    ("major", "needs", "error"),
    [
        (10, {}, "PostgreSQL 10 cannot move a slot for mode = peek: use mode = walsender."),
        (10, {"moves_slot": False}, None),
        (10, {"mode": "walsender"}, None),
        (13, {"binary": True}, "The option binary needs PostgreSQL 14, this is 13: leave it out."),
        (14, {"binary": True}, None),
    ],
)
def test_what_old_servers_lack(
    db18: Database, monkeypatch: pytest.MonkeyPatch, major: int, needs: dict[str, Any], error: str | None
) -> None:
    db18.execute("CREATE TABLE t (a int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE t")
    monkeypatch.setattr(preflight, "server_major", lambda connection: major)
    unmet = findings(db18, Needs(slot="s", publications=("p",), create_slot=True, **needs))
    assert unmet == ([] if error is None else [error])


def test_a_slot_that_will_be_created_may_be_absent(db18: Database) -> None:
    db18.execute("CREATE TABLE t (a int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE t")
    assert findings(db18, Needs(slot="s", publications=("p",), create_slot=True)) == []


def test_other_slots(db18: Database) -> None:
    db18.execute(
        "CREATE TABLE t (a int PRIMARY KEY)",
        "CREATE PUBLICATION p FOR TABLE t",
        "SELECT pg_create_physical_replication_slot('physical')",
    )
    create_slot(db18.connection, "decided", two_phase=True)
    assert "is a physical slot" in findings(db18, Needs(slot="physical", publications=("p",)))[0]
    assert "two_phase" in findings(db18, Needs(slot="decided", publications=("p",)))[0]
    assert findings(db18, Needs(slot="decided", publications=("p",), mode="walsender")) == []
    db18.execute("SELECT pg_drop_replication_slot('physical')")
    with ConnectionSettings(db18.server.dsn).connect() as elsewhere, pytest.raises(PreflightError, match="belongs to"):
        check(elsewhere, Needs(slot="decided", publications=(), mode="walsender"))


def test_failover(db: Database) -> None:
    db.execute("CREATE TABLE t (a int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE t")
    needs = Needs(slot="s", publications=("p",), create_slot=True, failover=True)
    too_old = [f"The option failover needs PostgreSQL 17, this is {db.major}: leave it out."]
    assert findings(db, needs) == ([] if db.major >= 17 else too_old)
    if db.major >= 17:
        create_slot(db.connection, "s")
        (finding,) = findings(db, needs)
        assert finding == "Replication slot 's' was created without failover: it is lost when a standby takes over."


def test_what_a_snapshot_reads(db: Database) -> None:
    db.execute(
        'CREATE SCHEMA "S"',
        'CREATE TABLE "S"."T" (a int PRIMARY KEY)',
        "CREATE TABLE t (a int PRIMARY KEY)",
        "CREATE TABLE readable (a int PRIMARY KEY)",
        "CREATE PUBLICATION p FOR ALL TABLES",
        "CREATE ROLE copier LOGIN REPLICATION",
        "GRANT SELECT ON readable TO copier",
    )
    needs = Needs(slot="s", publications=("p",), create_slot=True, snapshot=True)
    try:
        with ConnectionSettings(db.dsn, user="copier").connect() as connection:
            with pytest.raises(PreflightError) as raised:
                check(connection, needs)
            assert str(raised.value) == (
                '[TABLE_NOT_READABLE] Role copier may not read "S"."T", public.t: run GRANT SELECT ON "S"."T", public.t '
                "TO copier."
            )
            with pytest.raises(PreflightError, match=r"may not read public\.t: "):
                check(connection, replace(needs, tables=(TableName("public", "t"), TableName("public", "readable"))))
            assert check(connection, replace(needs, tables=(TableName("public", "readable"),))) == []
            assert check(connection, replace(needs, snapshot=False)) == []
    finally:
        db.execute("DROP OWNED BY copier", "DROP ROLE copier")


def test_a_name_that_no_slot_can_have(db18: Database) -> None:
    db18.execute("CREATE TABLE t (a int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE t")
    for name in ("My-Slot", "s" * 64, ""):
        (finding,) = findings(db18, Needs(slot=name, publications=("p",), create_slot=True))
        assert finding.startswith(f"Replication slot {name!r} cannot exist: ")


def test_options_that_the_protocol_has_not(db: Database) -> None:
    db.execute("CREATE TABLE t (a int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE t")
    create_slot(db.connection, "s")

    def errors(**needs: Any) -> list[str]:
        unmet = findings(db, Needs(slot="s", publications=("p",), mode="walsender", **needs))
        return [finding for finding in unmet if "has no two_phase" not in finding]

    (finding,) = errors(protocol_version=1, streaming="on")
    assert finding == (
        "The option streaming = on needs protocol version 2, the reader's is 1: leave the option out, or "
        "protocol_version."
    )
    assert errors(protocol_version=2, streaming="on") == []
    assert "two_phase needs protocol version 3" in errors(protocol_version=2, two_phase=True)[0]
    assert errors(two_phase=True) == []
    unmet = errors(streaming="parallel")
    assert unmet == ([] if db.major >= 16 else [
        "The option streaming = parallel needs protocol version 4, the reader's is 3: leave the option out."
    ])  # fmt: skip


@pytest.mark.parametrize(("option", "value"), [("streaming", "on"), ("streaming", "parallel"), ("two_phase", True)])
def test_options_of_the_other_mode(db18: Database, option: str, value: Any) -> None:
    db18.execute("CREATE TABLE t (a int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE t")
    needs = Needs(slot="s", publications=("p",), create_slot=True)
    (finding,) = findings(db18, replace(needs, **{option: value}))
    assert finding == f"The option {option} needs mode = walsender: use that mode, or leave {option} out."
    assert findings(db18, replace(needs, **{option: value}, mode="walsender")) == []
    assert findings(db18, replace(needs, streaming="off")) == []


@pytest.mark.postgres
def test_a_slot_of_another_plugin() -> None:
    with create_database(15) as db:  # Debian's server brings test_decoding, the others do not.
        db.execute(
            "CREATE TABLE t (a int PRIMARY KEY)",
            "CREATE PUBLICATION p FOR TABLE t",
            "SELECT pg_create_logical_replication_slot('other_plugin', 'test_decoding')",
        )
        assert "has the plugin test_decoding" in findings(db, Needs(slot="other_plugin", publications=("p",)))[0]


def test_tables_and_identities(db: Database) -> None:
    db.execute(
        "CREATE TABLE t (a int PRIMARY KEY)",
        "CREATE TABLE bare (a int)",
        "CREATE PUBLICATION p FOR TABLE t, bare",
        "CREATE PUBLICATION empty",
    )
    create_slot(db.connection, "s")
    (warning,) = findings(db, Needs(slot="s", publications=("p",)))
    assert warning.endswith("run ALTER TABLE public.bare REPLICA IDENTITY FULL.")
    assert (
        "public.other is not published by p"
        in findings(db, Needs(slot="s", publications=("p",), tables=(TableName("public", "other"),)))[0]
    )
    assert "has no tables" in findings(db, Needs(slot="s", publications=("empty",)))[0]


def test_identities_that_the_server_does_not_take(db: Database) -> None:
    """A warning names exactly the tables whose updates and deletes the server refuses."""
    db.execute(
        "CREATE TABLE deferred (a int PRIMARY KEY DEFERRABLE)",
        "CREATE TABLE dropped (a int NOT NULL CONSTRAINT dropped_a UNIQUE, b int PRIMARY KEY)",
        "ALTER TABLE dropped REPLICA IDENTITY USING INDEX dropped_a",
        "ALTER TABLE dropped DROP CONSTRAINT dropped_a",
        "CREATE TABLE kept (a int NOT NULL CONSTRAINT kept_a UNIQUE)",
        "ALTER TABLE kept REPLICA IDENTITY USING INDEX kept_a",
        "CREATE TABLE complete (a int)",
        "ALTER TABLE complete REPLICA IDENTITY FULL",
        "CREATE TABLE root (a int PRIMARY KEY) PARTITION BY LIST (a)",
        "CREATE TABLE leaf PARTITION OF root FOR VALUES IN (1)",
        "CREATE TABLE mute PARTITION OF root FOR VALUES IN (2)",
        "ALTER TABLE root REPLICA IDENTITY NOTHING",
        "ALTER TABLE leaf REPLICA IDENTITY NOTHING",
        "ALTER TABLE mute REPLICA IDENTITY NOTHING",
        "CREATE PUBLICATION p FOR TABLE deferred, dropped, kept, complete, root WITH (publish_via_partition_root)",
    )
    create_slot(db.connection, "s")
    for table in ("deferred", "dropped", "leaf", "kept", "complete"):
        refused = table in ("deferred", "dropped", "leaf")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) if refused else nullcontext():
            db.execute(f"DELETE FROM {table}")
    (warning,) = findings(db, Needs(slot="s", publications=("p",)))
    assert warning == (
        "The server refuses UPDATE and DELETE on public.deferred, public.dropped, public.leaf and others, which have no "
        "replica identity: add a primary key that is not deferrable, or run ALTER TABLE public.deferred REPLICA IDENTITY "
        "FULL."
    )
    # The warning is only for the tables that are read.
    assert (
        findings(
            db,
            Needs(slot="s", publications=("p",), tables=(TableName("public", "kept"), TableName("public", "complete"))),
        )
        == []
    )
    db.execute("ALTER PUBLICATION p SET (publish = 'insert')")
    assert findings(db, Needs(slot="s", publications=("p",))) == []


def test_a_partition_whose_identity_is_not_that_of_the_table_it_is_read_as(db: Database) -> None:
    db.execute(
        "CREATE TABLE root (a int PRIMARY KEY, b int) PARTITION BY LIST (a)",
        "CREATE TABLE same PARTITION OF root FOR VALUES IN (1)",
        "CREATE TABLE other PARTITION OF root FOR VALUES IN (2)",
        "ALTER TABLE other REPLICA IDENTITY FULL",
        "CREATE PUBLICATION p FOR TABLE root WITH (publish_via_partition_root)",
    )
    create_slot(db.connection, "s")
    (warning,) = findings(db, Needs(slot="s", publications=("p",)))
    assert warning == (
        "The replica identity of public.other (read as public.root) differs from the replica identity of the table "
        "that it is read as, whose columns are shown as the key: old rows have other columns. Set the same with ALTER "
        "TABLE ... REPLICA IDENTITY."
    )
    db.execute("ALTER PUBLICATION p SET (publish_via_partition_root = false)")
    assert findings(db, Needs(slot="s", publications=("p",))) == []


def test_a_partition_that_another_publication_has_as_its_root(db: Database) -> None:
    db.execute(
        "CREATE TABLE root (a int PRIMARY KEY) PARTITION BY LIST (a)",
        "CREATE TABLE leaf PARTITION OF root FOR VALUES IN (1)",
        "CREATE PUBLICATION leaves FOR TABLE leaf",
        "CREATE PUBLICATION roots FOR TABLE root WITH (publish_via_partition_root)",
    )
    create_slot(db.connection, "s")
    needs = Needs(slot="s", publications=("leaves", "roots"), tables=(TableName("public", "leaf"),))
    assert findings(db, replace(needs, publications=("leaves",))) == []
    db.execute("ALTER TABLE leaf REPLICA IDENTITY NOTHING")
    (warning,) = findings(db, replace(needs, tables=()))
    assert warning.startswith("The server refuses UPDATE and DELETE on public.leaf, which")
    db.execute("ALTER TABLE leaf REPLICA IDENTITY DEFAULT")
    (finding,) = findings(db, needs)
    assert "sends its changes as changes of public.root: read that table, or omit that publication." in finding
    assert findings(db, replace(needs, tables=(TableName("public", "root"),))) == []
    assert query_published_tables(db.connection, needs.publications) == [("public", "root")]
    # The server sends them in the same way.
    db.execute("INSERT INTO root VALUES (1)")
    options = PluginOptions(publication_names=needs.publications, proto_version=1)
    decoded = [v1.parse(data) for _, data in peek(db.connection, "s", options)]
    assert "root" in [message.name for message in decoded if isinstance(message, v1.Relation)]
    (insert,) = (message for message in decoded if isinstance(message, v1.Insert))
    assert insert.relation_id == db.value("SELECT 'root'::regclass::oid::int")


def test_a_snapshot_reads_partitions(db: Database) -> None:
    db.execute(
        "CREATE TABLE root (a int PRIMARY KEY) PARTITION BY LIST (a)",
        "CREATE TABLE leaf PARTITION OF root FOR VALUES IN (1)",
        "CREATE PUBLICATION p FOR TABLE root WITH (publish_via_partition_root)",
        "CREATE ROLE copier LOGIN REPLICATION",
        "GRANT SELECT ON root TO copier",
    )
    needs = Needs(slot="s", publications=("p",), create_slot=True, snapshot=True)
    try:
        with ConnectionSettings(db.dsn, user="copier").connect() as connection:
            with pytest.raises(PreflightError, match=r"may not read public\.leaf: run GRANT SELECT ON public\.leaf"):
                check(connection, needs)
            db.execute("GRANT SELECT ON leaf TO copier")
            assert check(connection, needs) == []
    finally:
        db.execute("DROP OWNED BY copier", "DROP ROLE copier")


def test_columns_that_the_server_does_not_send(db: Database) -> None:
    db.execute(
        "CREATE TABLE t (a int PRIMARY KEY, twice int GENERATED ALWAYS AS (a * 2) STORED)",
        "CREATE TABLE root (a int PRIMARY KEY) PARTITION BY LIST (a)",
        "CREATE TABLE leaf PARTITION OF root FOR VALUES IN (1)",
        "CREATE PUBLICATION p FOR TABLE t, root WITH (publish_via_partition_root)",
    )
    needs = Needs(slot="s", publications=("p",), create_slot=True)
    (warning,) = findings(db, needs)
    way = ", unless its publication has publish_generated_columns = stored and they are stored"
    assert warning == (
        f"The server does not send generated columns{way if db.major >= 18 else ''}: a copy lacks public.t.twice."
    )
    assert findings(db, replace(needs, tables=(TableName("public", "root"),))) == []
    if db.major >= 18:
        db.execute("ALTER PUBLICATION p SET (publish_generated_columns = stored)")
        assert findings(db, needs) == []
        db.execute("ALTER PUBLICATION p SET (publish_generated_columns = none)")
    # A column with a default is new as long as the reader has not passed its addition.
    needs = replace(needs, tables=(TableName("public", "root"),))
    db.execute("INSERT INTO root VALUES (1)", "ALTER TABLE root ADD COLUMN before int DEFAULT 1")
    create_slot(db.connection, "s")
    assert findings(db, needs) == []
    db.execute("ALTER TABLE root ADD COLUMN after int DEFAULT 1")
    (warning,) = findings(db, needs)
    assert warning == (
        "public.root.after came with ADD COLUMN ... DEFAULT: earlier rows have the default on the server, "
        "which does not send it, and NULL in a copy. Set it in the copy, or UPDATE the rows on the server."
    )


def test_a_role_that_may_not_replicate(db18: Database) -> None:
    db18.execute("CREATE ROLE reader LOGIN", "CREATE PUBLICATION p")
    create_slot(db18.connection, "s")
    try:
        with (
            ConnectionSettings(db18.server.dsn_as("reader", db18.name)).connect() as connection,
            pytest.raises(PreflightError, match="run ALTER ROLE reader REPLICATION"),
        ):
            check(connection, Needs(slot="s", publications=("p",)))
    finally:
        db18.execute("DROP ROLE reader")


@pytest.mark.postgres
def test_a_server_that_is_not_set_up_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        LocalServer(find_installation(18), wal_level="replica") as server,
        connect_writer(server.dsn) as connection,
    ):
        connection.execute("CREATE TABLE t (a int PRIMARY KEY)")
        connection.execute("CREATE PUBLICATION p FOR TABLE t")
        needs = Needs(slot="s", publications=("p",), create_slot=True)
        with pytest.raises(PreflightError, match="ALTER SYSTEM SET wal_level = logical and restart"):
            check(connection, needs)
        # No server of PostgreSQL 19 exists yet: this one claims to be one, with the settings of its WAL.
        monkeypatch.setattr(preflight, "server_major", lambda connection: 19)
        (warning,) = check(_answering(connection, effective_wal_level="replica"), needs)
        assert warning == (
            "Creating the first logical slot raises effective_wal_level from replica to logical, which waits for a "
            "checkpoint."
        )
        assert check(_answering(connection, effective_wal_level="logical"), needs) == []
        minimal = _answering(connection, wal_level="minimal", effective_wal_level="minimal")
        with pytest.raises(PreflightError, match="ALTER SYSTEM SET wal_level = replica and restart"):
            check(minimal, needs)


class _Answering:
    """A server's connection with some settings replaced."""

    def __init__(self, connection: Connection, **settings: str) -> None:
        self._connection = connection
        self._answers = {f"SELECT current_setting('{name}')": value for name, value in settings.items()}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, query: Any, parameters: Any = None) -> Any:
        if query in self._answers:
            query, parameters = "SELECT %s", (self._answers[query],)
        return self._connection.execute(query, parameters)


def _answering(connection: Connection, **settings: str) -> Any:
    return _Answering(connection, **settings)


def test_slots_that_are_lost_when_nobody_reads_them(db18: Database) -> None:
    db18.execute("CREATE TABLE t (a int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE t")
    needs = Needs(slot="s", publications=("p",), create_slot=True)
    db18.execute("ALTER SYSTEM SET idle_replication_slot_timeout = '2d'", "SELECT pg_reload_conf()")
    try:
        eventually(lambda: findings(db18, needs) != [])
        (warning,) = findings(db18, needs)
        assert warning.startswith("idle_replication_slot_timeout is 2d: a slot without a reader for that time is lost")
    finally:
        db18.execute("ALTER SYSTEM RESET idle_replication_slot_timeout", "SELECT pg_reload_conf()")


@pytest.mark.postgres
def test_a_server_without_walsenders() -> None:
    with (
        LocalServer(find_installation(18), max_wal_senders="0") as server,
        connect_writer(server.dsn) as connection,
    ):
        connection.execute("CREATE TABLE t (a int PRIMARY KEY)")
        connection.execute("CREATE PUBLICATION p FOR TABLE t")
        needs = Needs(slot="s", publications=("p",), create_slot=True)
        assert check(connection, needs) == []
        for wanted in ({"mode": "walsender"}, {"snapshot": True}):
            with pytest.raises(PreflightError, match="max_wal_senders is 0: run ALTER SYSTEM"):
                check(connection, replace(needs, **wanted))


def test_what_may_surprise_of_a_slot(db18: Database) -> None:
    db18.execute("CREATE TABLE t (a int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE t")
    create_slot(db18.connection, "s")
    (finding,) = findings(db18, Needs(slot="s", publications=("p",), mode="walsender", two_phase=True))
    assert "has no two_phase" in finding
    options = PluginOptions(publication_names=("p",), proto_version=1)
    with Walsender(db18.settings, "s", options):
        pid = query_slot(db18.connection, "s").active_pid
        (finding,) = findings(db18, Needs(slot="s", publications=("p",)))
    assert f"in use by process {pid}" in finding
