"""The upkeep of a catalog's service: merged files, and removed snapshots and files, by requests of its own."""

from __future__ import annotations

import random
import secrets
import time
import uuid
from collections.abc import Iterator

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan, pyarrow_to_schema, write_file
from pyiceberg.table import CommitTableResponse, Table, WriteTask
from pyiceberg.table.metadata import TableMetadataV2
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    RemoveSnapshotsUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)

from logicalrep.pipeline.storage.storage import Storage

NAME = "public.t"


def compact(
    catalog: Catalog, operation: Operation = Operation.REPLACE, *, name: str = NAME, place: str | None = None
) -> int:
    """Commit a snapshot with the same files, as a service that merges files does; return the snapshot's id.

    The manifest list is at `place`, by default the table's location.
    """
    table = catalog.load_table(name)
    current, metadata = table.current_snapshot(), table.metadata
    assert isinstance(metadata, TableMetadataV2)
    assert current is not None
    listed = f"{place or table.location()}/metadata/snap-{uuid.uuid4()}.avro"
    with table.io.new_input(current.manifest_list).open() as file, table.io.new_output(listed).create() as copy:
        copy.write(file.read())
    snapshot = Snapshot.model_validate(
        {
            "snapshot-id": secrets.randbits(62) + 1,
            "parent-snapshot-id": current.snapshot_id,
            "sequence-number": metadata.last_sequence_number + 1,
            "timestamp-ms": max(time.time_ns() // 1_000_000, metadata.last_updated_ms + 1),
            "manifest-list": listed,
            "summary": Summary(operation),
            "schema-id": metadata.current_schema_id,
        }
    )
    main = SetSnapshotRefUpdate.model_validate(
        {"ref-name": MAIN_BRANCH, "type": SnapshotRefType.BRANCH, "snapshot-id": snapshot.snapshot_id}
    )
    catalog.commit_table(table, (), (AddSnapshotUpdate(snapshot=snapshot), main))
    return snapshot.snapshot_id


def merge_files(catalog: Catalog, name: str, chance: random.Random) -> None:
    """Replace some data files by merged files without deleted rows."""
    table = catalog.load_table(name)
    tasks = [*table.scan().plan_files()]
    merged = chance.sample(tasks, k=chance.randint(1, len(tasks))) if tasks else []
    if not merged:
        return
    table.catalog = SameRows(catalog)
    rows = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue()).to_table(merged)
    with table.transaction() as transaction, transaction.update_snapshot().overwrite() as overwriting:
        for task in merged:
            overwriting.delete_data_file(task.file)
        if rows.num_rows:
            schema = pyarrow_to_schema(rows.schema, table.schema().name_mapping)
            writing = WriteTask(uuid.uuid4(), 0, schema, rows.to_batches())
            for file in write_file(table.io, table.metadata, iter([writing])):
                overwriting.append_data_file(file)


def expire_all(catalog: Catalog, name: str = NAME, *, but: int = 0) -> None:
    """Remove all snapshots except the last one, some before it, and the snapshots of branches and tags."""
    table = catalog.load_table(name)
    heads = {reference.snapshot_id for reference in table.metadata.refs.values()}
    old = [snapshot.snapshot_id for snapshot in table.metadata.snapshots if snapshot.snapshot_id not in heads]
    ids = old[: max(len(old) - but, 0)]
    catalog.commit_table(table, (), (RemoveSnapshotsUpdate.model_validate({"snapshot-ids": ids}),))


def expire_with_files(catalog: Catalog, name: str, warehouse: Storage, *, but: int = 0) -> None:
    """Remove snapshots as `expire_all` does, and then the files that no remaining snapshot needs."""
    old_table = catalog.load_table(name)
    expire_all(catalog, name, but=but)
    after = catalog.load_table(name)
    current_ids = {snapshot.snapshot_id for snapshot in after.metadata.snapshots}
    removed = [snapshot for snapshot in old_table.metadata.snapshots if snapshot.snapshot_id not in current_ids]
    needed = {path for snapshot in after.metadata.snapshots for path in _files_of(after, snapshot)}
    for path in {path for snapshot in removed for path in _files_of(old_table, snapshot)} - needed:
        warehouse.delete(path.removeprefix(f"{warehouse.uri}/"))


def _files_of(table: Table, snapshot: Snapshot) -> Iterator[str]:
    yield snapshot.manifest_list
    for manifest in snapshot.manifests(table.io):
        yield manifest.manifest_path
        yield from (entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io))


class ConflictError(RuntimeError):
    """Another commit came first."""


class SameRows(NoopCatalog):
    """A catalog that commits each snapshot as one with the same rows, as programs do that merge files."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__(catalog.name)
        self._catalog = catalog

    def load_table(self, identifier: str | tuple[str, ...]) -> Table:
        return self._catalog.load_table(identifier)

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        try:
            return self._catalog.commit_table(table, requirements, tuple(map(_with_same_rows, updates)))
        except CommitFailedException as error:
            # pyiceberg would try again, on top of rows that may have been deleted meanwhile.
            raise ConflictError(str(error)) from None


def _with_same_rows(update: TableUpdate) -> TableUpdate:
    if not isinstance(update, AddSnapshotUpdate) or update.snapshot.summary is None:
        return update
    summary = Summary(Operation.REPLACE, **update.snapshot.summary.additional_properties)
    return update.model_copy(update={"snapshot": update.snapshot.model_copy(update={"summary": summary})})
