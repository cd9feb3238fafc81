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
    tables: TableFormat
    identity: Identity
    observer: Observer
    engine: Engine
    indexes: KeyIndexes
    patience: Patience
    stop: threading.Event
    """Ends the run once it is set."""
    proven_before: Lsn | None = None
    """The LSN up to which the server provably has all commits that earlier processes read (a restarted server may have
    been restored to it); None if it has all."""

    @property
    def limits(self) -> Limits:
        return self.storage.limits
