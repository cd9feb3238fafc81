"""Files below `_logicalrep/` with a changed value: replicate reads each file or raises an error that names it."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from logicalrep.arrow.changes.table_changes import TableChanges
from logicalrep.cli.main import main
from logicalrep.pipeline.buffer.change_buffer import ChangeBuffer
from logicalrep.pipeline.formats.iceberg.metadata import read_metadata
from logicalrep.pipeline.state.destination_names import UnconfirmedNameError, confirm_names, default_name
from logicalrep.pipeline.state.past_states import earliest_time, read_state
from logicalrep.pipeline.state.requests import read_paused_since, take_requests
from logicalrep.pipeline.state.state import Identity, State, States
from logicalrep.pipeline.state.stored_settings import StoredSettings
from logicalrep.pipeline.storage.storage import DamagedError, MalformedFileError, Storage
from logicalrep.pipeline.tables.reload_limiter import LoadedTooOftenError, ReloadLimiter
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.changes import change_batch, relation
from tests.pipeline.state.mutations import mutations
from tests.pipeline.state.stored_files import FILES, REQUESTED_PART

pytestmark = pytest.mark.slow


def _state(storage: Storage) -> object:
    state = State.read(storage)
    return [table.figures for table in state.tables.values()], earliest_time(storage)


READERS: dict[str, Callable[[Storage], object]] = {
    "_logicalrep/destination.json": Identity.read,
    "_logicalrep/states/00000000000000000002.json": _state,
    "_logicalrep/past/20260102T000000.000000Z.json": lambda storage: read_state(
        storage, datetime(2026, 1, 2, 12, tzinfo=UTC)
    ),
    "_logicalrep/settings.json": StoredSettings.read,
    "_logicalrep/pending/public/t.json": lambda storage: ChangeBuffer(storage).pending_loads(),
    "_logicalrep/reloads/public/t.json": lambda storage: ReloadLimiter(storage).add("public/t", "a reason"),
    "_logicalrep/paused.json": read_paused_since,
}


@pytest.mark.parametrize("path", READERS)
def test_a_changed_value_is_read_or_is_an_error(tmp_path: Path, path: str) -> None:
    storage, files = Storage(str(tmp_path)), [path]
    if "past" in path:
        # A later checkpoint is the last one.
        files.append("_logicalrep/states/00000000000000000002.json")
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(FILES[name])
    refused = 0
    # A state of the past is read as the last one is.
    for what, content in [*mutations(json.loads(FILES[path]))][:: 7 if "past" in path else 1]:
        (tmp_path / path).write_text(json.dumps(content))
        error = _error_of(READERS[path], storage)
        assert error is None or isinstance(error, LogicalRepError), f"{what}: {error!r}"
        assert error is None or isinstance(error, LoadedTooOftenError) or path in str(error), what
        refused += error is not None
    assert refused > 10


@pytest.mark.parametrize("command", [["verify"], ["resync", "public.t"]], ids=lambda command: command[0])
def test_a_checkpoint_with_an_invalid_name_of_a_table_is_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    storage, path = Storage(str(tmp_path)), "_logicalrep/states/00000000000000000002.json"
    Identity.claim(storage, slot="s", publication="p", system_identifier=1, database="d")
    for name in ("", "t", "Orders", "public.t, public.u", 'public."t"', "public.t'); --", "a.b.c"):
        content = json.loads(FILES[path])
        content["tables"][name] = content["tables"].pop("public.t")
        storage.write(path, json.dumps(content).encode())
        with pytest.raises(MalformedFileError, match=f"{path} is damaged: "):
            State.read(storage)
    assert main([*command, "--dsn", "host=127.0.0.1 port=1", "--to", str(tmp_path)]) == 1
    assert f"[DESTINATION_DAMAGED] {storage.uri_of(path)} is damaged" in capsys.readouterr().err


def _error_of(read: Callable[[Storage], object], storage: Storage) -> Exception | None:
    try:
        read(storage)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("content", [REQUESTED_PART, {"skip": ["public", "t", "0/6"]}, {"resync": [["public", "t"]]}])
def test_a_changed_request_is_one_or_is_deleted(tmp_path: Path, content: Any) -> None:
    storage, folder, refused = Storage(str(tmp_path)), tmp_path / "_logicalrep/requests", list[str]()
    folder.mkdir(parents=True)
    for what, changed in mutations(content):
        (folder / "x.json").write_text(json.dumps(changed))
        try:
            requests = take_requests(storage, refused.append)
        except Exception as error:
            raise AssertionError(what) from error
        assert (folder / "x.json").exists() == bool(requests), what
    assert len(refused) > 20
    assert not [text for text in refused if "object has no" in text or "not supported" in text]


def test_a_changed_file_of_buffered_changes_is_read_or_is_an_error(tmp_path: Path) -> None:
    buffer = ChangeBuffer(Storage(str(tmp_path)))
    row = {"op": "insert", "new": {"id": "1"}}
    buffer.append("public/t", TableChanges(batches=[change_batch(relation(("id",)), [row])]), Lsn(16))
    (path,) = (tmp_path / "_logicalrep/buffered/public/t").glob("*.parquet")
    assert [changes.num_rows for _, changes in buffer.changes("public/t")] == [1]
    table = pq.read_table(path)
    properties = table.schema.metadata
    named = {key: json.loads(value) for key, value in properties.items() if key.startswith(b"logicalrep.")}
    assert len(named) > 1
    content = path.read_bytes()
    damaged = [content[:-20], content[:40] + b"\xff" * 40 + content[80:], b"PAR1" + b"\0" * 100 + b"PAR1", b""]
    for key, value in named.items():
        for _, changed in mutations(value):
            text = json.dumps(changed).encode()
            out = BytesIO()
            pq.write_table(table.replace_schema_metadata({**properties, key: text}), out)
            damaged.append(out.getvalue())
    refused = 0
    for data in damaged:
        path.write_bytes(data)
        error = _error_of(lambda _: [*buffer.changes("public/t")], Storage(str(tmp_path)))
        assert error is None or isinstance(error, MalformedFileError), repr(error)
        refused += error is not None
    assert refused > 50


def test_metadata_of_an_iceberg_table_that_is_none_is_an_error(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    contents = {
        "v1.metadata.json": [b"{}", b"[1]", b'"\\ud800"', b'{"format-version": 2}', b"\xff", b""],
        "00001-x.gz.metadata.json": [b"{}", gzip.compress(b"{}"), gzip.compress(b"{}" * 99)[:-9], b"\x1f\x8b\x08" * 9],
    }
    for name, texts in contents.items():
        for data in texts:
            (tmp_path / name).write_bytes(data)
            with pytest.raises(MalformedFileError, match=f"{name} is damaged: ."):
                read_metadata(storage, name)


def test_a_pipe_and_a_large_file_are_refused(tmp_path: Path) -> None:
    storage, folder = Storage(str(tmp_path)), tmp_path / "_logicalrep"
    folder.mkdir()
    os.mkfifo(folder / "destination.json")
    with pytest.raises(MalformedFileError, match="it is not a regular file"):
        Identity.read(storage)
    with (folder / "settings.json").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(MalformedFileError, match="1,099,511,627,776 bytes"):
        StoredSettings.read(storage)


def test_no_link_leads_out_of_a_destination(tmp_path: Path) -> None:
    lake, outside = tmp_path / "lake", tmp_path / "outside"
    (lake / "_logicalrep").mkdir(parents=True)
    outside.mkdir()
    file = outside / f"{1:020}.json"
    file.write_text("{}")
    (lake / "_logicalrep/states").symlink_to(outside, target_is_directory=True)
    (lake / "file").symlink_to(file)
    (lake / "absent").symlink_to(outside / "absent")
    (lake / "own").write_bytes(b"own")
    storage = Storage(str(lake))
    uses: list[Callable[[], object]] = [
        lambda: storage.read("file"),
        lambda: storage.read(f"_logicalrep/states/{1:020}.json"),
        lambda: storage.write("_logicalrep/states/x", b""),
        lambda: storage.create("_logicalrep/states/x", b""),
        lambda: storage.delete(f"_logicalrep/states/{1:020}.json"),
        lambda: storage.create("file", b""),
        lambda: storage.list("_logicalrep/states"),
        lambda: storage.names("_logicalrep/states", ""),
        lambda: storage.copy("file", "copy"),
        lambda: storage.copy("own", "file"),
        lambda: storage.copy("own", "_logicalrep/states/x"),
        lambda: storage.remove_empty_folders("_logicalrep/states"),
        lambda: States(storage).write(State()),
    ]
    for use in uses:
        with pytest.raises(MalformedFileError, match="a link leads from it out of the destination"):
            use()
    with pytest.raises(DamagedError, match="a link leads from it out of the destination"), storage.open("file", 2):
        pass
    os.utime(file, (1, 1))
    listed = {"_logicalrep/states", "absent", "file", "own"}
    assert {path for path, time in storage.times("").items() if time > 1} == listed
    assert storage.names("", "") == ["absent", "file", "own"]
    storage.write("absent", b"")
    assert not (lake / "absent").is_symlink()
    storage.delete("file")
    assert [path.name for path in outside.iterdir()] == [file.name]
    # A destination that is a link itself, and links within it, lead nowhere else.
    (tmp_path / "link").symlink_to(lake, target_is_directory=True)
    (lake / "here").mkdir()
    (lake / "there").symlink_to(lake / "here", target_is_directory=True)
    Storage(str(tmp_path / "link")).write("there/x", b"1")
    assert (lake / "here/x").read_bytes() == b"1"
    (lake / "here/y").symlink_to("x")
    storage.copy("here/y", "copies/y")
    assert storage.read("copies/y") == b"1"
    assert storage.names("there", "") == ["x", "y"]
    (lake / "here/absent").symlink_to("z")
    assert not storage.create("here/absent", b"")


def test_the_default_name_is_of_one_location_alone(tmp_path: Path) -> None:
    lake, other = Storage(str(tmp_path / "a" / "lake")), Storage(str(tmp_path / "b" / "lake"))
    name, foreign = default_name(lake), default_name(other)
    assert name[:-16] == foreign[:-16] == "logicalrep_lake_"
    assert len(default_name(Storage(str(tmp_path / ("x" * 200))))) <= 63
    confirm_names(lake, Identity(name, name, 1, "d"), slot=None, publication=None)
    (tmp_path / "a" / "lake").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a" / "lake", target_is_directory=True)
    spellings = (f"{lake.uri}/", f"{lake.uri}/../lake", f"file://{lake.uri}", str(tmp_path / "link"))
    for spelling in (*spellings, os.path.relpath(lake.uri)):
        confirm_names(Storage(spelling), Identity(name, name, 1, "d"), slot=None, publication=None)
    for slot, publication in ((foreign, name), (name, foreign), ("mine", name), (name, ""), (name[:-1], name)):
        identity = Identity(slot, publication, 1, "d")
        with pytest.raises(UnconfirmedNameError, match=r"add --(slot|publication) "):
            confirm_names(lake, identity, slot=None, publication=None)
        confirm_names(lake, identity, slot=slot, publication=publication)
    with pytest.raises(UnconfirmedNameError, match=r"add --slot 'x; echo \$HOME' --publication mine$"):
        confirm_names(lake, Identity("x; echo $HOME", "mine", 1, "d"), slot=None, publication=None)
    s3 = default_name(Storage("s3://bucket/lake", {"aws_region": "x"}))
    confirm_names(
        Storage("s3a://bucket/lake", {"aws_region": "x"}), Identity(s3, s3, 1, "d"), slot=None, publication=None
    )
