"""Captures of packets, and what tshark reads of them with a dissector."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

TSHARK = shutil.which("tshark")

NEEDS_TSHARK = pytest.mark.skipif(TSHARK is None, reason="no tshark on PATH: make tshark (apt-get install tshark)")

_RAW_IP = 101
_CLIENT = 40000


Packets = Iterable[tuple[str, bytes]]
"""The payloads of a connection's packets, each with its sender."""


def pcap(*connections: Packets, port: int = 5432) -> bytes:
    """Return a capture of TCP connections, one after the other."""
    records = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, _RAW_IP)]
    for number, packets in enumerate(connections):
        sent = {"client": 1, "server": 1}
        for sender, payload in packets:
            records.append(_record(sender, payload, _CLIENT + number, port, sent))
            sent[sender] += len(payload)
    return b"".join(records)


def _record(sender: str, payload: bytes, client: int, port: int, sent: dict[str, int]) -> bytes:
    ends = [(b"\x0a\0\0\1", client, sent["client"]), (b"\x0a\0\0\2", port, sent["server"])]
    (source, source_port, sequence), (target, target_port, acknowledged) = ends if sender == "client" else ends[::-1]
    tcp = struct.pack(">HHIIBBHHH", source_port, target_port, sequence, acknowledged, 5 << 4, 0x18, 65535, 0, 0)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + len(payload), 0, 0, 64, 6, 0, source, target)
    packet = ip + tcp + payload
    return struct.pack("<IIII", 0, 0, len(packet), len(packet)) + packet


def tshark(dissector: Path, capture: bytes, *arguments: str) -> str:
    """Return what tshark prints of a capture."""
    file = dissector.with_suffix(".pcap")
    file.write_bytes(capture)
    command = [str(TSHARK), "-X", f"lua_script:{dissector}", "-r", str(file), *arguments]
    process = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    errors = [line for line in process.stderr.splitlines() if "root" not in line]
    if process.returncode or errors:
        raise AssertionError(process.stderr)
    return process.stdout


def dissected(dissector: Path, capture: bytes, *arguments: str) -> list[dict[str, Any]]:
    """Return the layers of each packet; a layer or a field that occurs several times is a list."""
    text = tshark(dissector, capture, "-T", "json", "--no-duplicate-keys", *arguments)
    return [packet["_source"]["layers"] for packet in json.loads(text)]
