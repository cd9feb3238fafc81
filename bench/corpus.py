"""The messages of all benchmarks: a capture of a real server, or similar messages from our encoder."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from logicalrep import Lsn, Oid, TimestampTz, TransactionId, v1
from logicalrep.captures.capture import Capture

_SHARED = Path(__file__).parents[2] / "shared" / "perf"


def messages(limit: int) -> tuple[str, list[bytes]]:
    """Return the source's name, and up to `limit` messages of protocol version 1, in order."""
    path = _SHARED / "v1.bin.gz"
    if path.exists():
        with Capture.open(path) as capture:
            return "capture of a server", [data for _, data in islice(capture, limit)]
    return "made by the encoder", _synthetic(limit)


def _synthetic(limit: int) -> list[bytes]:
    """Return transactions of a few rows in tables of 4, 8 and 20 columns."""
    messages: list[bytes] = []
    tables = {Oid(16400 + width): width for width in (4, 8, 20)}
    lsn = 0x1000000
    while len(messages) < limit:
        xid = TransactionId(700 + len(messages))
        moment = TimestampTz(848_000_000_000_000 + len(messages))
        lsn += 1000
        messages.append(v1.Begin(final_lsn=Lsn(lsn), commit_timestamp=moment, xid=xid).build())
        for oid, width in tables.items():
            if len(messages) < 25:
                messages.append(_relation(oid, width).build())
            for row in range(3):
                new = _row(width, len(messages) + row)
                messages.append(v1.Insert(relation_id=oid, new=new).build())
                messages.append(v1.Update(relation_id=oid, new=new).build())
            messages.append(v1.Delete(relation_id=oid, old_kind="K", old=_row(width, len(messages))).build())
        messages.append(v1.Commit(commit_lsn=Lsn(lsn), end_lsn=Lsn(lsn + 48), commit_timestamp=moment).build())
    return messages[:limit]


def _relation(oid: Oid, width: int) -> v1.Relation:
    columns = tuple(
        v1.Column(flags=int(index == 0), name=f"column_{index}", type_id=Oid(25), type_modifier=-1)
        for index in range(width)
    )
    return v1.Relation(
        relation_id=oid,
        namespace="public",
        name=f"table_{width}",
        replica_identity=v1.ReplicaIdentity.DEFAULT,
        columns=columns,
    )


def _row(width: int, seed: int) -> v1.TupleData:
    cells = [v1.Text(str(seed + index).encode() * (1 + index % 3)) for index in range(width - 1)]
    return v1.TupleData.of(*cells, v1.NullValue())
