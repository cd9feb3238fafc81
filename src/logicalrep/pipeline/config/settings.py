"""The settings of a run of `replicate`: its options, and what is made of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any

from logicalrep.pipeline.config.config import Config
from logicalrep.pipeline.config.mask_key import MaskKey
from logicalrep.pipeline.config.options import OPTIONS, ReplicateOptions
from logicalrep.pipeline.config.reading import read_config
from logicalrep.pipeline.formats.catalog_settings import CatalogSettings
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.transactions.table_names import TableName

_PATIENCE_ONCE = 60.0


def shared_options(settings: TableSettings | ReplicateOptions) -> dict[str, Any]:
    """Return the options that give settings to all tables, by their names."""
    names = [settings_field.name for settings_field in fields(TableSettings) if settings_field.name in OPTIONS]
    return {name: getattr(settings, name) for name in names}


@dataclass(frozen=True)
class ReplicateSettings(ReplicateOptions):
    """A server, a destination, and how the one is kept like the other.

    Raises:
        OptionError: an option has an invalid value.
        ConfigError: `config` has mistakes; the text has all of them.
        MaskKeyError: columns are hashed, and the environment does not have their key.
        ConnectionSettingsError: libpq does not accept the DSN.

    Example:
        >>> ReplicateSettings("dbname=shop", "./lake", once=True)
    """

    connection: ConnectionSettings = field(init=False)
    """The server; a `repr` leaves its password out."""
    table_settings: TableSettings = field(init=False)
    """The settings of tables that have none of their own."""
    table_catalog: CatalogSettings | None = field(init=False)
    """The catalog that the tables are in; None without one."""
    by_table: Config = field(init=False)
    """The settings of tables that have some of their own."""
    mask_key: MaskKey | None = field(init=False)
    """The key that hashes; None if no column is hashed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        connection = self.dsn if isinstance(self.dsn, ConnectionSettings) else ConnectionSettings(self.dsn)
        shared = TableSettings(**shared_options(self))
        by_table = Config() if self.config is None else self.config
        if not isinstance(by_table, Config):
            by_table = read_config(by_table, shared)
        mask_key = MaskKey.wanted(entry.settings for entry in by_table.entries.values())
        catalog = CatalogSettings.of(self.catalog, self.catalog_options)
        values = {
            "table_catalog": catalog,
            "connection": connection,
            "table_settings": shared,
            "by_table": by_table,
            "mask_key": mask_key,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def patience(self) -> float:
        """The longest wait for a server that is away, in seconds; infinity for as long as it takes."""
        if self.retry_timeout is not None:
            return self.retry_timeout
        return _PATIENCE_ONCE if self.once else math.inf

    @property
    def limits(self) -> Limits:
        """The limits of a run."""
        return Limits() if self.memory is None else Limits().within(int(self.memory * 1e6))

    @property
    def load_bytes(self) -> float | None:
        """The most bytes a second that a session copies; None for no bound."""
        return self.load_rate * 1e6 if self.load_rate else None

    def of(self, table: TableName) -> TableSettings:
        """Return a table's settings."""
        entry = self.by_table.entries.get(table)
        # A destination has one format, whatever settings are given to a table.
        return self.table_settings if entry is None else replace(entry.settings, format=self.format)
