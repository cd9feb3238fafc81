"""Columns that are masked or left out: no value of theirs is written anywhere, whatever way rows come."""

from __future__ import annotations

import hmac
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from logicalrep.arrow.changes.sent_relation import SentRelation
from logicalrep.arrow.changes.table_changes import TableChanges
from logicalrep.cli.main import main
from logicalrep.pipeline.buffer.row_buffer import RowBuffer
from logicalrep.pipeline.config.config import Config
from logicalrep.pipeline.config.mask_key import MaskKey, MaskKeyError
from logicalrep.pipeline.config.nodes import ConfigError
from logicalrep.pipeline.config.reading import read_config
from logicalrep.pipeline.errors import NeedsResync
from logicalrep.pipeline.masks.masked_rows import Masking
from logicalrep.pipeline.operate.resync import read_known_settings, resync
from logicalrep.pipeline.run.loop import TablesStoppedError
from logicalrep.pipeline.run.setup import query_unmet
from logicalrep.pipeline.schema.table_formats import FormatName
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.state.state import State, StateError, States
from logicalrep.pipeline.state.stored_settings import StoredSettings
from logicalrep.pipeline.state.table_state import TableState
from logicalrep.pipeline.storage.storage import MalformedFileError, Storage
from logicalrep.pipeline.verify.verifying import verify
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.changes import change_batch, plain, relation
from tests.pipeline.reading import read_table
from tests.pipeline.replicating import replicate_for_warnings, replicate_meanwhile, replicate_once, settings
from tests.pipeline.stored import MARKS_IN_SMALL_FILES, WriteMode
from tests.postgres.servers import Database
from tests.waiting import eventually

NONE = TableState("", None, Lsn(0), None, 0)
"""The state of a missing table."""
KEY = "a key for tests, and for them alone"
USERS = TableName("public", "users")
MASKS: dict[str, Any] = {"masked": {"email": "hashed", "phone": "nulled", "big": "hashed"}, "left_out": ["secret"]}
BIG = "(SELECT string_agg('sesame' || md5(i::text), '') FROM generate_series(1, 300) AS i)"
TABLE = (
    "CREATE TABLE users (id int PRIMARY KEY, email text, phone date, secret text, big text, city text)",
    "ALTER TABLE users ALTER big SET STORAGE EXTERNAL",
    f"INSERT INTO users SELECT i, 'sesame' || i, 'infinity', 'sesame', {BIG}, 'city' FROM generate_series(1, 9) AS i",
)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGICALREP_MASK_KEY", KEY)


def config(table: str = "users", **settings: Any) -> Config:
    return read_config({"tables": {table: {**MASKS, **settings}}}, TableSettings())


def hashed(text: str) -> str:
    return hmac.digest(KEY.encode(), text.encode(), "sha256").hex()


def rows(storage: Path, table: str, *columns: str) -> list[tuple[Any, ...]]:
    stored = read_table(str(storage / "public" / table)).to_pylist()
    return sorted((tuple(row[name] for name in columns) for row in stored), key=repr)


def clear_files(storage: Path) -> list[str]:
    """The files of a destination that have a value in clear, or an `infinity`, which only the nulled column has."""
    paths = []
    for path in storage.rglob("*"):
        if path.is_file():
            text = path.read_bytes().decode("latin-1")
            if path.suffix == ".parquet":
                text = str(pq.read_table(path).to_pylist())
            if "sesame" in text or "infinity" in text:
                paths.append(str(path.relative_to(storage)))
    return paths


@pytest.mark.parametrize(
    ("table_format", "mode"),
    [
        ("delta", "copy-on-write"),
        ("iceberg", "merge-on-read"),
        pytest.param("delta", "merge-on-read", marks=pytest.mark.thorough),
    ],
)
def test_no_value_is_written_in_clear_whatever_way_rows_come(
    db18: Database,
    tmp_path: Path,
    table_format: FormatName,
    mode: WriteMode,
    capsys: pytest.CaptureFixture[str],
) -> None:
    limits = MARKS_IN_SMALL_FILES
    for statement in TABLE:
        db18.execute(statement)
    options: dict[str, Any] = {"format": table_format, "write_mode": mode}
    masked = config(history=True, append=True, deletes="soft")
    # A copy takes seconds, so that the changes meanwhile are buffered.
    with replicate_meanwhile(db18, tmp_path, limits=limits, load_rate=0.03, config=masked, **options) as caught_up:
        eventually(lambda: (tmp_path / "_logicalrep/pending").exists())
        kept = tmp_path / "_logicalrep/buffered"
        changes = iter(range(100, 10_000))

        def is_kept() -> bool:
            db18.execute(
                f"INSERT INTO users VALUES ({next(changes)}, 'sesame', 'infinity', 'sesame', 'sesame', 'kept')"
            )
            return any(kept.rglob("*.parquet"))

        eventually(is_kept)
        assert clear_files(tmp_path) == []
        caught_up()
        db18.execute(
            "DELETE FROM users WHERE id >= 100",
            # The value of `big` is not sent.
            "UPDATE users SET city = 'other' WHERE id = 1",
            "UPDATE users SET id = 20, email = NULL WHERE id = 2",
            "DELETE FROM users WHERE id = 3",
        )
        caught_up()
    big = hashed(str(db18.value("SELECT big FROM users WHERE id = 1")))
    stored = [
        row[1:] for row in rows(tmp_path, "users", "_is_deleted", "id", "email", "phone", "big", "city") if not row[0]
    ]
    assert stored[0] == (1, hashed("sesame1"), None, big, "other")
    assert (20, None, None, big, "city") in stored
    table = read_table(str(tmp_path / "public/users"))
    assert "secret" not in table.column_names
    assert table.schema.field("phone").type == pa.date32()
    assert (1, hashed("sesame1"), big) in rows(tmp_path, "users~history", "id", "email", "big")
    assert ("update_postimage", 1, hashed("sesame1"), None) in rows(
        tmp_path, "users~changes", "_change_type", "id", "email", "phone"
    )
    assert [verdict.result for verdict in verify(db18.settings, Storage(str(tmp_path)), with_values=True)] == ["equal"]

    # As `resync` does it, which gets no file.
    assert resync(db18.settings, Storage(str(tmp_path)), [USERS]) is False
    replicate_once(
        db18, tmp_path, limits=limits, config=Config.of(read_known_settings(Storage(str(tmp_path))).tables), **options
    )
    assert main(["status", "--dsn", db18.dsn, "--to", str(tmp_path)]) == 0
    assert "sesame" not in capsys.readouterr().out
    assert clear_files(tmp_path) == []
    assert KEY not in "".join(path.read_text("latin-1") for path in tmp_path.rglob("*") if path.is_file())
    with pytest.raises(StateError, match=r"columns of public\.users are masked .* give --config") as raised:
        replicate_once(db18, tmp_path, limits=limits, **options)
    assert raised.value.code == "CONFIG_MISSING"


def test_a_key_of_hashes_and_rows_without_a_key(db18: Database, tmp_path: Path) -> None:
    db18.execute(
        "CREATE TABLE users (email text PRIMARY KEY, n int)",
        "INSERT INTO users SELECT 'sesame' || i, i FROM generate_series(1, 5) AS i",
        "CREATE TABLE log (who text, at date, what text)",
        "ALTER TABLE log REPLICA IDENTITY FULL",
        "INSERT INTO log SELECT 'sesame' || i % 2, 'infinity', 'sesame' || i FROM generate_series(1, 5) AS i",
    )
    tables = {
        "users": {"masked": {"email": "hashed"}},
        "log": {"masked": {"who": "hashed", "at": "nulled"}, "left_out": "what"},
    }
    settings = read_config({"tables": tables}, TableSettings())
    replicate_once(db18, tmp_path, config=settings)
    db18.execute(
        "UPDATE users SET n = 10 WHERE email = 'sesame1'",
        "UPDATE users SET email = 'sesame6' WHERE n = 2",
        "DELETE FROM users WHERE n = 3",
        "DELETE FROM log WHERE what = 'sesame2'",
        "UPDATE log SET what = 'sesame', at = now() WHERE what = 'sesame1'",
    )
    replicate_once(db18, tmp_path, config=settings)
    assert dict(rows(tmp_path, "users", "email", "n")) == {
        hashed(f"sesame{i}"): n for i, n in ((1, 10), (4, 4), (5, 5), (6, 2))
    }
    assert rows(tmp_path, "log", "who", "at") == sorted([(hashed("sesame0"), None)] + [(hashed("sesame1"), None)] * 3)
    assert clear_files(tmp_path) == []
    assert {entry.result for entry in verify(db18.settings, Storage(str(tmp_path)))} == {"equal"}
    log = next(path for path in (tmp_path / "public/users").glob("*.parquet"))
    damaged = pq.read_table(log)
    assert damaged.num_rows
    db18.execute(
        "SET session_replication_role = replica",
        f"ALTER PUBLICATION {db18.value('SELECT pubname FROM pg_publication')} SET (publish = 'delete')",
        "UPDATE users SET n = 11 WHERE email = 'sesame1'",
        f"ALTER PUBLICATION {db18.value('SELECT pubname FROM pg_publication')} SET (publish = 'insert, update, delete, truncate')",
    )
    (verdict,) = verify(db18.settings, Storage(str(tmp_path)), [USERS], patience=10)
    assert (verdict.result, [entry.key for entry in verdict.examples]) == ("different", [{"email": hashed("sesame1")}])


def stopped(db: Database, storage: Path, **options: Any) -> str:
    with pytest.raises(TablesStoppedError) as raised:
        replicate_once(db, storage, **options)
    assert clear_files(storage) == []
    return str(raised.value)


def test_a_renamed_column_stops_its_table(db18: Database, tmp_path: Path) -> None:
    for statement in TABLE:
        db18.execute(statement)
    replicate_once(db18, tmp_path, config=config())
    insert = "INSERT INTO users (id, city, {}) VALUES ({}, 'city', 'sesame')"
    with replicate_meanwhile(db18, tmp_path, config=config()) as caught_up:
        db18.execute("UPDATE users SET city = 'another'")
        caught_up()
        db18.execute("ALTER TABLE users RENAME email TO mail", insert.format("mail", 50))
        eventually(lambda: State.read(Storage(str(tmp_path))).tables["public.users"].state == "stopped")
        assert clear_files(tmp_path) == []
    # A restart with the same settings stops this table alone; new settings have to fit.
    db18.execute("CREATE TABLE orders (id int PRIMARY KEY)", "INSERT INTO orders VALUES (1)")
    assert "public.users: [COLUMN_PROTECTED] the settings mask or leave out the column email" in stopped(
        db18, tmp_path, config=config()
    )
    assert rows(tmp_path, "orders", "id") == [(1,)]
    requirements = query_unmet(settings(db18, tmp_path, config=config()))
    assert requirements.findings == ()
    assert {finding.code for finding in requirements.stopping} == {"CONFIG_INVALID", "TABLES_STOPPED"}
    with pytest.raises(ConfigError, match=r"config: public\.users has no published column email; did you mean mail\?"):
        replicate_once(db18, tmp_path, config=config(history=True))
    # Another column has the name: nothing proves that the first column may be stored in clear.
    db18.execute(
        "ALTER TABLE users ADD COLUMN email text", "INSERT INTO users (id, mail, email) VALUES (51, 'sesame', 'sesame')"
    )
    assert "[COLUMN_PROTECTED] another column of public.users had the name email before" in stopped(
        db18, tmp_path, config=config()
    )
    masks = {"masked": {**MASKS["masked"], "mail": "hashed"}}
    resync(ConnectionSettings(db18.dsn), Storage(str(tmp_path)), [USERS])
    replicate_once(db18, tmp_path, config=config(**masks))
    assert (51, hashed("sesame"), hashed("sesame")) in rows(tmp_path, "users", "id", "mail", "email")
    assert clear_files(tmp_path) == []


def test_a_restart_warns_of_a_dropped_table_that_the_settings_name(db18: Database, tmp_path: Path) -> None:
    for statement in TABLE:
        db18.execute(statement)
    replicate_once(db18, tmp_path, config=config())
    db18.execute("DROP TABLE users", "CREATE TABLE orders (id int PRIMARY KEY)", "INSERT INTO orders VALUES (1)")
    warnings = replicate_for_warnings(db18, tmp_path, config=config())
    assert "config: no table public.users is replicated, and it is not optional" in warnings
    assert rows(tmp_path, "orders", "id") == [(1,)]
    with pytest.raises(ConfigError, match=r"no table public\.users is replicated"):
        replicate_once(db18, tmp_path, config=config(history=True))


def test_a_renamed_table_is_stopped_until_the_settings_name_it(db18: Database, tmp_path: Path) -> None:
    for statement in TABLE:
        db18.execute(statement)
    optional = config(optional=True)
    replicate_once(db18, tmp_path, config=optional)
    db18.execute("ALTER TABLE users RENAME TO people", "UPDATE people SET email = 'sesame' WHERE id = 1")
    for _ in range(2):
        text = stopped(db18, tmp_path, config=optional)
        assert "it was public.users, or a partition of it, with columns that are masked or left out" in text
    # As `resync` does it, which gets no file.
    resync(db18.settings, Storage(str(tmp_path)), [TableName("public", "people")])
    stopped(db18, tmp_path, config=Config.of(read_known_settings(Storage(str(tmp_path))).tables))
    assert "and the settings by table do not name public.people" in stopped(
        db18, tmp_path, config=read_config({"tables": {}}, TableSettings())
    )
    replicate_once(db18, tmp_path, config=config("people"))
    assert (1, hashed("sesame")) in rows(tmp_path, "people", "id", "email")
    assert clear_files(tmp_path) == []


EXCHANGED = """
ALTER TABLE users RENAME email TO x;
ALTER TABLE users RENAME city TO email;
ALTER TABLE users RENAME x TO city;
INSERT INTO users (id, email, phone, secret, big, city) VALUES (%s, 'city', 'infinity', 'sesame', 'sesame', 'sesame');
UPDATE users SET email = 'other' WHERE id = 2
"""
"""Statements after which `city` is the column that has to be masked; the update does not send `big`."""


@pytest.mark.parametrize("when", ["it follows", "it loads for the first time", "it loads again"])
def test_columns_that_exchange_names_stop_their_table(db18: Database, tmp_path: Path, when: str) -> None:
    for statement in TABLE:
        db18.execute(statement)
    # A copy takes seconds, so that the changes meanwhile are buffered.
    options = {"config": config(history=True, append=True), "load_rate": None if when == "it follows" else 0.03}
    with replicate_meanwhile(db18, tmp_path, **options) as caught_up:
        if when != "it loads for the first time":
            caught_up()
        if when == "it loads again":
            db18.execute("ALTER TABLE users ADD COLUMN more int", "UPDATE users SET city = 'city'")
        if when != "it follows":
            eventually(lambda: any((tmp_path / "_logicalrep/pending").rglob("*.json")))
        db18.execute(EXCHANGED % 100)
        # The next catalog refresh is seconds away.
        eventually(lambda: State.read(Storage(str(tmp_path))).tables.get("public.users", NONE).state == "stopped")
        assert clear_files(tmp_path) == []
    assert "[COLUMN_PROTECTED] another column of public.users had the name email before" in stopped(
        db18, tmp_path, config=options["config"]
    )
    # Once somebody has asked for it, the columns are taken as the settings name them.
    assert resync(db18.settings, Storage(str(tmp_path)), [USERS]) is False
    masks = {"masked": {**MASKS["masked"], "city": "hashed"}}
    replicate_once(db18, tmp_path, config=config(**masks))
    assert (100, hashed("city"), hashed("sesame")) in rows(tmp_path, "users", "id", "email", "city")
    assert clear_files(tmp_path) == []


def test_a_detached_partition_is_stopped_until_the_settings_name_it(db18: Database, tmp_path: Path) -> None:
    db18.execute(
        "CREATE TABLE users (id int PRIMARY KEY, email text, phone date, secret text, big text) PARTITION BY RANGE (id)",
        "CREATE TABLE few PARTITION OF users FOR VALUES FROM (0) TO (10) PARTITION BY RANGE (id)",
        "CREATE TABLE leaf PARTITION OF few FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE many PARTITION OF users FOR VALUES FROM (10) TO (100)",
        "INSERT INTO users SELECT i, 'sesame', 'infinity', 'sesame', 'sesame' FROM generate_series(1, 20) AS i",
    )
    with replicate_meanwhile(db18, tmp_path, config=config()) as caught_up:
        caught_up()
        db18.execute("ALTER TABLE users DETACH PARTITION many", "UPDATE many SET email = 'sesame'")
        eventually(lambda: State.read(Storage(str(tmp_path))).tables.get("public.many", NONE).state == "stopped")
    # A sub-partitioned one, and its leaf, in another run.
    db18.execute("ALTER TABLE users DETACH PARTITION few", "ALTER TABLE few DETACH PARTITION leaf")
    text = stopped(db18, tmp_path, config=config())
    for name in ("many", "few", "leaf"):
        assert f"public.{name}: it was public.users, or a partition of it, with columns that are masked" in text
    tables = {"users": MASKS, "many": MASKS, "few": MASKS, "leaf": MASKS}
    replicate_once(db18, tmp_path, config=read_config({"tables": tables}, TableSettings()))
    assert len(rows(tmp_path, "many", "id")) == 11
    assert clear_files(tmp_path) == []


def test_rows_that_wait_on_the_disk_are_in_a_file_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    held, other = RowBuffer(), RowBuffer()
    batch = change_batch(relation(("id", "a")), [{"op": "insert", "after": {"id": "1", "a": "sesame"}}])
    sent = SentRelation.of(batch.relation, commit_lsn=1, ordinal=0, xid=1)
    changes = TableChanges([sent], [batch])
    for is_in_memory in (True, False, False):
        held.add(changes, in_memory=is_in_memory)
    held.add(TableChanges([sent]), in_memory=False)
    assert list(tmp_path.iterdir()) == []
    other.append(held)
    assert other.parts == [changes] * 3 + [TableChanges([sent], [])]
    assert list(tmp_path.iterdir()) == []


def test_other_masks_and_another_key_reload_the_table(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for statement in TABLE:
        db18.execute(statement)
    storage = Storage(str(tmp_path))
    replicate_once(db18, tmp_path, config=config(history=True, masked={"big": "hashed", "phone": "nulled"}))
    assert (1, "sesame1") in rows(tmp_path, "users~history", "id", "email")
    replicate_once(db18, tmp_path, config=config(history=True))
    # Versions from before have no value in a column that was not masked like this.
    assert set(rows(tmp_path, "users~history", "_is_current", "email")) == {
        (False, None),
        *((True, hashed(f"sesame{i}")) for i in range(1, 10)),
    }
    load = State.read(storage).tables["public.users"].load
    with monkeypatch.context() as other:
        other.setenv("LOGICALREP_MASK_KEY", KEY + ", changed")
        with pytest.raises(MaskKeyError, match="differs from the key of the hashed values"):
            list(verify(db18.settings, storage))
        replicate_once(db18, tmp_path, config=config(history=True))
        other.delenv("LOGICALREP_MASK_KEY")
        with pytest.raises(MaskKeyError, match="no key is in the environment variable LOGICALREP_MASK_KEY"):
            config()
        other.setenv("LOGICALREP_MASK_KEY", "short")
        with pytest.raises(MaskKeyError, match="too short a key"):
            config()
    assert State.read(storage).tables["public.users"].load != load
    assert (1, hashed("sesame1")) not in rows(tmp_path, "users", "id", "email")


def test_mistakes_in_masks_have_their_lines(db18: Database, tmp_path: Path) -> None:
    path = tmp_path / "masks.yaml"
    path.write_text(
        "tables:\n  users:\n    masked:\n      emial: hashed\n      id: nulled\n    left_out: [city, secrt]\n"
    )
    db18.execute(*TABLE)
    with pytest.raises(ConfigError) as raised:
        replicate_once(db18, tmp_path / "lake", config=read_config(path, TableSettings()))
    assert raised.value.description.split("\n")[1:] == [
        f"{path}:4: public.users has no published column emial; did you mean email?",
        f"{path}:5: id belongs to the key of public.users, which identifies rows: it can be hashed, but not nulled or left out",
        f"{path}:6: public.users has no published column secrt; did you mean secret?",
    ]
    path.write_text(
        "tables:\n  users:\n    masked: {a: hash, a: nulled, b: [x]}\n    left_out: [b, {}, b]\n  t: {masked: {c: nulled}, left_out: c}\n"
    )
    with pytest.raises(ConfigError) as raised:
        read_config(path, TableSettings())
    assert [line.removeprefix(f"{path}:") for line in raised.value.description.split("\n")[1:]] == [
        "2: users: the column b is both masked and left out: choose one of the two",
        "3: 'masked' of users has 'a' twice, first in line 3",
        "3: 'masked' of users, column a, is 'hash': it is hashed or nulled; did you mean hashed?",
        "3: 'masked' of users, column b, must be a text",
        "4: 'left_out' of users must be a text",
        "4: 'left_out' of users has 'b' twice",
        "5: t: the column c is both masked and left out: choose one of the two",
    ]


def test_changes_are_taken_only_with_the_columns_that_are_known() -> None:
    key = MaskKey.from_environment()
    settings = TableSettings(masked={"a": "hashed", "b": "nulled"}, left_out=("c",), mask_key=key.check)
    columns = ("id", "a", "b", "c")
    masking = Masking(settings, columns, key=key)
    batch = change_batch(
        relation(columns),
        [
            {"op": "insert", "after": {"id": "0", "a": "0", "b": "0", "c": "0"}},
            {"op": "insert", "after": {"id": "1", "a": "sesame", "b": "sesame", "c": "sesame"}},
            {"op": "truncate"},
            {"op": "update", "before": {"id": "1"}, "after": {"id": "2", "b": "0"}, "unchanged": ["a", "c"]},
            {"op": "delete", "before": {"id": "2"}},
        ],
    )
    (masked,) = masking.masked([batch.slice(1)])
    assert masked.relation.names == ("id", "a", "b")
    assert plain(masked) == [
        ("insert", None, {"id": "1", "a": hashed("sesame"), "b": None}),
        ("truncate", None, None),
        ("update", {"id": "1", "a": None, "b": None}, {"id": "2", "b": None}),
        ("delete", {"id": "2", "a": None, "b": None}, None),
    ]
    # Of a whole old row all values are masked.
    (whole,) = masking.masked(
        [change_batch(relation(columns, None), [{"op": "delete", "before": {"id": "1", "a": "x"}}])]
    )
    assert plain(whole) == [("delete", {"id": "1", "a": hashed("x"), "b": None}, None)]
    for names in ((*columns, "d"), ("id", "b", "c"), ("id", "b", "a", "c"), ("id", "a", "b")):
        with pytest.raises(NeedsResync, match="its changes have other columns"):
            masking.masked([batch, change_batch(relation(names), [{"op": "truncate"}])])
    with pytest.raises(NeedsResync, match="no longer exists"):
        Masking(settings, ("id", "a"), key=key).masked([change_batch(relation(("id", "a")), [{"op": "truncate"}])])
    with pytest.raises(NeedsResync, match="another key"):
        Masking(settings, columns, key=MaskKey(b"another key")).masked([batch])
    assert masking.masked([]) == []


def test_a_resync_without_the_stored_settings_is_refused(tmp_path: Path) -> None:
    """The defaults mask nothing."""
    storage = Storage(str(tmp_path))
    assert read_known_settings(storage) == StoredSettings()
    table = TableState("public/users", None, Lsn(0), None, 1)
    States(storage).write(State(tables={"public.users": table}))
    with pytest.raises(MalformedFileError, match=r"DESTINATION_DAMAGED.*run replicate with --config"):
        read_known_settings(storage)
