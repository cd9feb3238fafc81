"""The settings of `logicalrep replicate`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from logicalrep.pipeline.config.config import Config
from logicalrep.pipeline.masks.mask_key import MaskKey
from logicalrep.pipeline.spec.table_settings import TableSettings
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.transactions.table_names import TableName

_PATIENCE_ONCE = 60.0


@dataclass(frozen=True, kw_only=True)
class ReplicateSettings:
    """A server, a destination, and how the one is kept like the other.

    Example:
        >>> ReplicateSettings(connection=ConnectionSettings("dbname=shop"), to="./lake", once=True)
    """

    connection: ConnectionSettings
    """The server; a `repr` leaves its password out."""
    to: str
    """The destination: a folder or an object store's URI."""
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of the object store, never stored and never shown."""
    publication: str | None = None
    """The publication; None for that of the destination, which is named after it."""
    slot: str | None = None
    """The slot; None for that of the destination, which is named after it."""
    failover: bool = False
    """Whether standbys keep the slot, so that it survives a failover; PostgreSQL 17."""
    tables: tuple[TableName, ...] = ()
    """The tables; none for all that can be replicated."""
    once: bool = False
    """Whether to end once all that had committed at the start is in the tables."""
    retry_timeout: float | None = None
    """The longest wait for a server that is away, in seconds; None for 60 with `once`, else for as long as it takes."""
    every: float = 10.0
    """The seconds between two commits of a table; 0 is as fast as it goes."""
    keep: float = 24.0
    """The hours for which old versions of a table can be read."""
    table_settings: TableSettings = field(default_factory=TableSettings)
    """The settings of tables that have none of their own."""
    config: Config = field(default_factory=Config)
    """The settings of tables that have some of their own."""
    mask_key: MaskKey | None = None
    """The key that hashes; None if no column is hashed."""
    load_sessions: int = 4
    """The most sessions that copy rows at the same time."""
    load_rate: float | None = None
    """The most bytes a second that a session copies; None for no bound."""
    listen: str | None = None
    """The address of the page and of the metrics, as `HOST:PORT` or `PORT`; None for neither."""

    @property
    def patience(self) -> float:
        """The longest wait for a server that is away, in seconds; infinity for as long as it takes."""
        if self.retry_timeout is not None:
            return self.retry_timeout
        return _PATIENCE_ONCE if self.once else math.inf

    def of(self, table: TableName) -> TableSettings:
        """Return a table's settings."""
        entry = self.config.entries.get(table)
        return self.table_settings if entry is None else entry.settings
