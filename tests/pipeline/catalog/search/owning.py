"""A catalog that owns the tables of a search, with a service that does upkeep and fails at random."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from logicalrep.pipeline.formats.catalog_settings import catalog_name
from tests.pipeline.formats.iceberg.catalogs.named import CATALOGS
from tests.pipeline.formats.iceberg.catalogs.owner_server import OwnerServer, Warehouse
from tests.pipeline.formats.iceberg.catalogs.random_service import RandomService


@dataclass(frozen=True)
class OwningCatalog:
    server: OwnerServer
    options: Mapping[str, Any]
    """The options of replicate."""

    def locate(self, folder: Path) -> Path:
        """Return the location of the table in a folder of the destination."""
        entry = self.server.tables.get(catalog_name(f"{folder.parent.name}/{folder.name}"))
        return folder if entry is None else Path(entry.metadata.location)


@contextmanager
def owning_catalog(name: str, seed: object, folder: Path) -> Iterator[OwningCatalog]:
    """Yield a catalog by its name, with tables beside a destination."""
    named, chance = CATALOGS[name], random.Random(f"{seed}/catalog")
    server = OwnerServer(Warehouse(str(folder.parent / "warehouse")), named.profile)
    server.vend = named.credentials
    options = named.options(server)
    with server.running():
        service = RandomService(server, options, chance, failing=chance.choice([0, 0.01]), deletes=False)
        pause = 0.2 if named.has_service else 1e6
        with service.running(pause):
            yield OwningCatalog(server, {"catalog": server.uri, "catalog_options": options})
