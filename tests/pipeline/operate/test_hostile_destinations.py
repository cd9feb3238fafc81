"""A destination that somebody else has changed: no command obeys it beyond what docs/how-to/rights.md says."""

from __future__ import annotations

import json
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from logicalrep.arrow.changes.change_batch import NEW, OLD
from logicalrep.arrow.changes.table_changes import TableChanges
from logicalrep.cli.main import main
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.operate.dropping import drop
from logicalrep.pipeline.state.destination_names import UnconfirmedNameError
from logicalrep.pipeline.state.requests import RequestedPart, request_part, request_resync, request_skip
from logicalrep.pipeline.state.state import Identity
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.tables.buffers import TableBuffers
from logicalrep.pipeline.tables.phases import Copy
from logicalrep.pipeline.tables.table import Table
from logicalrep.postgres.table_rows.conditions import parse_condition
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.comparison import find_differences
from tests.pipeline.reading import read_table
from tests.pipeline.replicating import replicate_once
from tests.pipeline.state.mutations import SQL, VALUES, mutations
from tests.postgres.servers import Database

T = TableName("public", "t")
TABLE = ("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t SELECT i, 'secret' FROM generate_series(1, 9) i")
SLOTS = "SELECT slot_name, confirmed_flush_lsn FROM pg_replication_slots WHERE database = current_database() ORDER BY 1"


@pytest.fixture(autouse=True)
def _engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logicalrep.pipeline.run.run.start_engine", lambda *_: nullcontext(SequentialEngine()))


@contextmanager
def edited(path: Path) -> Iterator[Any]:
    """Change the JSON of a file in this context."""
    content = json.loads(path.read_text())
    yield content
    path.write_text(json.dumps(content))


def names_of(folder: Path) -> Identity:
    identity = Identity.read(Storage(str(folder)))
    assert identity is not None
    return identity


@pytest.mark.parametrize("what", ["slot", "publication"])
def test_names_of_another_destination_are_not_used(
    db18: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    db18.execute(*TABLE)
    lake, other = tmp_path / "a" / "lake", tmp_path / "b" / "lake"
    replicate_once(db18, lake)
    replicate_once(db18, other)
    foreign = getattr(names_of(other), what)
    with edited(lake / "_logicalrep/destination.json") as place:
        place[what] = foreign
    db18.execute("UPDATE t SET v = 'more' WHERE id = 1")
    server_names = db18.rows(SLOTS), db18.rows("SELECT pubname FROM pg_publication ORDER BY 1")
    place_and_server = ["--dsn", db18.dsn, "--to", str(lake)]
    for command in (
        ["replicate", "--once"],
        ["resync", "--all"],
        ["resync", "--all", "--new-server"],
        ["resync", "public.t"],
        ["drop"],
        ["drop", "--delete-tables", "--yes"],
    ):
        capsys.readouterr()
        assert main([*command, *place_and_server]) == 1, command
        assert f"[NAME_UNCONFIRMED] {lake} names the {what} '{foreign}'" in capsys.readouterr().err
        assert (db18.rows(SLOTS), db18.rows("SELECT pubname FROM pg_publication ORDER BY 1")) == server_names
    replicate_once(db18, other)
    assert find_differences(db18.dsn, str(other), ["public.t"]) == {}


def test_names_that_are_given_or_moved_are_named_again(db18: Database, tmp_path: Path) -> None:
    db18.execute(*TABLE)
    lake, moved, names = tmp_path / "lake", tmp_path / "moved", {"slot": f"mine_{db18.name}", "publication": "mine"}
    replicate_once(db18, lake, **names)
    replicate_once(db18, lake, **names)
    with pytest.raises(UnconfirmedNameError, match=f"add --slot mine_{db18.name} --publication mine$"):
        replicate_once(db18, lake)
    options = [word for name, value in names.items() for word in (f"--{name}", value)]
    assert main(["resync", "--all", "--dsn", db18.dsn, "--to", str(lake), *options]) == 0
    lake.rename(moved)
    with pytest.raises(UnconfirmedNameError):
        drop(db18.settings, Storage(str(moved)), deletes_tables=False)
    assert main(["drop", "--dsn", db18.dsn, "--to", str(moved), *options]) == 0
    assert db18.rows(SLOTS) == []
    assert db18.value("SELECT count(*) FROM pg_publication") == 0


def test_a_mask_that_is_taken_off_at_the_destination_stays(
    db18: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db18.execute(*TABLE)
    lake, config = tmp_path / "lake", tmp_path / "settings.yaml"
    config.write_text("tables:\n  t:\n    masked: {v: nulled}\n")
    place_and_server = ["--dsn", db18.dsn, "--to", str(lake)]
    assert main(["replicate", "--once", "--config", str(config), *place_and_server]) == 0
    path = lake / "_logicalrep/settings.json"
    whole = path.read_text()
    capsys.readouterr()
    edits: list[dict[str, object]] = [
        {"protected": {}, "numbers": {}},
        {"tables": {}},
        {"tables": {}, "protected": {}, "numbers": {}},
    ]
    for edit in edits:
        path.write_text(json.dumps({**json.loads(whole), **edit}))
        paths = sorted(Storage(str(lake)).list("_logicalrep"))
        for command in (["resync", "public.t"], ["resync", "public.t", "--where", "id < 5"], ["resync", "--all"]):
            assert main([*command, *place_and_server]) == 1
            assert "[CONFIG_MISSING] columns of public.t are masked or left out" in capsys.readouterr().err
            # A later run does not load what was refused.
            assert sorted(Storage(str(lake)).list("_logicalrep")) == paths
        assert main(["resync", "--all", "--config", str(config), *place_and_server]) == 0
        assert read_table(str(lake / "public/t")).column("v").to_pylist() == [None] * 9
    assert not [file for file in lake.rglob("*.parquet") if b"secret" in file.read_bytes()]


COMMANDS: tuple[list[str], ...] = (
    ["status"], ["status", "--json"], ["verify"], ["resync", "public.t", "--where", "id < 5"], ["pause"], ["resume"],
    ["skip", "public.t", "0/5"], ["resync", "public.t"], ["replicate", "--once"], ["resync", "--all"],
    ["drop", "--delete-tables", "--yes"],
)  # fmt: skip
EXIT_CODES = {0, 1, 2, 3, 4, 5}


def lake_with_all_files(db: Database, lake: Path, format_: str) -> None:
    """Replicate into a new destination, with a file of each kind below `_logicalrep/`."""
    shutil.rmtree(lake, ignore_errors=True)
    for name, _ in db.rows(SLOTS):
        if str(name).startswith("logicalrep_lake"):
            db.execute(f"SELECT pg_drop_replication_slot('{name}')")
    for (name,) in db.rows("SELECT pubname FROM pg_publication WHERE pubname LIKE 'logicalrep%'"):
        db.execute(f"DROP PUBLICATION {name}")
    replicate_once(db, lake, format=format_)
    db.execute("UPDATE t SET v = 'again' WHERE id = 2")
    storage = Storage(str(lake))
    request_resync(storage, [T])
    request_part(storage, RequestedPart(T, parse_condition("id < 4 OR id BETWEEN 6 AND 7")))
    request_skip(storage, T, Lsn(5))
    storage.write("_logicalrep/paused.json", b'{"since": "2026-01-01T00:00:00+00:00"}')
    load = {"kind": "table", "folder": "public/t", "reason": "new table", "replaces": None, "begin": None}
    storage.write("_logicalrep/pending/public/t.json", json.dumps(load).encode())
    storage.write("_logicalrep/reloads/public/t.json", b'{"loads": [[1.5, "new table"]]}')


def mutated_destination(lake: Path, random_: random.Random) -> str:
    """Change one value of one file; return what was changed."""
    files = [path for path in (lake / "_logicalrep").rglob("*.json") if path.name != "state.json"]
    files += [*(lake / "public/t/_delta_log").glob("*.json"), *(lake / "public/t/metadata").glob("*.metadata.json")]
    path = random_.choice(sorted(files))
    lines = path.read_text().splitlines()
    number = random_.randrange(len(lines)) if "_delta_log" in str(path) else None
    content = json.loads(path.read_text() if number is None else lines[number])
    what, changed = random_.choice([*mutations(content, VALUES)])
    text = json.dumps(changed)
    path.write_text(text if number is None else "\n".join([*lines[:number], text, *lines[number + 1 :]]))
    return f"{path.relative_to(lake)}: {what}"


def run_all_commands(db: Database, tmp_path: Path, change: Callable[[Path], str], format_: str = "delta") -> None:
    """Run all commands on a changed destination: each ends with an exit code, and touches nothing else."""
    lake, secret = tmp_path / "lake", tmp_path / "outside" / "secret"
    lake_with_all_files(db, lake, format_)
    secret.parent.mkdir(exist_ok=True)
    secret.write_text("untouched")
    guard = f"SELECT slot_name, confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = 'guard_{db.name}'"
    guarded = db.rows(guard)
    what = change(lake)
    for command in COMMANDS:
        options = ["--format", format_] if command[0] == "replicate" else []
        try:
            code = main([*command, *options, "--dsn", db.dsn, "--to", str(lake)])
        except BaseException as error:
            raise AssertionError(f"{command} after {what}") from error
        assert code in EXIT_CODES, (command, what)
        assert db.value("SELECT is_called FROM ran") is False, (command, what)
        assert db.rows(guard) == guarded, (command, what)
        assert db.value("SELECT count(*) FROM pg_publication WHERE pubname = 'guard'") == 1, (command, what)
        assert db.value("SELECT count(*) FROM t") == 9, (command, what)
    assert secret.read_text() == "untouched", what
    assert sorted(path.name for path in tmp_path.iterdir()) in (["lake", "outside"], ["outside"]), what


def with_guards(db: Database) -> None:
    db.execute(
        *TABLE, "CREATE SEQUENCE ran", "CREATE PUBLICATION guard FOR TABLE t",
        "CREATE FUNCTION trap() RETURNS bigint LANGUAGE sql AS $$ SELECT nextval('public.ran') $$",
        f"SELECT pg_create_logical_replication_slot('guard_{db.name}', 'pgoutput')",
    )  # fmt: skip


CHANGED: dict[str, tuple[str, tuple[str | int, ...], Any]] = {
    "a slot": ("_logicalrep/destination.json", ("slot",), "guard_{name}"),
    "a publication": ("_logicalrep/destination.json", ("publication",), "guard"),
    "a folder": ("_logicalrep/pending/public/t.json", ("folder",), "../../outside"),
    "a database": ("_logicalrep/destination.json", ("database",), SQL),
}


@pytest.mark.parametrize(
    ("path", "keys", "value"),
    [
        pytest.param(*case, id=name, marks=() if name == "a folder" else pytest.mark.thorough)
        for name, case in CHANGED.items()
    ],
)
def test_no_command_obeys_a_changed_value(
    db18: Database, tmp_path: Path, path: str, keys: tuple[str | int, ...], value: Any
) -> None:
    with_guards(db18)

    def change(lake: Path) -> str:
        with edited(lake / path) as content:
            content[keys[0]] = value.format(name=db18.name) if isinstance(value, str) else value
        return f"{path} {keys}"

    try:
        run_all_commands(db18, tmp_path, change)
    finally:
        db18.execute(f"SELECT pg_drop_replication_slot('guard_{db18.name}')")


@pytest.mark.thorough
@pytest.mark.parametrize("format_", ["delta", "iceberg"])
@pytest.mark.parametrize("seed", range(20))
def test_no_command_obeys_a_changed_destination(db18: Database, tmp_path: Path, seed: int, format_: str) -> None:
    with_guards(db18)
    random_ = random.Random(seed)
    try:
        for _ in range(3):
            run_all_commands(db18, tmp_path, lambda lake: mutated_destination(lake, random_), format_)
    finally:
        db18.execute(f"SELECT pg_drop_replication_slot('guard_{db18.name}')")


def test_buffered_changes_are_masked_as_the_operator_says(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table whose description has lost its masks, and that seems to catch up after a load."""
    db18.execute(*TABLE)
    config = {"tables": {"t": {"masked": {"v": "nulled"}}}}
    replicate_once(db18, tmp_path, config=config)
    (path,) = (path for path in (tmp_path / "public/t/_delta_log").glob("*.json") if "metaData" in path.read_text())
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if "metaData" in line:
            properties = line["metaData"]["configuration"]
            table = json.loads(properties["logicalrep.table"])
            assert table["settings"].pop("masked") == {"v": "nulled"}
            properties["logicalrep.table"] = json.dumps({**table, "settings": {**table["settings"], "masked": {}}})
    path.write_text("\n".join(map(json.dumps, lines)))
    load = {"kind": "table", "folder": "public/t", "reason": "new table", "replaces": "another", "begin": None}
    Storage(str(tmp_path)).write("_logicalrep/pending/public/t.json", json.dumps(load).encode())
    db18.execute("UPDATE t SET v = 'later secret' WHERE id < 5")
    kept, was_kept = list[str](), threading.Event()
    append, apply = TableBuffers.append, TableBuffers.apply

    def append_and_note(self: TableBuffers, table: Table, changes: TableChanges, end: Lsn) -> None:
        kept.extend(str(batch.texts(side)) for batch in changes.batches for side in (OLD, NEW))
        was_kept.set()
        append(self, table, changes, end)

    def apply_later(self: TableBuffers, *arguments: Any) -> Copy:
        was_kept.wait(2)
        return apply(self, *arguments)

    monkeypatch.setattr(TableBuffers, "append", append_and_note)
    monkeypatch.setattr(TableBuffers, "apply", apply_later)
    replicate_once(db18, tmp_path, config=config)
    assert not [text for text in kept if "secret" in text]
    assert read_table(str(tmp_path / "public/t")).column("v").to_pylist() == [None] * 9
