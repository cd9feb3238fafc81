"""Reading a range of a slot in an executor; several of the server's sessions decode a large range in parallel."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from logicalrep.arrow.reading import committed_batches
from logicalrep.postgres.peek import peek_batches
from logicalrep.postgres.retries import TRANSIENT, Retries
from logicalrep.postgres.server import Connection, newest_protocol
from logicalrep.postgres.slots.copies import can_be_copied, create_copies
from logicalrep.postgres.slots.positions import check_not_passed, check_within_wal
from logicalrep.postgres.slots.slot import Slot, query_slot
from logicalrep.postgres.timelines import WalPosition
from logicalrep.spark.monitoring.monitor import CountsSender
from logicalrep.spark.monitoring.statistics import Counts
from logicalrep.spark.options import SourceOptions
from logicalrep.spark.peek.last_position import YieldedRows
from logicalrep.spark.schemas import row_form
from logicalrep.spark.server_connection import log
from logicalrep.spark.typed_tables.table_schema import with_catalog
from logicalrep_runtime.scalars import Lsn

WAL_OF_A_SESSION = 32 << 20
"""WAL per session in bytes: less does not repay the session's start."""

_LARGEST_PAGE = 64 << 10
"""The largest WAL page of a server in bytes; page sizes are powers of two."""


@dataclass
class SlotRange(InputPartition):
    start: WalPosition
    end: WalPosition
    relation_id: int | None = None
    counts_sender: CountsSender | None = None


def check_readable(connection: Connection, options: SourceOptions, start: WalPosition, end: WalPosition) -> Slot:
    """Return the slot; raise LostPositionError if it is past `start`, or the WAL lacks `start` or `end`."""
    slot = query_slot(connection, options.the_slot)
    for position in (start, end):
        check_within_wal(options.connection, slot, position)
    check_not_passed(slot.name, slot.confirmed.lsn, start.lsn)
    return slot


def read_slot(
    options: SourceOptions,
    schema: StructType,
    start: WalPosition | None,
    end: WalPosition,
    counts_sender: CountsSender | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield all commits from `start` (None: the slot's position) to before `end`; reconnect without repeating rows."""
    began = time.monotonic()
    yielded = YieldedRows()
    retries = Retries(options.retry_timeout)
    first = None if start is None else start.lsn
    while True:
        counts = Counts()
        try:
            with options.connection.connect() as connection:
                if start is None:
                    slot = query_slot(connection, options.the_slot)
                    if yielded.lsn is not None:
                        check_not_passed(slot.name, slot.confirmed.lsn, yielded.lsn)
                else:
                    slot = check_readable(connection, options, start, end)
                options = with_catalog(connection, options)
                decoded = decoded_range(connection, options, schema, slot, first, end.lsn, counts)
                for batch in counts.count_rows(decoded):
                    rest = yielded.take_new(batch)
                    if rest.num_rows:
                        retries.record_success()
                        yield rest
                if start is not None:
                    # A slot cannot move during a query; this finds a move between two queries.
                    slot = check_readable(connection, options, start, end)
                counts.report(slot, "read", "peek", first, end.lsn, time.monotonic() - began)
                if counts_sender is not None:
                    counts_sender.send(counts)
            return
        except TRANSIENT as error:
            retries.wait_or_raise(error)


def decoded_range(
    connection: Connection,
    options: SourceOptions,
    schema: StructType,
    slot: Slot,
    start: Lsn | None,
    end: Lsn,
    counts: Counts,
) -> Iterator[pa.RecordBatch]:
    plugin, form = options.plugin_options(newest_protocol(connection)), row_form(options, schema)
    first = slot.confirmed.lsn if start is None else start
    wanted = sessions_for(connection, options, slot, first, end)
    with create_copies(options.connection, slot.name, wanted - 1) as copies:
        sessions = 1 + len(copies)
        if sessions < wanted:
            log.info(
                "slot %s: the server has room for %d of %d sessions, which decode the batch",
                slot.name,
                sessions,
                wanted,
            )
        bounds = [page_at(first + (end - first) * part // sessions) for part in range(1, sessions)] + [end]
        # The copies' sessions begin to decode here, the slot's own when its messages are read.
        parts = [(start, bounds[0], peek_batches(connection, slot.name, plugin, bounds[0]))]
        for copy, (middle, upto) in zip(copies, pairwise(bounds), strict=True):
            parts.append((middle, upto, copy.decode(plugin, middle, upto)))
        for after, upto, batches in parts:
            counted = counts.count_messages(batches)
            yield from committed_batches(counted, plugin.decoder(), form, start=after, end=upto)


def page_at(lsn: int) -> Lsn:
    """Return the start of a WAL page, whatever its size: a cut within a page's header would be in both parts."""
    return Lsn(lsn - lsn % _LARGEST_PAGE)


def page_after(lsn: int) -> Lsn:
    return page_at(lsn + _LARGEST_PAGE)


def sessions_for(connection: Connection, options: SourceOptions, slot: Slot, start: Lsn, end: Lsn) -> int:
    size = end - start
    # Each session reads the WAL from the slot's restart_lsn on, a copy twice, and describes each table again.
    if options.relations or slot.redecoded_bytes(start) > size or not can_be_copied(connection, slot):
        return 1
    return max(min(options.decoding_sessions, size // WAL_OF_A_SESSION), 1)
