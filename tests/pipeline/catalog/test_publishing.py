"""The publication of a destination on a real server: what is in it, what is left out, and what a person has to do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest

from logicalrep.pipeline.catalog.publication_plan import PublicationNeededError
from logicalrep.pipeline.catalog.publishing import Published, ensure_publication
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.table_errors import is_retriable
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.publications import query_published_tables
from logicalrep.transactions.table_names import TableName
from tests.postgres.servers import Database
from tests.waiting import eventually

EVERY = ReplicateSettings("", "x")
NAME, IN_SQL = 'destination "1"', '"destination ""1"""'


def ensured(
    db: Database, wanted: str = "", *, excluded: str = "", name: str = NAME, at_start: bool = True
) -> Published:
    settings = ReplicateSettings("", "x", tables=wanted, exclude_tables=excluded)
    with db.settings.connect() as connection:
        connection.execute("SET lock_timeout = '200ms'")
        return ensure_publication(connection, name, settings, at_start=at_start)


def names(published: Published) -> list[str]:
    return [str(table) for table in published.tables]


def test_our_publication_has_the_tables_with_an_identity_and_warns_of_the_other_tables_once(db: Database) -> None:
    db.execute(
        "CREATE TABLE keyed (id int PRIMARY KEY)",
        "CREATE TABLE deferred (id int PRIMARY KEY DEFERRABLE)",
        "CREATE TABLE bare (v int)",
        "CREATE TABLE mute (id int PRIMARY KEY)",
        "ALTER TABLE mute REPLICA IDENTITY NOTHING",
        "CREATE TABLE whole (v int)",
        "ALTER TABLE whole REPLICA IDENTITY FULL",
        "CREATE TABLE by_index (a int NOT NULL CONSTRAINT by_index_a UNIQUE)",
        "ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_index_a",
        'CREATE TABLE """; DROP TABLE keyed; --" (id int PRIMARY KEY)',
        "CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY)",
        "CREATE TEMPORARY TABLE passing (id int PRIMARY KEY)",
        "CREATE VIEW seen AS SELECT 1 AS one",
        "CREATE MATERIALIZED VIEW stored AS SELECT 1 AS one",
        "CREATE SEQUENCE counted",
        "CREATE TABLE counts (id serial PRIMARY KEY)",
        "CREATE FOREIGN DATA WRAPPER nothing",
        "CREATE SERVER elsewhere FOREIGN DATA WRAPPER nothing",
        "CREATE FOREIGN TABLE far (v int) SERVER elsewhere",
    )
    published = ensured(db)
    assert names(published) == [
        'public."""; DROP TABLE keyed; --"',
        "public.by_index",
        "public.counts",
        "public.keyed",
        "public.whole",
    ]
    keyless, last_warning = published.warnings
    assert keyless == (
        "3 tables are not replicated, as nothing identifies their rows in updates and deletes: public.bare, "
        "public.deferred, public.mute. Give each a primary key, or run ALTER TABLE … REPLICA IDENTITY FULL for it and "
        "its partitions"
    )
    assert last_warning == (
        "logical replication does not carry sequences (public.counted); foreign tables (public.far); views "
        "(public.seen); materialized views (public.stored); unlogged tables (public.unlogged); nor does it carry large "
        "objects"
    )
    # The application can go on, and a second call finds all as it is.
    db.execute("UPDATE bare SET v = 1", "DELETE FROM mute", "DELETE FROM deferred", "DELETE FROM keyed")
    assert ensured(db) == published


def test_new_tables_are_added_to_our_publication_and_not_to_a_users_publication(db: Database) -> None:
    db.execute("CREATE TABLE one (id int PRIMARY KEY)", "CREATE PUBLICATION theirs FOR TABLE one")
    assert names(ensured(db)) == ["public.one"]
    db.execute("CREATE TABLE two (id int PRIMARY KEY)")
    assert names(ensured(db)) == ["public.one", "public.two"]
    assert names(ensured(db, name="theirs")) == ["public.one"]
    with pytest.raises(PublicationNeededError, match=r"the publication theirs has no table public\.two"):
        ensured(db, "two", name="theirs")


def test_a_child_is_not_published_with_its_parent(db18: Database) -> None:
    """A child without an identity of its own would refuse updates."""
    db18.execute(
        "CREATE TABLE parent (id int PRIMARY KEY)",
        "CREATE TABLE child () INHERITS (parent)",
        "CREATE TABLE later (id int)",
    )
    assert names(ensured(db18, "parent")) == ["public.parent"]
    assert query_published_tables(db18.connection, (NAME,)) == [("public", "parent")]
    db18.execute("INSERT INTO child VALUES (1)", "DELETE FROM child")


PARTITIONS = {
    "another index": "ALTER TABLE leaf REPLICA IDENTITY USING INDEX leaf_other",
    "nothing": "ALTER TABLE leaf REPLICA IDENTITY NOTHING",
}


@pytest.mark.parametrize("statement", PARTITIONS.values(), ids=PARTITIONS)
def test_a_partition_with_another_replica_identity_keeps_its_table_out(db18: Database, statement: str) -> None:
    db18.execute(
        "CREATE TABLE root (id int PRIMARY KEY, other int NOT NULL) PARTITION BY RANGE (id)",
        "CREATE TABLE leaf PARTITION OF root FOR VALUES FROM (0) TO (10)",
        "CREATE UNIQUE INDEX leaf_other ON leaf (other)",
        statement,
    )
    published = ensured(db18)
    assert (names(published), list(published.warnings)) == ([], [
        "public.root is not replicated, as its partition public.leaf has another replica identity: run ALTER TABLE "
        "public.leaf REPLICA IDENTITY FULL"
    ])  # fmt: skip
    db18.execute("ALTER TABLE leaf REPLICA IDENTITY FULL")
    assert names(ensured(db18)) == ["public.root"]


def test_partitions_whose_changes_are_not_sent_keep_their_table_out(db18: Database) -> None:
    db18.execute(
        "CREATE TABLE whole (v int) PARTITION BY RANGE (v)",
        "CREATE TABLE whole1 PARTITION OF whole FOR VALUES FROM (0) TO (10)",
        "ALTER TABLE whole REPLICA IDENTITY FULL",
        "CREATE TABLE root (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE UNLOGGED TABLE leaf PARTITION OF root FOR VALUES FROM (0) TO (10)",
    )
    published = ensured(db18)
    assert (names(published), [warning.partition(", as ")[2] for warning in published.warnings]) == ([], [
        "its partition public.leaf is foreign or unlogged, whose changes logical replication does not carry: detach it",
        "its partition public.whole1 has another replica identity: run ALTER TABLE public.whole1 REPLICA IDENTITY FULL",
    ])  # fmt: skip
    # Published, the table would refuse the application's updates.
    db18.execute("INSERT INTO whole VALUES (1)", "UPDATE whole SET v = 2")
    db18.execute("ALTER TABLE whole1 REPLICA IDENTITY FULL", "ALTER TABLE root DETACH PARTITION leaf")
    assert names(ensured(db18)) == ["public.root", "public.whole"]


LOSSES = {
    "its key": "ALTER TABLE t DROP CONSTRAINT t_pkey",
    "its identity": "ALTER TABLE t REPLICA IDENTITY NOTHING",
    "the whole row": "ALTER TABLE t REPLICA IDENTITY FULL, ADD COLUMN g int GENERATED ALWAYS AS (v + 1) STORED",
}


@pytest.mark.parametrize("statement", LOSSES.values(), ids=LOSSES)
def test_a_table_whose_writes_fail_since_it_is_published_leaves_the_publication(db18: Database, statement: str) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 1)")
    assert ensured(db18).warnings == ()
    db18.execute(statement)
    with pytest.raises((psycopg.errors.ObjectNotInPrerequisiteState, psycopg.errors.InvalidColumnReference)):
        db18.execute("UPDATE t SET v = 2")
    published = ensured(db18)
    assert (names(published), [warning.partition(", as ")[0] for warning in published.warnings]) == (
        [],
        ["public.t is no longer replicated"],
    )
    db18.execute("UPDATE t SET v = 2", "DELETE FROM t")


OTHERS = "ALTER TABLE t REPLICA IDENTITY FULL"
SENT = f"ALTER PUBLICATION {IN_SQL} SET (publish_generated_columns = stored)"
PLAIN = "ALTER TABLE t REPLICA IDENTITY DEFAULT"
GENERATED = {
    "in the key": ("a int, v int, g int GENERATED ALWAYS AS (a + 1) STORED, PRIMARY KEY (a, g)", "", (OTHERS, SENT)),
    "in whole rows": ("v int, g int GENERATED ALWAYS AS (v + 1) STORED", OTHERS, (None, SENT)),
    "in whole rows, and not in the key": (
        "a int PRIMARY KEY, v int, g int GENERATED ALWAYS AS (v + 1) STORED", OTHERS, (None, PLAIN)
    ),
    "beside the key": ("a int PRIMARY KEY, v int, g int GENERATED ALWAYS AS (v + 1) STORED", "", (None, None)),
    "virtual": ("a int PRIMARY KEY, v int, g int GENERATED ALWAYS AS (v + 1)", OTHERS, (None, PLAIN)),
}  # fmt: skip


@pytest.mark.parametrize(("columns", "statement", "remedies"), GENERATED.values(), ids=GENERATED)
@pytest.mark.parametrize("partitioned", [False, True], ids=["a table", "a partition"])
def test_a_key_with_an_unsent_generated_column_keeps_its_table_out_until_the_remedy(
    db16_and_18: Database, columns: str, statement: str, remedies: tuple[str | None, str | None], partitioned: bool
) -> None:
    """The statement in the warning is all that is missing, and the application can write before and after it."""
    db = db16_and_18
    if db.major < 18 and "STORED" not in columns:
        pytest.skip("virtual columns exist since 18")
    remedy = remedies[db.major >= 18]
    # A publication that is created for the table would send such columns from the start.
    db.execute("CREATE TABLE earlier (id int PRIMARY KEY)")
    ensured(db)
    if partitioned:
        db.execute(
            f"CREATE TABLE root ({columns}) PARTITION BY RANGE ({'a' if columns.startswith('a') else 'v'})",
            "CREATE TABLE t PARTITION OF root FOR VALUES FROM (0) TO (100)",
        )
    else:
        db.execute(f"CREATE TABLE t ({columns})")
    if statement:
        db.execute(statement)
        if partitioned:
            db.execute("ALTER TABLE root REPLICA IDENTITY FULL")
    published = ensured(db)
    writes = ("INSERT INTO t VALUES (1, 1)", "UPDATE t SET v = 2", "DELETE FROM t WHERE v = 2")
    if not columns.startswith("a"):
        writes = ("INSERT INTO t VALUES (1)", *writes[1:])
    db.execute(*writes)
    name = "public.root" if partitioned else "public.t"
    rounds = 0
    while names(published) == ["public.earlier"]:
        (warning,) = published.warnings
        assert "the generated column g, which is not sent" in warning
        advice = warning.rpartition("run ")[2].replace("public.", "").replace("root", "t")
        assert advice == remedy
        db.execute(warning.rpartition("run ")[2])
        published, rounds = ensured(db), rounds + 1
    assert (names(published), published.warnings) == (["public.earlier", name], ())
    assert bool(rounds) == (remedy is not None)
    db.execute(*writes)


def test_a_publication_sends_generated_columns_from_the_start_where_a_table_needs_them(db18: Database) -> None:
    sends = "SELECT pubgencols FROM pg_publication"
    db18.execute("CREATE TABLE t (a int PRIMARY KEY, g int GENERATED ALWAYS AS (a + 1) STORED)")
    ensured(db18, name="plain")
    assert db18.value(sends) == "n"
    db18.execute("CREATE TABLE k (a int, g int GENERATED ALWAYS AS (a + 1) STORED, PRIMARY KEY (a, g))")
    assert names(ensured(db18)) == ["public.k", "public.t"]
    assert db18.value(f"{sends} WHERE pubname <> 'plain'") == "s"
    db18.execute("INSERT INTO k VALUES (1)", "UPDATE k SET a = 2", "DELETE FROM k")


WANTED = {
    "a missing table": ("absent", "there is no such table"),
    "a partition": ("leaf", "public.leaf is a partition, which is replicated with public.root: name public.root"),
    "a view": ("seen", r"does not carry views \(public.seen\)"),
    "a table without a key": ("bare", r"run ALTER TABLE public\.bare REPLICA IDENTITY FULL"),
}


@pytest.mark.parametrize(("wanted", "message"), WANTED.values(), ids=WANTED)
def test_wanted_tables_that_cannot_be_published_are_refused(db18: Database, wanted: str, message: str) -> None:
    db18.execute(
        "CREATE TABLE one (id int PRIMARY KEY)",
        "CREATE TABLE bare (v int)",
        "CREATE VIEW seen AS SELECT 1 AS one",
        "CREATE TABLE root (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE leaf PARTITION OF root FOR VALUES FROM (0) TO (10)",
    )
    with pytest.raises(PublicationNeededError, match=message):
        ensured(db18, f"one, {wanted}")
    assert db18.rows("SELECT FROM pg_publication") == []


def test_a_wanted_table_that_is_dropped_later_is_a_warning(db18: Database) -> None:
    db18.execute("CREATE TABLE one (id int PRIMARY KEY)", "CREATE TABLE two (id int PRIMARY KEY)")
    assert names(ensured(db18, "one, two")) == ["public.one", "public.two"]
    db18.execute("DROP TABLE two")
    published = ensured(db18, "one, two", at_start=False)
    assert (names(published), published.warnings) == (
        ["public.one"],
        ("public.two cannot be replicated: there is no such table in this database",),
    )


@pytest.mark.parametrize("missing", ["insert", "update", "delete", "truncate"])
def test_a_publication_that_leaves_out_changes_is_refused(db18: Database, missing: str) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)")
    rest = ", ".join(action for action in ("insert", "update", "delete", "truncate") if action != missing)
    db18.execute(f"""CREATE PUBLICATION {IN_SQL} FOR TABLE t WITH (publish = '{rest}')""")
    with pytest.raises(PublicationNeededError, match=f"leaves out {missing}: run ") as raised:
        ensured(db18)
    assert raised.value.code == "PUBLICATION_INCOMPLETE"
    db18.execute(str(raised.value.description).rpartition(": run ")[2])
    assert names(ensured(db18)) == ["public.t"]


@pytest.mark.parametrize("option", ["publish = 'insert'", "publish_via_partition_root = false"])
def test_other_options_of_a_publication_that_replicate_created_are_refused(db18: Database, option: str) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)")
    ensured(db18)
    db18.execute(f"ALTER PUBLICATION {IN_SQL} SET ({option})")
    with pytest.raises(PublicationNeededError) as raised:
        ensured(db18, at_start=False)
    assert raised.value.code == "PUBLICATION_INCOMPLETE"
    db18.execute(str(raised.value.description).rpartition(": run ")[2])
    assert names(ensured(db18)) == ["public.t"]


def test_a_users_publication_for_all_tables_has_tables_without_a_key(db18: Database) -> None:
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY)",
        "CREATE TABLE bare (v int)",
        f"CREATE PUBLICATION {IN_SQL} FOR ALL TABLES",
    )
    assert names(ensured(db18)) == ["public.bare", "public.t"]


def test_a_role_without_the_rights_is_given_the_statements(db: Database) -> None:
    """The statements, run by the owner, are all that is missing."""
    role = f"reader_{db.name}"
    db.execute(
        "CREATE TABLE t (id int PRIMARY KEY)",
        'CREATE TABLE """; DROP TABLE t; --" (id int PRIMARY KEY)',
        f"CREATE ROLE {role} LOGIN REPLICATION",
    )
    try:
        with ConnectionSettings(db.server.dsn_as(role, db.name)).connect() as connection:
            with pytest.raises(PublicationNeededError, match="let their owner run: ") as raised:
                ensure_publication(connection, NAME, EVERY)
            with db.writer() as owner:
                owner.execute(str(raised.value.description).partition("owner run: ")[2].encode())
            published = ensure_publication(connection, NAME, EVERY)
            assert published.tables == (TableName("public", '"; DROP TABLE t; --'), TableName("public", "t"))
            db.execute("CREATE TABLE later (id int PRIMARY KEY)")
            published = ensure_publication(connection, NAME, EVERY)
            assert len(published.tables) == 2
            (warning,) = published.warnings
            with db.writer() as owner:
                owner.execute(warning.partition("owner run: ")[2].encode())
            assert len(ensure_publication(connection, NAME, EVERY).tables) == 3
            assert connection.execute("SELECT * FROM public.later").fetchall() == []
    finally:
        db.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_foreign_and_locked_tables_do_not_block_the_other_tables(db18: Database) -> None:
    role = f"owner_{db18.name}"
    db18.execute(
        f"CREATE ROLE {role} LOGIN REPLICATION",
        f"GRANT CREATE ON DATABASE {db18.name} TO {role}",
        f"GRANT ALL ON SCHEMA public TO {role}",
    )
    try:
        with ConnectionSettings(db18.server.dsn_as(role, db18.name)).connect() as connection:
            connection.execute("SET lock_timeout = '200ms'")
            connection.execute("CREATE TABLE public.one (id int PRIMARY KEY)")
            assert len(ensure_publication(connection, NAME, EVERY).tables) == 1
            connection.execute("CREATE TABLE public.two (id int PRIMARY KEY)")
            connection.execute("CREATE TABLE public.locked (id int PRIMARY KEY)")
            db18.execute("CREATE TABLE foreigners (id int PRIMARY KEY)")
            with db18.writer() as other, other.transaction():
                other.execute("LOCK TABLE locked")
                published = ensure_publication(connection, NAME, EVERY)
            assert names(published) == ["public.one", "public.two"]
            of_others, of_locked = sorted(published.warnings, reverse=True)
            assert "must be owner of table public.foreigners" in of_others
            # The server would log a statement that it refuses, at each refresh.
            assert "must be owner" not in db18.server.log()
            assert of_locked.startswith("public.locked is not replicated yet, as another session has locked it")
            assert names(ensure_publication(connection, NAME, EVERY)) == ["public.locked", "public.one", "public.two"]
    finally:
        db18.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_excluded_tables_leave_the_publication_with_a_log_line(db: Database) -> None:
    db.execute(
        "CREATE TABLE one (id int PRIMARY KEY)",
        "CREATE TABLE two (id int PRIMARY KEY)",
        "CREATE TABLE bare (id int)",
        "CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY LIST (id)",
        "CREATE TABLE part PARTITION OF parted DEFAULT",
    )
    message = "excluded, so neither loaded nor replicated: {}; their stored rows stay"
    # Nor do the warnings say what to do for it to be published.
    first = ensured(db, excluded="two,bare")
    assert (names(first), first.warnings) == (
        ["public.one", "public.parted"], (message.format("public.bare, public.two"),)
    )  # fmt: skip
    second = ensured(db, excluded="parted,bare")
    assert (names(second), second.warnings) == (
        ["public.one", "public.two"], (message.format("public.bare, public.parted"),)
    )  # fmt: skip
    with db.settings.connect() as connection:
        assert [str(table) for table in query_published_tables(connection, (NAME,))] == ["public.one", "public.two"]
    for excluded, reason in (
        ("nope", "public.nope cannot be replicated: there is no such table in this database"),
        ("part", "public.part is a partition, which is replicated with public.parted: name public.parted"),
    ):
        with pytest.raises(PublicationNeededError, match=reason):
            ensured(db, excluded=excluded)
        # It may have been dropped since the start.
        assert "public.parted" in names(ensured(db, excluded=excluded, at_start=False))


def test_patterns_select_and_exclude_current_and_later_tables(db18: Database) -> None:
    db18.execute(
        "CREATE SCHEMA sales",
        "CREATE TABLE sales.orders (id int PRIMARY KEY)",
        "CREATE TABLE sales.log_1 (id int PRIMARY KEY)",
        "CREATE TABLE public.other (id int PRIMARY KEY)",
        'CREATE TABLE sales."*" (id int PRIMARY KEY)',
    )
    assert names(ensured(db18, "sales.*", excluded="*.log_*")) == ['sales."*"', "sales.orders"]
    # A quoted star is a name.
    assert names(ensured(db18, 'sales."*"', name="literal")) == ['sales."*"']
    db18.execute("CREATE TABLE sales.later (id int PRIMARY KEY)", "CREATE TABLE sales.log_2 (id int PRIMARY KEY)")
    assert names(ensured(db18, "sales.*", excluded="*.log_*")) == ['sales."*"', "sales.later", "sales.orders"]
    with pytest.raises(PublicationNeededError, match=r"no table can be replicated as slaes\.\*"):
        ensured(db18, "slaes.*")
    # What is excluded may come later, or never.
    assert len(names(ensured(db18, excluded="none_*", name="all"))) == 6


def test_a_users_publication_keeps_its_excluded_tables(db: Database) -> None:
    db.execute(
        "CREATE TABLE one (id int PRIMARY KEY)",
        "CREATE TABLE two (id int PRIMARY KEY)",
        "CREATE PUBLICATION theirs FOR TABLE one, two",
    )
    published = ensured(db, excluded="two", name="theirs")
    assert (names(published), len(published.warnings)) == (["public.one"], 1)
    with db.settings.connect() as connection:
        assert len(query_published_tables(connection, ("theirs",))) == 2


def test_a_role_that_may_not_take_an_excluded_table_out_is_given_the_statements(db: Database) -> None:
    db.execute("CREATE TABLE one (id int PRIMARY KEY)", "CREATE TABLE two (id int PRIMARY KEY)")
    ensured(db)
    role = f"reader_{db.name}"
    db.execute(f"CREATE ROLE {role} LOGIN REPLICATION")
    try:
        settings = ReplicateSettings("", "x", exclude_tables="two")
        with ConnectionSettings(db.server.dsn_as(role, db.name)).connect() as connection:
            published = ensure_publication(connection, NAME, settings)
        assert names(published) == ["public.one"]
        assert f"still sends changes, which are ignored, of public.two: {'this role may not'}" in published.warnings[0]
        assert f'ALTER PUBLICATION {IN_SQL} DROP TABLE ONLY "public"."two"' in published.warnings[0]
    finally:
        db.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_tables_dropped_during_the_listing_are_omitted(db18: Database) -> None:
    """The server's own list of a publication's tables fails then: `could not open relation with OID`."""
    db18.execute("CREATE TABLE stays (id int PRIMARY KEY)", "CREATE TABLE goes (id int PRIMARY KEY)")
    db18.execute("CREATE PUBLICATION p FOR TABLE goes, stays")
    with closing(db18.writer()) as other, ThreadPoolExecutor(2) as pool:
        other.autocommit = False
        other.execute("DROP TABLE goes")

        def listed() -> list[TableName]:
            with db18.settings.connect() as connection:
                return query_published_tables(connection, ("p",))

        def failed() -> psycopg.Error | None:
            with db18.settings.connect() as connection:
                try:
                    connection.execute("SELECT * FROM pg_publication_tables WHERE pubname = 'p'")
                except psycopg.Error as error:
                    return error
            return None

        tables, error = pool.submit(listed), pool.submit(failed)
        waiting = "SELECT count(*) FROM pg_locks WHERE relation = 'goes'::regclass AND NOT granted"
        eventually(lambda: db18.value(waiting) == 2)
        other.commit()
        assert tables.result() == [TableName("public", "stays")]
        # A load that meets it is tried again.
        raised = error.result()
        assert raised is not None
        assert is_retriable(raised)


def test_tables_that_extensions_make_for_their_work_are_left_out(db18: Database) -> None:
    """Their schema belongs to the extension, as it comes with pg_repack and TimescaleDB."""
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY)",
        "CREATE TABLE metrics (id int PRIMARY KEY)",
        "CREATE TABLE parent (id int PRIMARY KEY)",
        "CREATE TABLE child (PRIMARY KEY (id)) INHERITS (parent)",
        "CREATE SCHEMA repack",
        "CREATE SCHEMA _timescaledb_internal",
        "ALTER EXTENSION plpgsql ADD SCHEMA repack",
        "ALTER EXTENSION plpgsql ADD SCHEMA _timescaledb_internal",
        "CREATE TABLE repack.log_16400 (id bigserial PRIMARY KEY, pk int, row text)",
        "CREATE TABLE _timescaledb_internal.chunk_1 (PRIMARY KEY (id)) INHERITS (metrics)",
    )
    published = ensured(db18)
    assert names(published) == ["public.child", "public.parent", "public.t"]
    assert sorted(published.warnings) == [
        "public.metrics is not replicated, as its rows are in the chunks of a hypertable",
        "tables in the schemas of extensions are not replicated unless --tables names them: _timescaledb_internal, repack",
    ]


def test_a_table_of_an_extensions_schema_that_is_named(db18: Database) -> None:
    db18.execute(
        "CREATE SCHEMA work",
        "ALTER EXTENSION plpgsql ADD SCHEMA work",
        "CREATE TABLE work.t (id int PRIMARY KEY)",
        "CREATE TABLE work.u (id int PRIMARY KEY)",
    )
    published = ensured(db18, "work.t")
    assert (names(published), published.warnings) == (["work.t"], ())


def test_distributed_tables_of_citus_are_left_out(db18: Database) -> None:
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY)",
        "CREATE TABLE events (id int PRIMARY KEY)",
        "SET allow_system_table_mods = on",
        "CREATE TABLE pg_catalog.pg_dist_partition AS SELECT 'events'::regclass AS logicalrelid",
    )
    published = ensured(db18)
    assert names(published) == ["public.t"]
    assert published.warnings == ("public.events is not replicated, as its rows are in the shards of Citus",)
