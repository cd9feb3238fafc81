"""The memory for a large streamed transaction: the benchmark encodes one, assembles it, and reads its changes.

    python bench/streamed_memory.py [--size GIB] [--row BYTES] [--directory FOLDER] [--limit MIB]

Prints one JSON object; exits with 1 if the peak of the process's memory exceeds the limit (300 MiB). The changes go to
a temporary file as large as the transaction.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Iterator

from logicalrep import Decoder, Lsn, Oid, TimestampTz, TransactionId, v2
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.transaction import Transaction
from logicalrep_protocol.v1 import Column, ReplicaIdentity, Text, TupleData

GIB = 1 << 30
MIB = 1 << 20
XID = TransactionId(700)
ROWS_IN_A_SEGMENT = 1000


def encoded(size: int, row: int) -> Iterator[bytes]:
    """Yield a streamed transaction of `size` bytes; every tenth segment is a subtransaction that is rolled back."""
    columns = tuple(
        Column(flags=int(name == "id"), name=name, type_id=Oid(25), type_modifier=-1) for name in ("id", "v", "w")
    )
    sent = 0
    segment = 0
    while sent < size:
        segment += 1
        yield v2.StreamStart(xid=XID, first_segment=segment == 1).build()
        relation = v2.Relation(
            xid=XID,
            relation_id=Oid(1),
            namespace="s",
            name="t",
            replica_identity=v2.ReplicaIdentity(ReplicaIdentity.DEFAULT),
            columns=columns,
        )
        if segment == 1 or segment % 10 == 1:
            yield relation.build()
        subxid = TransactionId(XID + segment)
        for number in range(ROWS_IN_A_SEGMENT):
            value = f"{segment}-{number}".encode()
            new = TupleData.of(Text(value), Text(value.ljust(row // 2, b"v")), Text(value.ljust(row // 2, b"w")))
            data = v2.Insert(xid=subxid, relation_id=Oid(1), new=new).build()
            sent += len(data)
            yield data
        yield v2.StreamStop().build()
        if segment % 10 == 0:
            yield v2.StreamAbort(xid=XID, subxid=subxid).build()
    yield v2.StreamCommit(xid=XID, commit_lsn=Lsn(1000), end_lsn=Lsn(1040), commit_timestamp=TimestampTz(0)).build()


def peak_memory() -> int:
    """Return the peak memory of this process, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", type=float, default=2.0, help="size of the transaction, in GiB")
    parser.add_argument("--row", type=int, default=1000, help="size of a row, in bytes")
    parser.add_argument("--directory", help="folder of the temporary file")
    parser.add_argument("--limit", type=int, default=300, help="limit of the process's memory, in MiB")
    arguments = parser.parse_args()

    old_peak = peak_memory()
    began = time.perf_counter()
    decoder = Decoder(2)
    size = sent = 0
    transaction = None
    with Assembler(directory=arguments.directory) as assembler:
        for data in encoded(int(arguments.size * GIB), arguments.row):
            size += len(data)
            sent += 1
            for event in assembler.feed(decoder.decode(data), Lsn(sent)):
                assert isinstance(event, Transaction)
                transaction = event
    assembled = time.perf_counter()
    assert transaction is not None
    on_disk = transaction.changes.spilled
    changes = 0
    with transaction:
        for change in transaction.changes:
            assert change.ordinal == changes
            changes += 1
        assert changes == len(transaction.changes)
    finished = time.perf_counter()
    peak = peak_memory()
    print(
        json.dumps(
            {
                "bytes": size,
                "messages": sent,
                "changes": changes,
                "bytes_on_disk": on_disk,
                "peak_mib_before": round(old_peak / MIB, 1),
                "peak_mib": round(peak / MIB, 1),
                "seconds_to_put_together": round(assembled - began, 1),
                "seconds_to_read": round(finished - assembled, 1),
            }
        )
    )
    return int(peak > arguments.limit * MIB)


if __name__ == "__main__":
    sys.exit(main())
