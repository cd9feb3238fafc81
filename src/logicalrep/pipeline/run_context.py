"""The shared parts of a run."""

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
    """The facts and helpers of one run; constant once created."""

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
    """Retries what the destination refuses."""
    stop: threading.Event
    """Ends the run once it is set."""
    proven_before: Lsn | None = None
    """The LSN up to which the server provably has all commits that earlier processes read; None if it has all of them.

    It is the last checkpoint's LSN if the server was restarted since: the server may have been restored to that point.
    """

    @property
    def limits(self) -> Limits:
        """The limits and intervals of the run."""
        return self.storage.limits
