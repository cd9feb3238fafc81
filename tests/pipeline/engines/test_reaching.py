"""The trial of a destination: tasks reach it, and one process alone makes a file."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from logicalrep.observe.observer import Observers
from logicalrep.options.kinds import OptionError
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines.engine import Engine, SequentialEngine
from logicalrep.pipeline.engines.local import LocalEngine
from logicalrep.pipeline.engines.reaching import UnreachedError, check_destination
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.state.state import StateError
from logicalrep.pipeline.storage.local_files import LocalFiles
from logicalrep.pipeline.storage.storage import Storage, StorageError
from tests.pipeline.comparison import find_differences
from tests.pipeline.replicating import TABLES, settings
from tests.postgres.servers import Database

pytestmark = pytest.mark.slow


def remaining_files(folder: Path) -> list[Path]:
    """Return the files that a trial has left."""
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_folder_of_this_machine_is_shared_by_its_processes(tmp_path: Path, is_shared: bool) -> None:
    with LocalEngine(1) as engine:
        check_destination(engine, Storage(str(tmp_path / "lake")), is_shared_folder=is_shared)
    assert remaining_files(tmp_path) == []


@contextmanager
def processes(folder: Path, monkeypatch: pytest.MonkeyPatch, *commands: str) -> Iterator[LocalEngine]:
    """Yield an engine whose processes first run shell commands; the last command is the beginning of their own line."""
    python = folder / "python"
    *lines, last = commands
    python.write_text("\n".join(("#!/bin/sh", *lines, f'exec {last} {sys.executable} "$@"\n')))
    python.chmod(0o755)
    with monkeypatch.context() as patch, LocalEngine(1) as engine:
        patch.setattr(sys, "executable", str(python))
        yield engine


needs_namespaces = pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run(["unshare", "-rnm", "true"], capture_output=True, check=False).returncode != 0,
    reason="the system lets no process have a network or mounts of its own",
)


@needs_namespaces
def test_a_task_with_a_folder_of_its_own_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    elsewhere = f"unshare -rm sh -c 'mount -t tmpfs none {lake}; exec \"$@\"' sh"
    with (
        processes(tmp_path, monkeypatch, elsewhere) as engine,
        pytest.raises(StateError, match=r"\[DESTINATION_NOT_SHARED\].* do not see each other's files"),
    ):
        check_destination(engine, Storage(str(lake)), is_shared_folder=True)
    assert remaining_files(lake) == []


@needs_namespaces
def test_a_task_that_cannot_write_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    unwritable = f"unshare -rm sh -c 'mount --bind {lake} {lake}; mount -o remount,bind,ro {lake}; exec \"$@\"' sh"
    with (
        processes(tmp_path, monkeypatch, unwritable) as engine,
        pytest.raises(UnreachedError, match=rf"a task on .* cannot read and write {lake}: .*Read-only file system"),
    ):
        check_destination(engine, Storage(str(lake)), is_shared_folder=True)
    assert remaining_files(lake) == []


@contextmanager
def start_giving_credentials() -> Iterator[str]:
    """Yield the URL at which a store's client gets its keys, as in a container of AWS."""

    class Credentials(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            keys = {"AccessKeyId": "key", "SecretAccessKey": "the secret", "Token": "token"}
            data = json.dumps(keys | {"Expiration": "2099-01-01T00:00:00Z"}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Write no line for each request."""

    with HTTPServer(("127.0.0.1", 0), Credentials) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/keys"
        server.shutdown()
        thread.join()


CREDENTIALS = "AWS_CONTAINER_CREDENTIALS_FULL_URI"


@pytest.mark.parametrize(
    "away",
    [
        pytest.param("unshare -rn", id="network", marks=needs_namespaces),
        pytest.param(f"env -u {CREDENTIALS} AWS_METADATA_ENDPOINT=http://127.0.0.1:9", id="credentials"),
    ],
)
def test_a_task_that_cannot_reach_a_store_is_reported(
    away: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver has the network, and an environment where a store's client finds keys that it requests anew."""
    pytest.importorskip("moto")
    from tests.pipeline.storage.stores import start_object_store

    token = tmp_path / "token"
    token.write_text("token")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(token))
    with start_object_store() as store, start_giving_credentials() as keys:
        monkeypatch.setenv(CREDENTIALS, keys)
        reached = {name: value for name, value in store.options.items() if "key" not in name}
        storage = Storage("s3://lake/shop", reached)
        with processes(tmp_path, monkeypatch, "env") as engine:
            check_destination(engine, storage, is_shared_folder=False)
        with (
            processes(tmp_path, monkeypatch, away) as engine,
            pytest.raises(UnreachedError, match=r"a task on .* cannot read and write s3://lake/shop: .*http://127.0.0"),
        ):
            check_destination(engine, storage, is_shared_folder=False)
        left_there = store.keys()
    assert not [key for key in left_there if "/shared/" in key]


def test_a_folder_on_which_two_processes_make_a_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def create(self: LocalFiles, path: str, data: bytes) -> bool:
        self.write(path, data)
        return True

    monkeypatch.setattr(LocalFiles, "create", create)
    with pytest.raises(StateError, match=r"\[DESTINATION_NOT_SHARED\].*two processes both created 64 of 64 new files"):
        check_destination(SequentialEngine(), Storage(str(tmp_path)), is_shared_folder=True)
    assert remaining_files(tmp_path) == []


def test_a_folder_that_cannot_make_a_file_by_one_alone_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a file system without hard links."""

    def link(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(StorageError, match=r"cannot refuse to replace a file.*no hard links") as raised:
        check_destination(SequentialEngine(), Storage(str(tmp_path)), is_shared_folder=True)
    assert not raised.value.may_pass
    assert remaining_files(tmp_path) == []


def test_an_answer_that_was_lost_is_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on NFS, which retries: the file that the retry finds is the file that the first try created."""
    os_link = os.link

    def link(source: Path, target: Path) -> None:
        os_link(source, target)
        raise FileExistsError(17, "File exists")

    storage = Storage(str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(os, "link", link)
        assert storage.create("one", b"1")
    assert not storage.create("one", b"2")
    assert storage.read("one") == b"1"


def test_a_shared_folder_is_tried_and_used(shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[bool] = []

    def check(engine: Engine, storage: Storage, *, is_shared_folder: bool) -> None:
        tried.append(is_shared_folder)
        check_destination(engine, storage, is_shared_folder=is_shared_folder)

    monkeypatch.setattr("logicalrep.pipeline.engines.start.check_destination", check)
    replicate_with(settings(shop, tmp_path, once=True, engine="local", shared_folder=True), Observers())
    assert tried == [True]
    assert find_differences(shop.dsn, str(tmp_path), TABLES) == {}


def test_a_store_is_no_shared_folder() -> None:
    with pytest.raises(OptionError, match="shared_folder"):
        ReplicateSettings("dbname=x", "s3://lake/shop", shared_folder=True)
