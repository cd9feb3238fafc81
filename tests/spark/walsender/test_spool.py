"""The folders of spools: no other user can write there, no link is followed, no file is overwritten or left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from logicalrep import Lsn
from logicalrep.spark.walsender.spool import SegmentRange, Spool
from logicalrep.spark.walsender.spool_folders import SpoolError, default_folder

SCHEMA = pa.schema([("n", pa.int64())])


def spool(folder: Path, slot: str = "s") -> Spool:
    return Spool(folder, slot, SCHEMA, 1)


def segment_of(written_spool: Spool) -> Path:
    written_spool.write(pa.record_batch({"n": [1, 2]}, SCHEMA), np.array([10, 20]))
    return written_spool.segments[-1].path


def rows(segment: Path) -> list[Any]:
    return [row["n"] for batch in SegmentRange(segment, Lsn(0), Lsn(30)).read() for row in batch.to_pylist()]


def as_a_link(folder: Path) -> None:
    folder.rename(folder.with_name("target"))
    folder.symlink_to(folder.with_name("target"))


def as_a_file(folder: Path) -> None:
    folder.rmdir()
    folder.touch()


NOT_OURS: dict[str, Callable[[Path], None]] = {
    "is a link or not a folder": as_a_link,
    r"can be written by others \(its mode is 0770\)": lambda folder: folder.chmod(0o770),
    r"can be written by others \(its mode is 1777\)": lambda folder: folder.chmod(0o1777),
}


def test_existing_links_and_folders_are_not_followed_or_overwritten(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("of the user")
    folder = tmp_path / "spool"
    for name in ("s-1", "s@host@1"):
        (folder / name).mkdir(parents=True)
        (folder / name / "lock").symlink_to(precious)
    folder.chmod(0o700)
    spool(folder).close()
    assert precious.read_text() == "of the user"


@pytest.mark.parametrize("reason", [*NOT_OURS, "file"])
def test_a_folder_that_other_users_can_write_is_refused(tmp_path: Path, reason: str) -> None:
    folder = tmp_path / "spool"
    folder.mkdir(0o700)
    NOT_OURS.get(reason, as_a_file)(folder)
    expected = reason if reason in NOT_OURS else "is a link or not a folder"
    with pytest.raises(SpoolError, match=rf"^\[SPOOL_UNSAFE\] the spool's folder {folder} {expected}"):
        spool(folder)


@pytest.mark.parametrize("reason", NOT_OURS)
def test_a_reader_refuses_a_spool_that_other_users_can_write(tmp_path: Path, reason: str) -> None:
    written_spool = spool(tmp_path / "spool")
    segment = segment_of(written_spool)
    assert rows(segment) == [1, 2]
    NOT_OURS[reason](written_spool.folder)
    with pytest.raises(SpoolError, match=rf"the spool's folder {written_spool.folder} {reason}"):
        rows(segment)


def test_a_folder_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written_spool = spool(tmp_path / "spool")
    segment = segment_of(written_spool)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    for use in (lambda: spool(tmp_path / "spool"), lambda: rows(segment)):
        with pytest.raises(SpoolError, match=rf"belongs to the user {user}, .* runs as the user {user + 1}\)"):
            use()


def test_a_segment_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    segment = segment_of(spool(tmp_path / "spool"))
    segment.rename(tmp_path / "elsewhere.arrow")
    segment.symlink_to(tmp_path / "elsewhere.arrow")
    with pytest.raises(OSError, match="symbolic links"):
        rows(segment)


def test_a_spool_that_is_not_seen(tmp_path: Path) -> None:
    written_spool = spool(tmp_path / "spool")
    segment = segment_of(written_spool)
    segment.unlink()
    with pytest.raises(SpoolError, match=r"^\[SEGMENT_GONE\].* was removed when its stream ended"):
        rows(segment)
    written_spool.close()
    with pytest.raises(
        SpoolError, match=rf"^\[SPOOL_NOT_SEEN\] .* folder {written_spool.folder}.* in the option 'spool'"
    ):
        rows(segment)
    with pytest.raises(SpoolError, match=r"^\[SPOOL_NOT_MADE\]"):
        spool(Path("/proc/spool"))


def test_each_user_has_a_folder_that_is_closed_to_other_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = default_folder()
    assert folder == tmp_path / f"logicalrep-{os.geteuid()}"
    old_umask = os.umask(0)
    try:
        written_spool = spool(folder)
        segment = segment_of(written_spool)
    finally:
        os.umask(old_umask)
    modes = [oct(path.stat().st_mode & 0o777) for path in (folder, written_spool.folder, segment)]
    assert modes == ["0o700", "0o700", "0o600"]
    written_spool.close()
    written_spool.close()
    assert list(folder.iterdir()) == []


LEFT_BEHIND = """
import os, sys
from pathlib import Path
from tests.spark.walsender.test_spool import segment_of, spool
segment_of(spool(Path(sys.argv[1]), "of_a_query_that_is_gone"))
os._exit(1)
"""


@pytest.mark.slow
def test_what_killed_processes_of_this_host_left_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    running = spool(folder, "running")
    subprocess.run([sys.executable, "-c", LEFT_BEHIND, str(folder)], check=False)
    [remaining] = folder.glob("of_a_query_that_is_gone@*")
    elsewhere = folder / "s@another.host@1"
    something = folder / "something-else"
    for other in (elsewhere, something):
        other.mkdir()
    started = spool(folder, "s")
    assert sorted(folder.iterdir()) == sorted([running.folder, started.folder, elsewhere, something])
    assert not remaining.exists()
    assert rows(segment_of(running)) == [1, 2]
