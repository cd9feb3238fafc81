"""Files of a destination that somebody changed: each is an error with its name, and none leads out of the destination.

A new destination is for its owner alone."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from logicalrep.cli.main import main
from logicalrep.pipeline.buffer.change_buffer import ChangeBuffer
from logicalrep.pipeline.formats.delta.delta_log import DeltaLog
from logicalrep.pipeline.state.requests import Request, read_paused_since, request_resync, request_skip, take_requests
from logicalrep.pipeline.state.state import Identity, State
from logicalrep.pipeline.state.stored_settings import StoredSettings
from logicalrep.pipeline.storage.storage import MalformedFileError, Storage
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.replicating import replicate_once
from tests.pipeline.stored import new_log
from tests.postgres.servers import Database

_STATE = '{"format": 1, "lsn": "0/1", "commit_timestamp": null, "tables": {"a.b": {"folder": %s}}}'
FILES: dict[str, tuple[str, Callable[[Storage], object], tuple[str, ...]]] = {
    "the state": (
        "_logicalrep/state.json",
        State.read,
        (
            "[",
            "[]",
            "{}",
            "null",
            '{"format": 1}',
            '{"format": 1, "lsn": 1, "tables": []}',
            "[" * 100_000,
            *(_STATE % folder for folder in ('"../outside"', '"/etc"', '""', '"a/../../b"', '"a\\u0000"', "7", "null")),
        ),
    ),
    "the last state": (
        f"_logicalrep/states/{7:020}.json",
        State.read,
        ("[", '{"format": 1}', _STATE % '"../outside"', (_STATE % '"t"').replace('"0/1"', '"x"')),
    ),
    "a copy of states that are gone": (
        "_logicalrep/state.json",
        State.read,
        ('{"format": 1, "writer": "x", "lsn": "0/1", "commit_timestamp": null, "tables": {}}',),
    ),
    "the identity": (
        "_logicalrep/destination.json",
        Identity.read,
        ("", "{", '{"format": 1}', '{"format": 1, "more": 2}'),
    ),
    "the settings": ("_logicalrep/settings.json", StoredSettings.read, ("x", '{"format": 1, "defaults": 3}')),
    "a pause": ("_logicalrep/paused.json", read_paused_since, ("", "[]", "{}")),
    "a pending load": (
        "_logicalrep/pending/public/t.json",
        lambda storage: ChangeBuffer(storage).pending_loads(),
        ("[", "[]", '{"kind": "table", "folder": "../t", "reason": ""}', '{"kind": "others", "folder": "public/t"}'),
    ),
    "buffered changes": (
        "_logicalrep/buffered/public/t/0000000000000001-0000000000000000.parquet",
        lambda storage: list(ChangeBuffer(storage).changes("public/t")),
        ("", "PAR1"),
    ),
    "a name of buffered changes": (
        "_logicalrep/buffered/public/t/none.parquet",
        lambda storage: list(ChangeBuffer(storage).changes("public/t")),
        ("",),
    ),
}


@pytest.mark.parametrize(("path", "read", "contents"), FILES.values(), ids=FILES)
def test_a_malformed_file_is_an_error_with_its_name(
    tmp_path: Path, path: str, read: Callable[[Storage], object], contents: tuple[str, ...]
) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    for content in contents:
        file.write_text(content)
        with pytest.raises(MalformedFileError, match=rf"\[DESTINATION_DAMAGED\] .*{path} is damaged: ."):
            read(Storage(str(tmp_path)))


def test_a_request_is_read(tmp_path: Path) -> None:
    storage, table = Storage(str(tmp_path)), TableName("public", "t")
    request_resync(storage, [table])
    request_skip(storage, table, Lsn("1/2"))
    requests = {request for _, request in take_requests(storage, pytest.fail)}
    assert requests == {Request(resync=(table,)), Request(skip=(table, Lsn("1/2")))}


@pytest.mark.parametrize("path", ["../../outside.parquet", "/outside.parquet"])
def test_upkeep_deletes_no_file_that_a_changed_log_names(tmp_path: Path, path: str) -> None:
    storage, outside = Storage(str(tmp_path / "lake")), tmp_path / "outside.parquet"
    outside.write_text("mine")
    log = new_log(storage, ("id",))
    stats = json.dumps({"numRecords": 1})
    added = {"path": path, "partitionValues": {}, "size": 4, "modificationTime": 0, "dataChange": True, "stats": stats}
    removed = {"path": path, "deletionTimestamp": 0, "dataChange": True, "size": 4}
    folder = tmp_path / "lake/public/t"
    # A removed file is forgotten; an existing file makes the table unreadable.
    (folder / "_delta_log" / f"{log.version + 1:020}.json").write_text(json.dumps({"remove": removed}) + "\n")
    opened = DeltaLog.open(storage, "public/t")
    assert opened is not None
    opened.maintain(0)
    (folder / "_delta_log" / f"{log.version + 2:020}.json").write_text(json.dumps({"add": added}) + "\n")
    with pytest.raises(MalformedFileError, match=r"public/t/_delta_log is damaged: .*outside\.parquet"):
        DeltaLog.open(storage, "public/t")
    assert outside.read_text() == "mine"


@pytest.mark.parametrize("name", ["_last_checkpoint", "_removed.json"])
def test_a_malformed_file_of_a_table_is_an_error_with_its_name(tmp_path: Path, name: str) -> None:
    storage = Storage(str(tmp_path))
    log = new_log(storage, ("id",))
    log.write_checkpoint()
    (file,) = tmp_path.rglob(name)
    file.write_text("[")

    def use() -> None:
        opened = DeltaLog.open(storage, "public/t")
        assert opened is not None
        opened.maintain(24)

    with pytest.raises(MalformedFileError, match=rf"{name} is damaged"):
        use()


def test_drop_deletes_nothing_of_others(shop: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake, outside = tmp_path / "lake", tmp_path / "outside"
    drop = ["drop", "--delete-tables", "--yes", "--dsn", shop.dsn, "--to", str(lake)]
    replicate_once(shop, lake)
    write_deltalake(str(outside), pa.table({"a": [1]}))
    write_deltalake(str(lake / "of_others"), pa.table({"a": [1]}))
    last = max((lake / "_logicalrep/states").iterdir())
    state = last.read_text()
    last.write_text(state.replace('"public/orders"', '"../outside"'))
    assert main(drop) == 1
    assert f"{last.name} is damaged" in capsys.readouterr().err
    assert shop.value("SELECT count(*) FROM pg_publication") == 1
    last.write_text(state.replace('"public/orders"', '"of_others"'))
    assert main(drop) == 0
    assert [path.name for path in lake.iterdir()] == ["of_others"]
    assert all(list(folder.glob("*.parquet")) for folder in (outside, lake / "of_others"))


def test_a_new_place_is_for_its_owner_alone_and_an_old_one_stays_as_it_is(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "above" / "new"
    old.mkdir()
    old.chmod(0o755)
    for folder in (old, new):
        Storage(str(folder)).write("public/t/part", b"")
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (old, new)] == [0o755, 0o700]
    assert (tmp_path / "above").stat().st_mode & 0o077
