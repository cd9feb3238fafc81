"""delta-rs: merged files, vacuum, checkpoints, restored versions, and rows of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import ClassVar

from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from logicalrep.pipeline.schema.table_formats import FormatName
from tests.pipeline.reading import read_delta
from tests.pipeline.upkeep.foreign.engine import FOLDER, ForeignEngine


class DeltaRs(ForeignEngine):
    """delta-rs."""

    format: ClassVar[FormatName] = "delta"
    lost_races = (CommitFailedError,)

    def steps(self) -> Mapping[str, Callable[[], object]]:
        return {
            "compact": lambda: self._load().optimize.compact(),
            "z-order": lambda: self._load().optimize.z_order([self.chance.choice(["id", "v"])]),
            "vacuum": lambda: self._vacuum(full=False),
            "vacuum unknown files": lambda: self._vacuum(full=True),
            "checkpoint": lambda: self._load().create_checkpoint(),
            "clean the log": lambda: self._load().cleanup_metadata(),
            "merge commits of the log": self._merge_commits,
            "set a description": self._describe,
            "append rows": self._append,
            "delete rows": self._delete,
            "restore a version": self._restore,
        }

    def _load(self) -> DeltaTable:
        return DeltaTable(str(self.lake / FOLDER))

    def _vacuum(self, *, full: bool) -> None:
        # Without any retention it would delete the files of a commit that is being made.
        self._load().vacuum(retention_hours=1, enforce_retention_duration=False, dry_run=False, full=full)

    def _merge_commits(self) -> None:
        numbers = [int(path.stem) for path in (self.lake / FOLDER / "_delta_log").glob("[0-9]*[0-9].json")]
        if len(numbers) > 1:
            self._load().compact_logs(min(numbers), max(numbers))

    def _describe(self) -> None:
        self._load().alter.set_table_description(str(self.chance.random()))
        # A commit may have other columns as well: what it changes in the metadata is not looked at.
        self.row_changes += 1

    def _append(self) -> None:
        rows = read_delta(str(self.lake / FOLDER)).slice(0, 1)
        write_deltalake(self._load(), rows, mode="append")
        self.row_changes += 1

    def _delete(self) -> None:
        self._load().delete(f"id < {self.chance.randrange(1, 20)}")
        self.row_changes += 1

    def _restore(self) -> None:
        table = self._load()
        # The log or the files of an old version may be deleted.
        with suppress(DeltaError):
            table.restore(max(0, table.version() - self.chance.randrange(4)))
            self.row_changes += 1
