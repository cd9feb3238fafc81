"""The comparison of one table: first sums of whole buckets of rows, then the rows of the buckets that differ.

Both sides keep changing; what was equal once is settled. A difference is proven if the destination's row, caught up,
differs between two readings of one untouched version of the server's row: PostgreSQL sends a commit before other
sessions see it. Without a server's row or a key, it is proven if no transaction has run in between, or after several
pairs of readings once all transactions of the first pair have ended. A row that changes all the time is equal if the
destination's row equals any of many readings of the server's row.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.pipeline.schema.key_texts import key_texts
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.verify.destination_rows import DestinationRows
from logicalrep.pipeline.verify.digests import (
    BUCKETS,
    Digests,
    Fingerprints,
    Hashes,
    Sums,
    buckets_of,
    digests_of,
    key_hashes,
)
from logicalrep.pipeline.verify.progress import DestinationProgress, UnsettledError
from logicalrep.pipeline.verify.server_rows import ServerRows
from logicalrep.pipeline.verify.verdicts import Difference, Verdict
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn

_ENOUGH_READINGS = 5
_FEW = 200
"""The most differing keys for which `verify` reads the server's rows continuously from the second reading on."""
_MOST_EXAMPLES = 10


class Comparison:
    def __init__(
        self,
        name: TableName,
        server: ServerRows,
        destination: DestinationRows,
        progress: DestinationProgress,
        *,
        patience: float,
        with_values: bool,
    ) -> None:
        """`patience`: the seconds after which rows that still differ are undecided."""
        self._name = name
        self._server = server
        self._destination = destination
        self._table, self._limits = destination.table, destination.storage.limits
        self._progress = progress
        self._patience = patience
        self._with_values = with_values
        self._deadline = 0.0
        self._rows = 0
        self._examples: list[Difference] = []

    def compare(self) -> Verdict:
        """Compare the table. Raises UnsettledError if the whole table is undecided."""
        servers, destinations = self._sums()
        self._rows = servers.rows
        differing = servers.differing(destinations)
        self._deadline = time.monotonic() + self._patience
        proven = unsettled = 0
        groups = list(_groups(differing, servers.counts + destinations.counts, self._limits.compared_rows))
        for number, buckets in enumerate(groups):
            of_group = self._settle(buckets)
            proven += of_group[0]
            unsettled += of_group[1]
            if proven:
                is_least = unsettled > 0 or number + 1 < len(groups) or of_group[2]
                return Verdict(self._name, "different", self._rows, proven, is_least, tuple(self._examples))
        if unsettled:
            reason = f"{unsettled:,} rows still differ after {self._patience:g} s; they may become equal"
            return Verdict(self._name, "undecided", self._rows, reason=reason)
        return Verdict(self._name, "equal", self._rows)

    def _sums(self) -> tuple[Sums, Sums]:
        stopping = threading.Event()

        def of_destination() -> Sums:
            sums = Sums()
            for rows in self._destination.all():
                if stopping.is_set():
                    break
                sums.add(digests_of(self._table, rows))
            return sums

        with ThreadPoolExecutor(1, thread_name_prefix="logicalrep-verify") as pool:
            destinations = pool.submit(of_destination)
            servers = Sums()
            try:
                for batch in self._server.all():
                    servers.add(digests_of(self._table, batch))
            except BaseException:
                stopping.set()
                raise
            return servers, destinations.result()

    def _settle(self, buckets: NDArray[np.int64]) -> tuple[int, int, bool]:
        """Return the numbers of proven and of unsettled rows in the buckets, and whether more rows may differ."""
        hashes, keys = self._differing(buckets)
        proven, unsettled, max_keys = 0, 0, self._limits.compared_keys
        for start in range(0, len(hashes), max_keys):
            end = start + max_keys
            of_slice = self._read_again(hashes[start:end], None if keys is None else keys.slice(start, max_keys))
            proven += of_slice[0]
            unsettled += of_slice[1]
            if proven:
                return proven, unsettled, end < len(hashes)
        return proven, unsettled, False

    def _differing(self, buckets: NDArray[np.int64]) -> tuple[Hashes, pa.Table | None]:
        """Return the sorted hashes of the differing keys in the buckets, and the keys if the table has a key."""
        is_wanted = np.zeros(BUCKETS, bool)
        is_wanted[buckets] = True
        sides = [_HeldRows(self._table, is_wanted), _HeldRows(self._table, is_wanted)]
        for batch in self._server.all():
            sides[0].add(pa.Table.from_batches([batch]))
        for rows in self._destination.all():
            sides[1].add(rows)
        hashes = np.unique(np.concatenate([side.digests.keys for side in sides]))
        if not len(hashes):
            return hashes, None
        fingerprints_of_sides = [Fingerprints.none(len(hashes)) for _ in sides]
        for fingerprints, side in zip(fingerprints_of_sides, sides, strict=True):
            fingerprints.add(hashes, side.digests)
        hashes = hashes[~fingerprints_of_sides[0].equal(fingerprints_of_sides[1])]
        if self._table.key is None:
            return hashes, None
        of_rows = np.concatenate([side.digests.keys for side in sides])
        keys = pa.concat_tables([side.keys for side in sides])
        ordered = np.argsort(of_rows, kind="stable")
        return hashes, keys.take(pa.array(ordered[np.searchsorted(of_rows[ordered], hashes)]))

    def _read_again(self, hashes: Hashes, keys: pa.Table | None) -> tuple[int, int]:
        """Read keys until each is equal or proven different; return the numbers of proven and of unsettled rows."""
        readings = np.zeros(len(hashes), np.int64)
        previous = self._server.read_keys(hashes, keys)
        began = np.full(len(hashes), previous.next)
        proven = rounds = 0
        # Rows whose difference is almost proven may take twice as long.
        last_deadline = self._deadline + self._patience
        while len(hashes):
            server_readings = [previous.fingerprints]
            reads_on = rounds > 0 and keys is not None and len(hashes) <= _FEW
            try:
                while_waiting = partial(self._add_reading, hashes, keys, server_readings) if reads_on else None
                self._wait(previous.lsn, last_deadline if readings.any() else self._deadline, while_waiting)
            except UnsettledError:
                if proven or rounds:
                    break
                raise
            destination, _ = self._destination.read_keys(hashes)
            current = self._server.read_keys(hashes, keys)
            old, new = previous.fingerprints, current.fingerprints
            is_equal = np.any([reading.equal(destination) for reading in (*server_readings, new)], axis=0)
            is_same = old.equal(new) & (old.versions == new.versions)
            readings = np.where(is_same, readings + 1, 0)
            is_sure = (readings >= _ENOUGH_READINGS) & (current.oldest >= began)
            is_sure |= previous.oldest == previous.next == current.next
            if keys is not None:
                is_sure |= (old.counts > 0) & (old.touched == 0)
            is_proven = ~is_equal & is_same & is_sure
            proven += _distance(new, destination, is_proven, has_key=keys is not None)
            self._show(hashes, keys, new, destination, is_proven)
            undecided = np.flatnonzero(~is_equal & ~is_proven)
            if time.monotonic() >= (last_deadline if readings[undecided].any() else self._deadline):
                return proven, len(undecided)
            hashes, readings, began = (
                hashes[undecided],
                readings[undecided],
                np.where(is_same, began, current.next)[undecided],
            )
            keys = None if keys is None else keys.take(pa.array(undecided))
            previous = replace(current, fingerprints=new.take(undecided))
            rounds += 1
        return proven, len(hashes)

    def _wait(self, lsn: Lsn, deadline: float, while_waiting: Callable[[], None] | None) -> None:
        self._progress.wait(self._name, self._table.relation.relation_id, lsn, deadline, while_waiting)

    def _add_reading(self, hashes: Hashes, keys: pa.Table | None, readings: list[Fingerprints]) -> None:
        readings.append(self._server.read_keys(hashes, keys).fingerprints)

    def _show(
        self,
        hashes: Hashes,
        keys: pa.Table | None,
        server: Fingerprints,
        destination: Fingerprints,
        is_proven: NDArray[np.bool_],
    ) -> None:
        """Add some of the rows that are proven to differ to the examples."""
        chosen = np.flatnonzero(is_proven)[: _MOST_EXAMPLES - len(self._examples)]
        if not len(chosen) or (keys is None and not self._with_values):
            return
        of_key = keys if keys is None else keys.take(pa.array(chosen))
        texts = {} if of_key is None else key_texts(self._table, of_key)
        values: list[dict[int, dict[str, str | None]]] = [{}, {}]
        if self._with_values:
            wanted = hashes[chosen]
            rows = self._server.read_keys(wanted, of_key, with_rows=True).rows
            values = [self._by_hash(pa.Table.from_batches(rows, self._table.schema) if rows else None)]
            destination_rows = self._destination.read_keys(wanted)[1]
            values.append(self._by_hash(pa.concat_tables(destination_rows) if destination_rows else None))
        for number, at in enumerate(chosen.tolist()):
            on_server, at_destination = int(server.counts[at]), int(destination.counts[at])
            self._examples.append(
                Difference(
                    "missing" if on_server > at_destination else "surplus" if on_server < at_destination else "changed",
                    {name: column[number] for name, column in texts.items()},
                    values[0].get(int(hashes[at])),
                    values[1].get(int(hashes[at])),
                )
            )

    def _by_hash(self, rows: pa.Table | None) -> dict[int, dict[str, str | None]]:
        if rows is None:
            return {}
        keys = digests_of(self._table, rows).keys.tolist()
        texts = {
            name: [None if value is None else str(value) for value in rows.column(name).to_pylist()]
            for name in self._table.names
        }
        return {key: {name: texts[name][number] for name in texts} for number, key in enumerate(keys)}


class _HeldRows:
    """The hashes and keys of one side's rows in the chosen buckets."""

    def __init__(self, table: TableSpec, is_wanted: NDArray[np.bool_]) -> None:
        self._table = table
        self._is_wanted = is_wanted
        self._digests: list[Digests] = []
        self._keys: list[pa.Table] = []

    def add(self, rows: pa.Table) -> None:
        if self._table.key is not None:
            # Most rows are in other buckets: their other columns need no hash.
            is_in_buckets = self._is_wanted[buckets_of(key_hashes(self._table, rows))]
            rows = rows.filter(pa.array(is_in_buckets))
            self._keys.append(rows.select(self._table.key_names))
        digests = digests_of(self._table, rows)
        is_in_buckets = self._is_wanted[digests.buckets]
        self._digests.append(Digests(digests.keys[is_in_buckets], digests.rows[is_in_buckets]))

    @property
    def digests(self) -> Digests:
        empty = np.empty(0, np.uint64)
        return Digests(
            np.concatenate([empty, *(digests.keys for digests in self._digests)]),
            np.concatenate([empty, *(digests.rows for digests in self._digests)]),
        )

    @property
    def keys(self) -> pa.Table:
        schema = pa.schema([self._table.schema.field(name) for name in self._table.key_names])
        return pa.concat_tables([schema.empty_table(), *self._keys])


def _groups(buckets: NDArray[np.int64], counts: NDArray[np.int64], max_rows: int) -> Iterator[NDArray[np.int64]]:
    ends = np.cumsum(counts[buckets])
    of_bucket = ends // max_rows
    for group in np.unique(of_bucket):
        yield buckets[of_bucket == group]


def _distance(server: Fingerprints, destination: Fingerprints, is_proven: NDArray[np.bool_], *, has_key: bool) -> int:
    if has_key:
        return int(is_proven.sum())
    return int(np.abs(server.counts - destination.counts)[is_proven].sum())
