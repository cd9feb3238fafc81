"""Batches to Arrow: the columnar decoder and wide tables beside `parse`, construct, pypgoutput and a bare copy."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.contenders import in_python, pypgoutput, structs
from bench.corpus import messages
from bench.measure import Contender, Row, consume, rates
from logicalrep import TransactionId, v1, v4
from logicalrep.arrow.table.table_decoder import TableDecoder
from logicalrep.captures.capture import Capture
from logicalrep_protocol.columnar import Session, decode_batch

_UNIT = "messages/s"
_ALL = 1 << 40
_LIMIT = 300_000
_WIDE = 30_000
_SHARED = Path(__file__).parents[2] / "shared" / "perf"

# The ratios to the peer with the least value that each is to reach.
_TARGETS = {("columnar, batches of 10,000", "pypgoutput"): 100.0, ("wide tables, typed", "pypgoutput"): 50.0}


def rows(rounds: int = 7) -> list[Row]:
    """Return the table's rows: medians of interleaved rounds in one process."""
    _, data = messages(_LIMIT)
    array = pa.array(data, pa.binary())
    _, streamed = streamed_messages(_LIMIT)
    streamed_array = pa.array(streamed, pa.binary())
    payload = np.frombuffer(b"".join(data), np.uint8)
    copied = np.empty_like(payload)
    version_1, version_4 = Session(version=1), Session(version=4, parallel=True)
    contenders = [
        Contender("copy of the bytes", len(data), lambda: np.copyto(copied, payload)),
        Contender("columnar, all in one batch", len(data), _decoder(array, version_1, _ALL)),
        Contender("columnar, batches of 10,000", len(data), _decoder(array, version_1, 10_000)),
        Contender("columnar, batches of 2,000", len(data), _decoder(array, version_1, 2_000)),
        Contender("columnar, version 4, streamed", len(streamed), _decoder(streamed_array, version_4, 10_000)),
        Contender("columnar, values as strings", len(data), _decoder(array, version_1, 10_000, values="string")),
        Contender("wide tables, strings", len(data), _wide(array, version_1, typed=False)),
        Contender("wide tables, typed", len(data), _wide(array, version_1, typed=True)),
        *_per_message(data),
    ]
    rates_by_name = rates(contenders, rounds)
    size = len(payload) / len(data)
    peer = "pypgoutput" if "pypgoutput" in rates_by_name else "parse"
    table = []
    for name, value in rates_by_name.items():
        ratio = value / rates_by_name[peer] if name != peer else None
        target = _TARGETS.get((name, peer))
        table.append(Row(name, value, _UNIT, ratio, f"{peer}:" if ratio is not None else "", target))
    table.append(
        Row("columnar, batches of 10,000: bytes", rates_by_name["columnar, batches of 10,000"] * size / 1e6, "MB/s")
    )
    for of in ("copy of the bytes", "parse"):
        ratio = rates_by_name["columnar, batches of 10,000"] / rates_by_name[of]
        table.append(Row(f"columnar to {of}", ratio, "times"))
    return table + _starts()


def streamed_messages(limit: int) -> tuple[str, list[bytes]]:
    """Return the source's name, and up to `limit` messages of version 4 with streaming = parallel, in order."""
    path = _SHARED / "v4.bin.gz"
    if path.exists():
        with Capture.open(path) as capture:
            return "capture of a server", [data for _, (_, data) in zip(range(limit), capture, strict=False)]
    return "made by the encoder", list(_streamed(messages(limit)[1]))


def _streamed(unstreamed: list[bytes]) -> list[bytes]:
    """Return the same rows in segments, one for each streamed transaction."""
    messages: list[bytes] = []
    xid = TransactionId(700)
    for data in unstreamed:
        if data[:1] == b"B":
            xid = v1.parse(data).xid  # type: ignore[union-attr,assignment]
            messages.append(v4.StreamStart(xid=xid, first_segment=True).build())
        elif data[:1] == b"C":
            messages.append(v4.StreamStop().build())
        else:
            messages.append(data[:1] + xid.to_bytes(4, "big") + data[1:])
    return messages


def _decoder(array: pa.Array, session: Session, size: int, **arguments: object) -> Callable[[], object]:
    def run() -> None:
        state = session
        for start in range(0, len(array), size):
            _, state = decode_batch(array[start : start + size], state, **arguments)  # type: ignore[arg-type]

    return run


def _wide(array: pa.Array, session: Session, *, typed: bool) -> Callable[[], object]:
    def run() -> None:
        wide = TableDecoder(session, typed=typed)
        for start in range(0, len(array), _WIDE):
            wide.decode(array[start : start + _WIDE])

    return run


def _per_message(data: list[bytes]) -> list[Contender]:
    """Return the contenders that make an object of each message, with fewer messages as they are slower."""
    sample, few = data[:20_000], data[:2_000]
    struct, peer = structs(), pypgoutput()
    contenders = [
        Contender("parse", len(sample), in_python(lambda: consume(map(v1.parse, sample)))),
        Contender("construct", len(few), lambda: consume(struct[message[0]].parse(message) for message in few)),
    ]
    if peer:
        contenders.append(
            Contender("pypgoutput", len(sample), lambda: consume(peer[message[0]](message) for message in sample))
        )
    return contenders


_START = """
import sys, time
start = time.perf_counter()
import pyarrow as pa
between = time.perf_counter()
from logicalrep_protocol.columnar import Session, decode_batch
imported = time.perf_counter()
decode_batch(pa.array([bytes.fromhex("4f000000000000000100")], pa.binary()), Session(version=1))
print(imported - between, time.perf_counter() - imported)
"""


def _starts() -> list[Row]:
    """Return the start-up times, in separate processes, and the peak memory of this process."""
    command = [sys.executable, "-P", "-c", _START]
    subprocess.run(command, check=True, capture_output=True)
    figures = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        Row("columnar, import beside pyarrow's", float(figures[0]) * 1000, "ms"),
        Row("columnar, first batch", float(figures[1]) * 1000, "ms"),
        Row("most memory of this benchmark", peak, "MiB"),
    ]
