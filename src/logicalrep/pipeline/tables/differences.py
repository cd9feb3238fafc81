"""The differences between a table's copy and the server's table, which lead to a load or a new description."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from logicalrep.observe.events import WarningIssued
from logicalrep.pipeline.apply.setting_changes import change_feed, change_partitions, change_write_mode, upgrade
from logicalrep.pipeline.catalog.catalog import Catalog, ServerTable
from logicalrep.pipeline.catalog.lost_partitions import lost_partitions
from logicalrep.pipeline.catalog.proof import ATTACHED, DROPPED, latest_description, reason_to_load
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.schema.fitting import refuse_unfit
from logicalrep.pipeline.schema.table_settings import TableSettings, WriteMode
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.tables.failures import TableFailures
from logicalrep.pipeline.tables.load_coordinator import OTHER_SETTINGS, LoadCoordinator
from logicalrep.pipeline.tables.phases import Copy, Following
from logicalrep.pipeline.tables.table import Table
from logicalrep.pipeline.tables.writer import TableWriter
from logicalrep_runtime.scalars import Lsn


@dataclass(slots=True)
class Differences:
    """Compares tables with the result of a catalog refresh."""

    context: RunContext
    catalog: Catalog
    writer: TableWriter
    loads: LoadCoordinator
    failures: TableFailures

    def take(self, table: Table, server_table: ServerTable, position: Lsn, *, is_another: bool) -> None:
        """Bring a table in line with the server's table; every commit before `position` is applied."""
        if is_another:
            self.loads.load(table, "another table has its name")
        if table.copy is not None:
            self.writer.adopt(table, table.copy, server_table.head)
        if isinstance(table.phase, Following):
            self._compare(table, table.phase.copy, server_table, position)
        described = server_table.catalog_table.table
        table.server_files = frozenset(oid for oid, _ in described.files)
        is_as_before = described.has_protected(self.context.settings.of(table.name), self.loads.numbers(table))
        table.columns = described.sent_names if is_as_before else ()

    def _compare(self, table: Table, copy: Copy, server_table: ServerTable, position: Lsn) -> None:
        described = copy.stored.table, server_table.catalog_table
        is_described = isinstance(table.phase, Following) and table.phase.next_description is None
        if is_described and table.without_difference == described:
            return
        settings = self.context.settings.of(table.name)
        if not copy.stored.table.settings.has_same_rows(settings):
            self.loads.load(table, OTHER_SETTINGS)
            return
        self._change_storing(table, copy, server_table.catalog_table.table, settings)
        phase, spec = table.phase, copy.stored.table
        if not isinstance(phase, Following):
            return
        server_table.catalog_table.refuse_incomplete_old_rows()
        reason = reason_to_load(spec, server_table.catalog_table)
        lost = lost_partitions(spec, server_table.catalog_table.table)
        if reason is None:
            unsent = self.catalog.unsent_partitions(spec, server_table.catalog_table.table)
            # Rows that wait for the catalog are applied before a partition is put in among them.
            if unsent is None or (unsent and phase.unproven is not None):
                return
            if unsent and lost and lost.partitions:
                reason = DROPPED
            elif unsent:
                self.loads.load(table, ATTACHED, () if spec.key is None else unsent)
                return
        if reason is not None:
            self.loads.load(table, reason)
        elif latest_description(spec, server_table.catalog_table) == spec:
            table.update(replace(phase, next_description=None))
            table.without_difference = spec, server_table.catalog_table
        elif phase.next_description is None or phase.next_description[0] != server_table.catalog_table:
            # Rows from before the change may still come.
            table.update(replace(phase, next_description=(server_table.catalog_table, server_table.head)))
        elif position >= phase.next_description[1] and lost and lost.partitions:
            # All rows of these partitions are applied. Rows that wait for the catalog are applied first, too.
            if phase.unproven is None:
                table.update(replace(phase, next_description=None))
                self.loads.replace_lost(table, copy, lost)
        elif position >= phase.next_description[1]:
            table.update(replace(phase, next_description=None))
            self.failures.run(table, partial(self.writer.describe, table, copy, server_table.catalog_table))

    def _change_storing(self, table: Table, copy: Copy, wanted: TableSpec, settings: TableSettings) -> None:
        """Store equal rows as the settings say, in a commit for each changed setting, until one of them fails."""
        # A kill may have left companion tables with settings that an earlier run had.
        stored_settings = [stored.table.settings for stored in copy.stored_tables]
        # The copy gets a new column of the server before it is partitioned by that column.
        can_be_partitioned = {rule.number for rule in wanted.partitions} <= {*copy.stored.table.attnums}
        changes = (
            (
                {previous.write_mode for previous in stored_settings} != {settings.write_mode},
                partial(self._change_write_mode, mode=settings.write_mode),
            ),
            (
                min(previous.format_version for previous in stored_settings) < settings.format_version,
                partial(self._upgrade, settings=settings),
            ),
            (
                {previous.change_data_feed for previous in stored_settings} != {settings.change_data_feed},
                partial(self._change_feed, is_wanted=settings.change_data_feed),
            ),
            (
                {previous.partition_by for previous in stored_settings} != {settings.partition_by}
                and can_be_partitioned,
                partial(self._change_partitions, wanted=wanted),
            ),
        )
        for is_due, change in changes:
            if is_due and isinstance(table.phase, Following):
                self.failures.run(table, partial(change, table, copy))

    def _change_feed(self, table: Table, copy: Copy, *, is_wanted: bool) -> None:
        self.writer.change_all(copy, partial(change_feed, is_wanted=is_wanted))
        text = "begins with the next commit" if is_wanted else "ends with the last commit"
        self.context.observer.on_event(WarningIssued(f"{table.name}: change_data_feed changed: the feed {text}"))

    def _change_partitions(self, table: Table, copy: Copy, wanted: TableSpec) -> None:
        refuse_unfit(wanted, {})
        count = self.writer.change_all(copy, partial(change_partitions, wanted=wanted))
        by = ", ".join(wanted.settings.partition_by) or "nothing"
        self.context.observer.on_event(
            WarningIssued(f"{table.name}: partition_by changed to {by}: replicate rewrote {count:,} files")
        )

    def _upgrade(self, table: Table, copy: Copy, settings: TableSettings) -> None:
        self.writer.change_all(copy, partial(upgrade, settings=settings))
        version, marks = settings.format_version, copy.stored.table.settings.row_marks
        self.context.observer.on_event(
            WarningIssued(
                f"{table.name}: format_version changed to {version}: readers must support this version, and {marks}"
            )
        )

    def _change_write_mode(self, table: Table, copy: Copy, mode: WriteMode) -> None:
        count = self.writer.change_all(copy, partial(change_write_mode, mode=mode))
        marks = copy.stored.table.settings.row_marks
        if mode == "merge-on-read":
            text = f"replicate marks removed rows from now on, and readers must support {marks}"
        else:
            text = f"replicate rewrote {count:,} files with marked rows, and readers no longer need {marks}"
        self.context.observer.on_event(WarningIssued(f"{table.name}: write_mode changed to {mode}: {text}"))
