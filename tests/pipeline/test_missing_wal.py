"""WAL that somebody deleted under a slot: the error names a command that works, and `status` says that it is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from logicalrep.cli.main import main
from logicalrep.pipeline.operate.status import query_status
from logicalrep.pipeline.state.state import Identity
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.local_server import LocalServer
from logicalrep.postgres.peek import peek
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.slots.errors import MissingWalError, SlotError
from tests.pipeline.comparison import find_differences
from tests.pipeline.replicating import replicate_once
from tests.postgres.servers import Database, connect_writer, installation

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


def delete_files(server: LocalServer) -> None:
    files = sorted(file for file in (server.data / "pg_wal").iterdir() if file.is_file())
    for file in files[:2]:
        file.unlink()


def reset_wal(server: LocalServer) -> None:
    assert server.run("pg_resetwal", "-f", "-l", "000000010000000000000020", str(server.data)).returncode == 0


@pytest.mark.parametrize(
    ("major", "remove"),
    [(18, delete_files), *(pytest.param(major, reset_wal, marks=pytest.mark.thorough) for major in (16, 18))],
)
def test_missing_wal_is_a_lost_slot(
    tmp_path: Path, major: int, remove: object, capsys: pytest.CaptureFixture[str]
) -> None:
    lake, storage = tmp_path / "lake", Storage(str(tmp_path / "lake"))
    with LocalServer(installation(major), fsync="off") as server:
        db = Database(server, "postgres", major, connect_writer(server.dsn))
        db.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a')")
        replicate_once(db, lake)
        for number in range(3):
            db.execute(f"INSERT INTO t VALUES ({number + 10}, 'b')", "SELECT pg_switch_wal()")
        db.connection.close()
        server.stop()
        assert callable(remove)
        remove(server)
        server.start()
        db.reconnect()
        db.execute("DELETE FROM t WHERE id = 1")
        lost = query_status(db.settings, storage).lost
        assert lost is not None
        assert "lacks the WAL file 0000000000000001" in lost
        with pytest.raises(SlotError, match=r"\[SLOT_LOST\].*already been removed.*logicalrep resync --all"):
            replicate_once(db, lake)
        # A reader of the slot through SQL gets the same code.
        identity = Identity.read(storage)
        assert identity is not None
        options = PluginOptions(publication_names=(identity.publication,), proto_version=1)
        with pytest.raises(MissingWalError, match=r"\[SLOT_LOST\].*already been removed"):
            list(peek(db.connection, identity.slot, options))
        assert main(["resync", "--all", "--dsn", db.dsn, "--to", str(lake)]) == 0
        replicate_once(db, lake)
        assert query_status(db.settings, storage).lost is None
        assert find_differences(db.dsn, str(lake), ["public.t"]) == {}
        db.connection.close()
