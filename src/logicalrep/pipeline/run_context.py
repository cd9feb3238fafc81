"""The parts that all of a run share."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from logicalrep.observe.observer import Observer
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines.engine import Engine
from logicalrep.pipeline.formats.stored_table import TableFormat
from logicalrep.pipeline.index.key_indexes import KeyIndexes
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.state.state import Identity
from logicalrep.pipeline.storage.patience import Patience
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.scalars import Lsn


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """The facts and the helpers of one run; it is made when all of them are there, and does not change."""

    settings: ReplicateSettings
    storage: Storage
    """The destination."""
    tables: TableFormat
    """The tables of the destination."""
    identity: Identity
    """The destination's slot and publication, and its server."""
    observer: Observer
    engine: Engine
    indexes: KeyIndexes
    """The indexes of the tables' keys."""
    patience: Patience
    """Repeats what the destination refuses."""
    stop: threading.Event
    """Ends the run once it is set."""
    proven_before: Lsn | None = None
    """The end of what the server is proven to have of all that earlier processes read; None if it has all of it.

    The proof ends with the last checkpoint if the server was restarted since: it may have been put back to then.
    """

    @property
    def limits(self) -> Limits:
        """What the run may hold in memory, and how often it does things."""
        return self.storage.limits
