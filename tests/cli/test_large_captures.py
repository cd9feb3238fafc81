"""Captures, and messages in hex, that are small files of gigabytes: each is an error, within little memory."""

from __future__ import annotations

import gzip
import resource
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from logicalrep.captures import capture
from logicalrep.cli import main as commands
from logicalrep.cli.main import main
from tests.cli.capture_files import jsonl

_MEMORY = 1 << 30
_FRAME = bytes(8) + (200 << 20).to_bytes(4, "big")


def bomb(start: bytes, megabytes: int) -> Iterator[bytes]:
    """Yield a small gzip file of a start and so many zeros in hex."""
    packer = zlib.compressobj(9, wbits=31)
    yield packer.compress(start)
    for _ in range(megabytes):
        yield packer.compress(b"0" * (1 << 20))
    yield packer.flush()


def run_in_little_memory(*arguments: str, text: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-P", "-m", "logicalrep.cli.main", *arguments]
    limit = (_MEMORY, _MEMORY)
    return subprocess.run(
        command,
        input=text,
        capture_output=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit),
    )


LINES = {
    "a header": (b'{"format": "', 1),
    "a message": (jsonl([]) + b'{"lsn": "0/0", "data": "', 2),
    "spaces": (jsonl([]) + b"\n{", 3),
}


@pytest.mark.parametrize("command", ["decode", "changes"])
@pytest.mark.parametrize(("start", "number"), LINES.values(), ids=LINES)
def test_a_line_that_no_message_needs_is_refused_by_its_number(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    start: bytes,
    number: int,
) -> None:
    monkeypatch.setattr(capture, "LONGEST_MESSAGE", 100_000)
    path = tmp_path / "capture.gz"
    path.write_bytes(b"".join(bomb(start, 4)))
    assert main([command, str(path)]) == 1
    assert capsys.readouterr().err == (
        f"error: [CAPTURE_DAMAGED] {path}:{number}: the line is longer than a message of 100000 bytes, the longest that "
        "is read from a capture\n"
    )


def test_the_longest_message_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture, "LONGEST_MESSAGE", 100_000)
    message = b"M" + bytes(9) + b"x\0" + (99_984).to_bytes(4, "big") + b"y" * 99_984
    path = tmp_path / "capture.gz"
    path.write_bytes(gzip.compress(jsonl([]) + b'{"lsn": "0/0", "data": "%s"}\n' % message.hex().encode()))
    assert main(["decode", str(path)]) == 0
    framed = bytes(8) + len(message).to_bytes(4, "big") + message
    path.write_bytes(gzip.compress(framed))
    assert main(["decode", str(path)]) == 0
    capsys.readouterr()
    path.write_bytes(gzip.compress(bytes(8) + (100_001).to_bytes(4, "big") + bytes(5)))
    assert main(["decode", str(path)]) == 1
    assert "a message of 100001 bytes at byte 0 is longer than 100000 bytes" in capsys.readouterr().err


def test_a_message_in_hex_is_bounded(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "LONGEST_TEXT", 100)
    assert main(["inspect", "00" * 60]) == 2
    assert "[USAGE] the message is longer than" in capsys.readouterr().err


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("start", "megabytes"),
    [*((start, 1200) for start, _ in LINES.values()), (_FRAME, 200), (_FRAME, 100), (bytes(8) + b"\x30" * 4, 1200)],
    ids=[*LINES, "a frame", "half a frame", "a frame that is too long"],
)
@pytest.mark.parametrize("command", ["decode", "changes"])
def test_a_bomb_is_an_error_in_little_memory(tmp_path: Path, command: str, start: bytes, megabytes: int) -> None:
    path = tmp_path / "capture.gz"
    with path.open("wb") as file:
        file.writelines(bomb(start, megabytes))
    done = run_in_little_memory(command, str(path))
    assert done.returncode == 1
    assert done.stderr.startswith(b"error: "), done.stderr[-2000:]
    assert done.stderr.count(b"\n") == 1
