"""A local server's folder is its own: an existing one is never used, and other users cannot open it."""

from __future__ import annotations

from pathlib import Path

import pytest

from logicalrep.postgres.local_server import Installation, LocalServer, ServerError
from tests.postgres.servers import start_server

NOWHERE = Installation(18, Path("/nowhere"))


@pytest.mark.parametrize("is_link", [False, True])
def test_an_existing_folder_is_not_used(tmp_path: Path, is_link: bool) -> None:
    """A server started by root would give it to another user, and remove it at the end."""
    folder = tmp_path / "of somebody"
    folder.mkdir(0o755)
    named = tmp_path / "link" if is_link else folder
    if is_link:
        named.symlink_to(folder)
    old_stat = folder.stat()
    with pytest.raises(ServerError, match=f"^.SERVER_NOT_STARTED. {named} already exists: name a new folder"):
        LocalServer(NOWHERE, named).create()
    new_stat = folder.stat()
    assert (new_stat.st_uid, new_stat.st_mode) == (old_stat.st_uid, old_stat.st_mode)


def test_what_is_written_is_no_link(tmp_path: Path) -> None:
    server = LocalServer(NOWHERE, tmp_path / "new")
    precious = tmp_path / "precious"
    precious.touch()
    (server.folder / "log").symlink_to(precious)
    with pytest.raises(OSError, match="symbolic links"):
        server.start()


@pytest.mark.postgres
def test_a_running_one_is_closed_to_other_users() -> None:
    """Every user who reaches its socket is its superuser."""
    assert start_server(18).folder.stat().st_mode & 0o077 == 0
