"""A catalog of each kind on this machine, with what loses the answer of its next commit, or refuses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import boto3
import pytest
import sqlalchemy.exc
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog

from logicalrep.pipeline.formats.catalog_settings import CatalogSettings
from logicalrep.pipeline.formats.iceberg.catalogs.connecting import connect
from logicalrep.pipeline.formats.iceberg.iceberg_tables import IcebergTables
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.storage.storage import Storage
from tests.pipeline.formats.iceberg.catalogs.rest_server import RestServer
from tests.pipeline.storage.stores import Store
from tests.postgres.servers import create_database


@dataclass(frozen=True)
class CatalogOfTests:
    """A catalog, and a destination for its tables."""

    settings: CatalogSettings
    storage: Storage
    server: RestServer | None
    glue: Store | None
    patch: pytest.MonkeyPatch

    def open(self) -> IcebergTables:
        """Return the tables as another process sees them."""
        return IcebergTables.in_catalog(self.storage, self.settings, creates=True)

    def with_limits(self, limits: Limits) -> CatalogOfTests:
        """Return the catalog for processes with other limits."""
        return replace(self, storage=replace(self.storage, limits=limits))

    @property
    def reader(self) -> Catalog:
        """The catalog as a reader has it."""
        return connect(self.settings, self.storage)

    def fail_next_commit(self, *, is_made: bool) -> None:
        """Lose the answer of the next commit of any process, which is made or not."""
        if self.server is not None:
            self.server.fault = "500 after" if is_made else "503 before"
            return
        from pyiceberg.catalog.glue import GlueCatalog

        errors: dict[str, tuple[type[Any], Exception]] = {
            "sqlite": (SqlCatalog, sqlalchemy.exc.OperationalError("UPDATE", {}, Exception("disk I/O error"))),
            "postgresql": (SqlCatalog, sqlalchemy.exc.OperationalError("UPDATE", {}, Exception("connection lost"))),
            "glue": (GlueCatalog, _read_timeout()),
        }
        kind, error = errors[self.settings.kind]
        commit = kind.commit_table

        def fail(self: Any, *arguments: Any) -> Any:
            patch.setattr(kind, "commit_table", commit)
            if is_made:
                commit(self, *arguments)
            raise error

        patch = self.patch
        patch.setattr(kind, "commit_table", fail)


def _read_timeout() -> Exception:
    from botocore.exceptions import ReadTimeoutError

    return ReadTimeoutError(endpoint_url="https://glue.example.org")  # type: ignore[no-any-return]


@contextmanager
def catalog_of(kind: str, folder: Path, patch: pytest.MonkeyPatch) -> Iterator[CatalogOfTests]:
    """Yield a catalog of a kind, whose tables are in a folder."""
    makers: dict[str, Callable[[], Any]] = {
        "sqlite": lambda: _sqlite(folder),
        "postgresql": _postgresql,
        "rest": lambda: _rest(folder),
        "glue": _glue,
    }
    with makers[kind]() as (settings, server):
        rest = server if isinstance(server, RestServer) else None
        glue = server if isinstance(server, Store) else None
        yield CatalogOfTests(settings, Storage(str(folder / "lake")), rest, glue, patch)


@contextmanager
def _sqlite(folder: Path) -> Iterator[tuple[CatalogSettings, None]]:
    yield CatalogSettings(f"sqlite:///{folder}/catalog.db"), None


@contextmanager
def _postgresql() -> Iterator[tuple[CatalogSettings, None]]:
    with create_database(18) as database:
        info = database.connection.info
        uri = f"postgresql://{info.user}@/{info.dbname}?host={info.host}&port={info.port}"
        yield CatalogSettings(uri), None


@contextmanager
def _rest(folder: Path) -> Iterator[tuple[CatalogSettings, RestServer]]:
    catalog = SqlCatalog("behind", uri=f"sqlite:///{folder}/behind.db")
    with RestServer(catalog).running() as server:
        yield CatalogSettings(server.uri, {"token": "s3cret-token", "access-delegation": "none"}), server
    catalog.engine.dispose()


@contextmanager
def _glue() -> Iterator[tuple[CatalogSettings, Store]]:
    # It answers for all services of AWS, and has one state in a process.
    store = Store()
    names = {"glue.endpoint": store.url, "glue.access-key-id": "testing", "glue.secret-access-key": "s3cret-token"}
    try:
        yield CatalogSettings("glue://us-east-1", names), store
    finally:
        glue = boto3.client(
            "glue",
            endpoint_url=store.url,
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )
        for database in glue.get_databases()["DatabaseList"]:
            glue.delete_database(Name=database["Name"])
        glue.close()
        store.close()
