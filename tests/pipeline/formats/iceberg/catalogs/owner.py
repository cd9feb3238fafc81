"""A catalog that owns its tables, with the table of a destination elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyiceberg.table import Table

from logicalrep.pipeline.formats.catalog_settings import CatalogSettings
from logicalrep.pipeline.formats.iceberg.catalogs.connecting import connect
from logicalrep.pipeline.formats.iceberg.iceberg_tables import IcebergTables
from logicalrep.pipeline.formats.stored_table import NewTable, Position, StoredTable
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.formats.iceberg.catalogs.owner_server import OwnerServer
from tests.pipeline.histories import table
from tests.pipeline.stored import APP, WriteMode


@dataclass(frozen=True)
class Owner:
    """A catalog that owns tables, and a destination elsewhere."""

    server: OwnerServer
    storage: Storage
    options: Mapping[str, str] = field(default_factory=dict)
    does_upkeep: bool = True
    """Whether replicate, and not the catalog's service, does the upkeep."""

    @property
    def settings(self) -> CatalogSettings:
        return CatalogSettings(self.server.uri, self.options, self.does_upkeep)

    def open(self) -> IcebergTables:
        """Return the tables as another process sees them."""
        return IcebergTables.in_catalog(self.storage, self.settings)

    def new_table(self, mode: WriteMode = "copy-on-write", spec: TableSpec | None = None) -> StoredTable:
        spec = spec or table(("id",), TableSettings(write_mode=mode, format="iceberg"))
        tables = self.open()
        tables.prepare("public/t", spec)
        new = NewTable(spec, [], Position(APP, Lsn(999)), load="x", keep_hours=24)
        return tables.replace("public/t", new, tables.open("public/t"))

    def ids(self) -> list[int]:
        """Return the ids as a reader of the catalog has them."""
        return sorted(self.open_as_reader().scan().to_arrow()["id"].to_pylist())

    def open_as_reader(self) -> Table:
        catalog = connect(self.settings, self.server.warehouse)
        return catalog.load_table("public.t")


class Clock(threading.Event):
    """An event in whose waits no time passes; `pauses` has their seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.pauses.append(timeout or 0.0)
        return self.is_set()
