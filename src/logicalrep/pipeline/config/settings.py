"""The settings of a run of `replicate`: its options, and values derived from them."""

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
    names = [settings_field.name for settings_field in fields(TableSettings) if settings_field.name in OPTIONS]
    return {name: getattr(settings, name) for name in names}


@dataclass(frozen=True)
class ReplicateSettings(ReplicateOptions):
    """The server, the destination and the options of a run.

    Raises:
        OptionError: an option has an invalid value.
        ConfigError: `config` has mistakes; the text lists all of them.
        MaskKeyError: columns are hashed, and the environment does not have their key.
        ConnectionSettingsError: libpq does not accept the DSN.

    Example:
        >>> ReplicateSettings("dbname=shop", "./lake", once=True)
    """

    connection: ConnectionSettings = field(init=False)
    """The server; its `repr` omits the password."""
    table_settings: TableSettings = field(init=False)
    table_catalog: CatalogSettings | None = field(init=False)
    by_table: Config = field(init=False)
    mask_key: MaskKey | None = field(init=False)
    """The key for hashed columns; None if no column is hashed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        connection = self.dsn if isinstance(self.dsn, ConnectionSettings) else ConnectionSettings(self.dsn)
        shared = TableSettings(**shared_options(self))
        by_table = Config() if self.config is None else self.config
        if not isinstance(by_table, Config):
            by_table = read_config(by_table, shared)
        mask_key = MaskKey.wanted(entry.settings for entry in by_table.entries.values())
        catalog = CatalogSettings.of(self.catalog, self.catalog_options, does_upkeep=self.upkeep == "all")
        if catalog is not None:
            catalog.refuse_other_format(self.format)
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
        """The longest wait for a server that is away, in seconds; infinity without a bound."""
        if self.retry_timeout is not None:
            return self.retry_timeout
        return _PATIENCE_ONCE if self.once else math.inf

    @property
    def limits(self) -> Limits:
        limits = Limits()
        return limits if self.memory is None else limits.within(int(self.memory * 1e6))

    @property
    def load_bytes(self) -> float | None:
        """The most bytes a second that a session copies; None for no bound."""
        return self.load_rate * 1e6 if self.load_rate else None

    def of(self, table: TableName) -> TableSettings:
        entry = self.by_table.entries.get(table)
        # A destination has one format, whatever a table's settings say.
        return self.table_settings if entry is None else replace(entry.settings, format=self.format)
