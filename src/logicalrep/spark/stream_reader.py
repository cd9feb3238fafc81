"""The base of the stream readers of a slot: the driver's connection, the table's identity, the pace of the batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.types import StructType

from logicalrep.postgres.preflight.checks import ensure_slot
from logicalrep.postgres.server import Connection
from logicalrep.postgres.slots.slot import Slot, query_sent_end, query_slot
from logicalrep.postgres.timelines import WalPosition
from logicalrep.spark.offsets import Commits, Offset, offset_of
from logicalrep.spark.options import SourceOptions
from logicalrep.spark.peek.admission import AvailableNow, read_limit
from logicalrep.spark.peek.pace import Pace
from logicalrep.spark.server_connection import Driver, log_to_standard_error
from logicalrep.spark.typed_tables.table_identity import TableIdentity
from logicalrep.spark.worker import PromptReader
from logicalrep_runtime.scalars import Lsn

_Result = TypeVar("_Result")


class SlotStreamReader(PromptReader, AvailableNow, DataSourceStreamReader):
    """A stream reader of a slot, in Spark's driver; subclasses plan the batches, and read them in executors."""

    def __init__(
        self,
        options: SourceOptions,
        schema: StructType,
        shared: SlotStreamReader | None = None,
        *,
        locks: bool = True,
    ) -> None:
        """Create a reader.

        Args:
            options: the source's options.
            schema: the columns of the stream.
            shared: a reader of the same stream, whose connection and state this reader uses.
            locks: whether a separate connection locks the slot between queries.
        """
        super().__init__()
        self._options = options
        self._schema = schema
        self._slot = options.the_slot
        if shared is None:
            self._table = TableIdentity(options)
            self.driver = Driver(options, self._table.query, locks=locks)
            self._pace = Pace(options.target_seconds)
            self._commits = Commits()
        else:
            self._table, self.driver, self._pace = shared._table, shared.driver, shared._pace
            self._commits = shared._commits
        self.position: WalPosition | None = None
        """The newest planned offset that this process knows; None right after a start from a checkpoint."""
        # The end of the WAL up to which Trigger.AvailableNow reads.
        self._target: Lsn | None = None

    def getDefaultReadLimit(self) -> Any:
        return read_limit(self._options)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._sent_up_to()

    def stop(self) -> None:
        self.driver.stop()

    def run(self, action: Callable[[Connection], _Result]) -> _Result:
        log_to_standard_error()
        return self.driver.run(action)

    def _is_in_checkpoint(self, start: Lsn) -> bool:
        """Return whether Spark's checkpoint has the batches before `start`."""
        # With AvailableNow Spark writes the checkpoint before it asks for the next batch.
        return self._target is not None or self._commits.has(start)

    def _record_request(self, start: Mapping[str, object] | None) -> None:
        """Record that Spark asks for the batch from `start`: it has finished the previous batch."""
        self._pace.end_batch()
        if self.driver.monitor is not None:
            self.driver.monitor.record_request()
        if start is None and self.position is None:
            # For a new query Spark 4.0 and 4.1 ask for a batch without a start, before they call initialOffset.
            self.run(lambda connection: ensure_slot(connection, self._options.needs))

    def _offset(self, position: WalPosition) -> Offset:
        return offset_of(position, slot=self._slot, relation_id=self._table.relation_id)

    def _initial(self, connection: Connection) -> WalPosition:
        ensure_slot(connection, self._options.needs)
        return query_slot(connection, self._slot).confirmed

    def _query_slot(self) -> Slot:
        return self.run(lambda connection: query_slot(connection, self._slot))

    def _sent_up_to(self) -> Lsn:
        return self.run(lambda connection: query_sent_end(connection, self._slot))
