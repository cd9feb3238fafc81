"""pyiceberg: branches, tags, expiry, statistics, rewritten files, and rows of its own."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.statistics import StatisticsFile

from logicalrep.pipeline.schema.table_formats import FormatName
from tests.pipeline.formats.iceberg.catalogs.services import ConflictError, SameRows
from tests.pipeline.upkeep.foreign.engine import FOLDER, ForeignEngine
from tests.pipeline.upkeep.foreign.folder_catalog import FolderCatalog


class PyIceberg(ForeignEngine):
    """pyiceberg, in folders and catalogs."""

    format: ClassVar[FormatName] = "iceberg"
    catalogs = ("", "sqlite", "rest")
    lost_races: tuple[type[Exception], ...] = (CommitFailedException, ConflictError)

    def __init__(self, lake: Path, catalog: str | None, chance: random.Random) -> None:
        super().__init__(lake, catalog, chance)
        self._rows: dict[str, tuple[int, list[int]]] = {}
        """The snapshot of each branch and tag, and the ids of its rows."""
        self._count = 0

    def steps(self) -> Mapping[str, Callable[[], object]]:
        return {
            "make a branch": self._make_branch,
            "commit to a branch": self._commit_to_branch,
            "delete from a branch": self._delete_from_branch,
            "tag": self._tag,
            "drop a reference": self._drop_reference,
            "expire one snapshot": self._expire_one,
            "expire all snapshots": self._expire_all,
            "write statistics": self._write_statistics,
            "set a property": self._set_property,
            "rewrite the files": self._rewrite,
            "append rows": self._append,
            "roll back": self._roll_back,
        }

    def find_losses(self) -> list[str]:
        losses, table = [], self._load()
        for name, (snapshot, ids) in self._rows.items():
            reference = table.metadata.refs.get(name)
            if reference is None or reference.snapshot_id != snapshot:
                losses.append(f"{name} is {reference} in place of {snapshot}")
                continue
            try:
                rows = _ids(table, snapshot)
            except OSError as error:
                losses.append(f"{name}: {error}")
                continue
            if rows != ids:
                losses.append(f"{name} has {rows} in place of {ids}")
        statistics = [*table.metadata.statistics, *table.metadata.partition_statistics]
        losses += [f"{file.statistics_path} is gone" for file in statistics if not Path(file.statistics_path).exists()]
        return losses

    def _load(self) -> Table:
        if self.catalog is None:
            return FolderCatalog(self.lake).load_table((FOLDER,))
        catalog: Catalog
        if self.catalog.startswith("http"):
            catalog = RestCatalog("default", uri=self.catalog)
        else:
            catalog = SqlCatalog("default", uri=self.catalog)
        return catalog.load_table("public.t")

    def _any_snapshot(self, table: Table) -> Snapshot:
        return self.chance.choice(table.metadata.snapshots)

    def _make_branch(self) -> None:
        table = self._load()
        snapshot, name = self._any_snapshot(table).snapshot_id, f"branch{self._count}"
        self._count += 1
        least, age = self.chance.choice([None, 1, 3]), self.chance.choice([None, 1, 3_600_000])
        ids = _ids(table, snapshot)
        changes = table.manage_snapshots().create_branch(
            snapshot, name, min_snapshots_to_keep=least, max_snapshot_age_ms=age
        )
        changes.commit()
        self._rows[name] = snapshot, ids

    def _tag(self) -> None:
        table = self._load()
        snapshot, name = self._any_snapshot(table).snapshot_id, f"tag{self._count}"
        self._count += 1
        ids = _ids(table, snapshot)
        table.manage_snapshots().create_tag(snapshot, name).commit()
        self._rows[name] = snapshot, ids

    def _branch(self) -> str | None:
        names = [name for name in self._rows if name.startswith("branch")]
        return self.chance.choice(names) if names else None

    def _commit_to_branch(self) -> None:
        branch, table = self._branch(), self._load()
        if branch is not None:
            rows = table.scan(snapshot_id=self._rows[branch][0]).to_arrow()
            table.append(rows.slice(0, 1) if rows.num_rows else table.scan().to_arrow().slice(0, 1), branch=branch)
            self._note(branch)

    def _delete_from_branch(self) -> None:
        branch, table = self._branch(), self._load()
        if branch is not None:
            table.delete(f"id < {self.chance.randrange(1, 20)}", branch=branch)
            self._note(branch)

    def _note(self, branch: str) -> None:
        table = self._load()
        snapshot = table.metadata.refs[branch].snapshot_id
        self._rows[branch] = snapshot, _ids(table, snapshot)

    def _drop_reference(self) -> None:
        if self._rows:
            name = self.chance.choice(list(self._rows))
            manage = self._load().manage_snapshots()
            (manage.remove_branch(name) if name.startswith("branch") else manage.remove_tag(name)).commit()
            del self._rows[name]

    def _expire_one(self) -> None:
        table = self._load()
        heads = {reference.snapshot_id for reference in table.metadata.refs.values()}
        old = [snapshot.snapshot_id for snapshot in table.metadata.snapshots if snapshot.snapshot_id not in heads]
        if old:
            table.maintenance.expire_snapshots().by_id(self.chance.choice(old)).commit()
            self._note_expiry()

    def _expire_all(self) -> None:
        table = self._load()
        heads = {reference.snapshot_id for reference in table.metadata.refs.values()}
        if any(snapshot.snapshot_id not in heads for snapshot in table.metadata.snapshots):
            table.maintenance.expire_snapshots().older_than(datetime.now(UTC).replace(tzinfo=None)).commit()
            self._note_expiry()

    def _note_expiry(self) -> None:
        # A snapshot between the last one of ours and the current one may be the proof that the rows are the same.
        self.row_changes += 1

    def _write_statistics(self) -> None:
        table = self._load()
        snapshot = self._any_snapshot(table).snapshot_id
        path = self.lake / FOLDER / f"metadata/{self._count}.stats"
        self._count += 1
        path.write_bytes(b"stats")
        values = {"snapshot-id": snapshot, "statistics-path": str(path), "file-size-in-bytes": 5}
        values |= {"file-footer-size-in-bytes": 1, "blob-metadata": []}
        with table.update_statistics() as update:
            update.set_statistics(StatisticsFile.model_validate(values))

    def _set_property(self) -> None:
        self._load().transaction().set_properties(owner=str(self.chance.random())).commit_transaction()

    def _rewrite(self) -> None:
        table = self._load()
        table.catalog = SameRows(table.catalog)
        table.overwrite(table.scan().to_arrow())

    def _append(self) -> None:
        table = self._load()
        table.append(table.scan().to_arrow().slice(0, 1))
        self.row_changes += 1

    def _roll_back(self) -> None:
        table = self._load()
        line = [entry.snapshot_id for entry in table.history()]
        stored = [snapshot_id for snapshot_id in line[:-1] if table.snapshot_by_id(snapshot_id) is not None]
        if stored:
            table.manage_snapshots().set_current_snapshot(snapshot_id=self.chance.choice(stored)).commit()
            self.row_changes += 1


def _ids(table: Table, snapshot: int) -> list[int]:
    return sorted(table.scan(snapshot_id=snapshot).to_arrow()["id"].to_pylist())
