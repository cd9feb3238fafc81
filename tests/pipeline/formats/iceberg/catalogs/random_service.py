"""The service of a catalog that owns its tables: it fails, expires tokens, merges, removes and tags at random."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pyiceberg.io import InputFile, OutputFile

from logicalrep.pipeline.formats.catalog_settings import CatalogSettings
from logicalrep.pipeline.formats.iceberg.catalogs.connecting import CatalogOfFiles, connect, is_catalog_error
from logicalrep.pipeline.formats.iceberg.memory_files import FileToStorage, StorageFiles
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.errors import LogicalRepError
from tests.pipeline.formats.iceberg.catalogs.owner_server import EXPIRED, Fault, OwnerServer
from tests.pipeline.formats.iceberg.catalogs.services import (
    ConflictError,
    compact,
    expire_all,
    expire_with_files,
    merge_files,
)

_FAULTS = (429, 500, 503, 503, 409)


class RandomService:
    """Random faults of requests, and random upkeep of tables, by requests of its own; `counts` has what was done."""

    def __init__(
        self, server: OwnerServer, options: Mapping[str, str], chance: random.Random, *, failing: float, deletes: bool
    ) -> None:
        """Take the catalog, a client's options for it, and the share of requests that fail.

        `deletes` says whether the service deletes the files of snapshots that it removes.
        """
        self._server, self._options, self._chance = server, options, chance
        self.failing, self._deletes = failing, deletes
        self._stop = threading.Event()
        self._next_expiry = 0.0
        """When all tokens expire."""
        self.counts: Counter[str] = Counter()
        self.on_commit: Callable[[], None] = lambda: None
        """Called before the answer to a commit that fails, whether the commit is made or not."""
        self.errors: list[BaseException] = []
        server.trouble = self._trouble

    def _trouble(self, method: str, path: str) -> Fault | None:
        chance = self._chance
        if self._server.tokens is not None and time.monotonic() > self._next_expiry:
            self._server.tokens.append(EXPIRED)
            self._next_expiry = time.monotonic() + 2 + 8 * chance.random()
        # A catalog that fails at the connection ends a run that starts, with an error.
        if path.endswith(("/config", "/tokens")) or chance.random() >= self.failing:
            return None
        is_commit = method == "POST" and "/tables/" in path
        status = chance.choice(_FAULTS if is_commit else _FAULTS[:-1])
        headers = {"Retry-After": chance.choice(["0", "1"])} if status in (429, 503) and chance.random() < 0.5 else {}
        is_done = is_commit and status != 429 and chance.random() < 0.5
        self.counts[f"{status}{' after the commit' if is_done else ''}"] += 1
        return Fault(method, path, status, is_done, headers, self.on_commit if is_commit else lambda: None)

    def act(self) -> None:
        """Do one piece of upkeep of one table; requests that fail, and commits that come too late, are left."""
        catalog = self._connect()
        versions = {".".join(name): entry.metadata.format_version for name, entry in [*self._server.tables.items()]}
        if not versions:
            return
        name, chance, warehouse = self._chance.choice([*versions]), self._chance, self._server.warehouse
        but = chance.choice([0, 3, 3, 10])
        actions: dict[str, Callable[[], object]] = {
            "merge": lambda: merge_files(catalog, name, chance),
            "rewrite the list": lambda: compact(catalog, name=name),
            "expire": lambda: (
                expire_with_files(catalog, name, warehouse, but=but)
                if self._deletes
                else expire_all(catalog, name, but=but)
            ),
            "tag": lambda: _tag(catalog, name, chance),
            "set a property": lambda: _set_property(catalog, name, chance),
        }
        # pyiceberg writes no manifests of version 3.
        weights = {"merge": 4, "rewrite the list": 1} if versions[name] < 3 else {}
        weights |= {"expire": 2, "tag": 1, "set a property": 1}
        kind = chance.choices([*weights], [*weights.values()])[0]
        try:
            actions[kind]()
            self.counts[kind] += 1
        except Exception as error:
            # The table may have no snapshot yet, or another commit came first; requests fail for the service too.
            if not (isinstance(error, LogicalRepError | AssertionError | ConflictError) or is_catalog_error(error)):
                raise

    def _connect(self) -> CatalogOfFiles:
        # Requests fail for the service too.
        catalog = connect(CatalogSettings(self._server.uri, self._options), self._server.warehouse)
        catalog.files = _WarehouseFiles(self._server.warehouse)
        return catalog

    @contextmanager
    def running(self, pause: float) -> Iterator[None]:
        """Do upkeep of a random table again and again."""

        def run() -> None:
            while not self._stop.wait(pause):
                try:
                    self.act()
                except (LogicalRepError, OSError):
                    continue
                except BaseException as error:
                    self.errors.append(error)
                    return

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            self.stop()
            thread.join()
            assert not self.errors, self.errors

    def stop(self) -> None:
        """Let requests succeed, and do no more upkeep."""
        self._stop.set()
        self._server.trouble = lambda method, path: None


class _WarehouseFiles(StorageFiles):
    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self._warehouse = storage

    def new_output(self, location: str) -> OutputFile:
        return FileToStorage(location, self._warehouse, self._warehouse.path_of(location))

    def delete(self, location: str | InputFile | OutputFile) -> None:
        self._warehouse.delete(self._warehouse.path_of(location if isinstance(location, str) else location.location))


def _tag(catalog: CatalogOfFiles, name: str, chance: random.Random) -> None:
    table = catalog.load_table(name)
    tags = [ref for ref in table.metadata.refs if ref != "main"]
    changes = table.manage_snapshots()
    if len(tags) > 2:
        tag = chance.choice(tags)
        (changes.remove_branch if tag.startswith("b") else changes.remove_tag)(tag).commit()
        return
    kind = chance.choice("bt")
    if not table.metadata.snapshots:
        return
    snapshot = chance.choice(table.metadata.snapshots).snapshot_id
    create = changes.create_branch if kind == "b" else changes.create_tag
    create(snapshot, f"{kind}{chance.randrange(10**6)}").commit()


def _set_property(catalog: CatalogOfFiles, name: str, chance: random.Random) -> None:
    with catalog.load_table(name).transaction() as transaction:
        transaction.set_properties({"owner": str(chance.random())})
