"""Reads the capture files: what a server sent in one session, message by message."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from logicalrep import Decoder
from tests.conftest import ROOT

COLLECTION = ROOT / "tests" / "captures"
"""What servers of all majors sent; `selection.txt` there names the part that quick tests read."""
_CODECS = {"UTF8": "utf-8", "LATIN1": "iso8859-1"}


@dataclass(frozen=True)
class Capture:
    """A session's messages, and what its header says of the session."""

    header: dict[str, Any]
    messages: tuple[bytes, ...]

    @property
    def version(self) -> int:
        return int(self.header["proto_version"])

    @property
    def parallel(self) -> bool:
        return self.header["options"].get("streaming") == "parallel"

    @property
    def two_phase(self) -> bool:
        return bool(self.header["slot_two_phase"])

    @property
    def encoding(self) -> str:
        return _CODECS[self.header["client_encoding"]]

    def decoder(self) -> Decoder:
        return Decoder(self.version, parallel=self.parallel, two_phase=self.two_phase, encoding=self.encoding)

    def with_state(self) -> Iterator[tuple[bool, bytes]]:
        """Each message with whether it lies between Stream Start and Stream Stop."""
        streaming = False
        for data in self.messages:
            yield streaming, data
            streaming = data[:1] == b"S" or (streaming and data[:1] != b"E")


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a compressed file, the header first."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def read(path: Path) -> Capture:
    """A capture file."""
    header, *lines = rows(path)
    assert header["format"] == "pgoutput-capture/1"
    assert header["messages"] == len(lines)
    return Capture(header, tuple(bytes.fromhex(line["data"]) for line in lines))


def selected() -> list[Path]:
    """The captures of the selection."""
    return [path for path in _selection() if _is_capture(path)]


def each_selected() -> list[pytest.ParameterSet]:
    """The captures of the selection as parameters; of a session that several servers had, all but one are thorough."""
    newest = {path.parts[-2:]: path for path in selected()}
    return [
        pytest.param(path, id=capture_name(path), marks=() if path in newest.values() else pytest.mark.thorough)
        for path in selected()
    ]


def capture_name(path: Path) -> str:
    """The name of a capture as in `selection.txt`, without its ending."""
    return "/".join(path.parts[-3:]).removesuffix(".jsonl.gz")


def collected() -> list[Path]:
    """All captures."""
    return [path for path in _collection() if _is_capture(path)]


def selected_raw() -> list[Path]:
    """The recorded conversations of the selection."""
    return [path for path in _selection() if _is_raw(path)]


def collected_raw() -> list[Path]:
    """All recorded conversations."""
    return [path for path in _collection() if _is_raw(path)]


def _collection() -> list[Path]:
    return sorted(COLLECTION.rglob("*.jsonl.gz"))


def _selection() -> list[Path]:
    return [COLLECTION / name for name in (COLLECTION / "selection.txt").read_text("utf-8").splitlines()]


def _is_capture(path: Path) -> bool:
    return path.name.endswith(".jsonl.gz") and not path.name.startswith("truth") and not _is_raw(path)


def _is_raw(path: Path) -> bool:
    return path.name.endswith(".raw.jsonl.gz")
