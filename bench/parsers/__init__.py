"""Parsers in other languages, where their toolchains are installed: they parse the same messages on demand."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.measure import Contender

_HERE = Path(__file__).parent
_BUILD = _HERE.parents[1] / "build" / "bench"
NODE, GO = "Node, pg-logical-replication", "Go, pglogrepl"


@contextmanager
def contenders(messages: Sequence[bytes]) -> Iterator[list[Contender]]:
    """Yield a contender for each parser that can be made; what cannot be is said in a line."""
    _BUILD.mkdir(parents=True, exist_ok=True)
    file = _BUILD / "messages"
    file.write_bytes(b"".join(struct.pack(">I", len(data)) + data for data in messages))
    running: list[subprocess.Popen[str]] = []
    peer_contenders = []
    try:
        for name, make in ((NODE, _node), (GO, _go)):
            try:
                command = make()
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"  {name} is left out: {error}")
                continue
            process = subprocess.Popen([*command, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            running.append(process)
            peer_contenders.append(Contender(name, len(messages), lambda process=process: _round(process)))
        yield peer_contenders
    finally:
        for process in running:
            process.kill()
            process.wait()


def _round(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    if not process.stdout.readline():
        raise RuntimeError(f"{process.args!r} ended")


def _node() -> list[str]:
    folder = _BUILD / "node"
    folder.mkdir(exist_ok=True)
    shutil.copy(_HERE / "parse.cjs", folder)
    if not (folder / "node_modules").is_dir():
        _run(
            "npm",
            "install",
            "--silent",
            "--no-audit",
            "--no-fund",
            "--prefix",
            str(folder),
            "pg-logical-replication@2.5",
        )
    return ["node", str(folder / "parse.cjs")]


def _go() -> list[str]:
    program = _BUILD / "go"
    _run("go", "build", "-C", str(_HERE / "go"), "-o", str(program))
    return [str(program)]


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
