"""Destinations of other formats: every command refuses them, and takes none for a new one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import logicalrep
from logicalrep.cli.main import main
from logicalrep.pipeline.operate.dropping import drop
from logicalrep.pipeline.state.state import Identity, State, StateError
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.slots.errors import SlotError
from tests.pipeline.replicating import replicate_once
from tests.postgres.servers import Database

COMMANDS = (
    ["replicate", "--once", "--engine", "local"], ["check"], ["status"], ["status", "--json"], ["verify"],
    ["resync", "public.t"], ["resync", "public.t", "--where", "id < 5"], ["resync", "--all"],
    ["resync", "--all", "--new-server"], ["skip", "public.t", "0/10"], ["pause"], ["resume"], ["drop"],
    ["drop", "--delete-tables", "--yes"],
)  # fmt: skip
READERS: tuple[Callable[[Path], object], ...] = (
    lambda lake: logicalrep.read(lake, "public.t"),
    lambda lake: logicalrep.read(lake, "public.t", "2026-01-01T00:00:00Z"),
    lambda lake: logicalrep.at(lake, "2026-01-01T00:00:00Z"),
)
IDENTITY = {"slot": "s", "publication": "p", "system_identifier": 1, "database": "d"}
STATE: dict[str, object] = {"lsn": "0/10", "commit_timestamp": None, "tables": {}}
DESTINATIONS: Mapping[str, Mapping[str, object]] = {
    "other names": {
        "place.json": {"format": 1, **IDENTITY},
        "settings.json": {"format": 1, "others": {}, "tables": {}, "protected": {}},
        f"states/{7:020}.json": {"format": 2, "writer": "x", **STATE},
        "state.json": {"format": 2, "writer": "x", **STATE},
        "paused.json": {"since": "2026-01-01T00:00:00+00:00"},
    },
    "one state": {"place.json": {"format": 1, **IDENTITY}, "state.json": {"format": 1, **STATE}},
    "a later format": {"destination.json": {"format": 2, "shards": 5}, f"states/{7:020}.json": {"format": 2}},
    "no identity": {f"states/{7:020}.json": {"format": 1, "writer": "x", **STATE}},
}


def files(lake: Path) -> dict[str, bytes]:
    return {str(path.relative_to(lake)): path.read_bytes() for path in lake.rglob("*") if path.is_file()}


@pytest.mark.parametrize("content", DESTINATIONS.values(), ids=DESTINATIONS)
def test_every_command_refuses_a_destination_of_another_format(
    db18: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: Mapping[str, object]
) -> None:
    for path, value in content.items():
        file = tmp_path / "_logicalrep" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(value))
    contents = files(tmp_path)
    for command in COMMANDS:
        assert main([*command, "--dsn", db18.dsn, "--to", str(tmp_path)]) == 1, command
        assert "[DESTINATION_FORMAT]" in capsys.readouterr().err, command
    for read in READERS:
        with pytest.raises(StateError, match="DESTINATION_FORMAT"):
            read(tmp_path)
    assert files(tmp_path) == contents
    assert db18.value("SELECT count(*) FROM pg_replication_slots") == 0
    assert db18.value("SELECT count(*) FROM pg_publication") == 0


def test_a_temporary_file_of_a_killed_process_is_none_of_a_destination(tmp_path: Path) -> None:
    (tmp_path / "_logicalrep").mkdir()
    (tmp_path / "_logicalrep/.destination.json.7.8").touch()
    assert Identity.read(Storage(str(tmp_path))) is None


def test_an_interrupted_drop_can_be_run_again(db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    lake, whole = tmp_path / "lake", tmp_path / "whole"
    replicate_once(db18, lake)
    replicate_once(db18, lake)
    storage, delete, list_ = Storage(str(lake)), Storage.delete, Storage.list
    # A folder lists its files in any order.
    monkeypatch.setattr(Storage, "list", lambda storage, folder: sorted(list_(storage, folder), reverse=True))
    assert "_logicalrep/state.json" in storage.list("_logicalrep")
    lake.rename(whole)
    refused = 0
    for number in range(len(files(whole / "_logicalrep"))):
        deleted = list[str]()

        def delete_some(storage: Storage, path: str, limit: int = number, deleted: list[str] = deleted) -> None:
            if len(deleted) == limit:
                raise InterruptedError
            deleted.append(path)
            delete(storage, path)

        shutil.copytree(whole, lake)
        monkeypatch.setattr(Storage, "delete", delete_some)
        with pytest.raises(InterruptedError):
            drop(db18.settings, storage, deletes_tables=False)
        monkeypatch.setattr(Storage, "delete", delete)
        assert Identity.read(storage) is not None
        if State.read(storage).lsn:
            with pytest.raises(SlotError, match="SLOT_LOST"):
                replicate_once(db18, lake)
            refused += 1
        assert db18.value("SELECT count(*) FROM pg_replication_slots") == 0
        drop(db18.settings, storage, deletes_tables=False)
        assert storage.list("_logicalrep") == []
        shutil.rmtree(lake)
    assert refused >= 2
