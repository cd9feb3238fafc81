"""The guard of masked columns: columns masked at a destination stay masked in later runs and after renames."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.state.state import StateError
from logicalrep.pipeline.state.stored_settings import StoredSettings
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.transactions.table_names import TableName


def masks_needed_error(storage: Storage, tables: Sequence[str]) -> StateError:
    return StateError(
        f"columns of {', '.join(tables)} are masked or left out at {storage.uri}, but this command has no settings by "
        "table: give --config with the previous settings, so that the columns stay masked",
        code="CONFIG_MISSING",
    )


class Guard:
    """The columns that must not be written in clear: also in later runs, after renames, in detached partitions."""

    def __init__(self, storage: Storage, settings: ReplicateSettings) -> None:
        """Raises StateError if tables of the destination have masks, and this run has no settings by table."""
        self._storage = storage
        self._settings = settings
        self._previous = StoredSettings.read(storage) or StoredSettings()
        self._protected = dict(self._previous.protected)
        self._numbers = dict(self._previous.numbers)
        masked = sorted(str(name) for name, table_settings in self._previous.tables.items() if table_settings.protected)
        if masked and not settings.by_table.is_given:
            raise masks_needed_error(storage, masked)

    def store(self) -> None:
        """Store the settings of this run; call it once no other process writes to the destination."""
        self._store(self._protected)

    def _store(self, protected: dict[int, TableName]) -> None:
        entries = self._settings.by_table.entries
        tables = {name: entry.settings for name, entry in entries.items()}
        StoredSettings(self._settings.table_settings, tables, protected, self._numbers).write(self._storage)
        self._protected = protected

    def numbers(self, oid: int) -> Mapping[str, int]:
        return self._numbers.get(oid, {})

    def forget_numbers(self, oid: int) -> None:
        """Somebody asked for a reload with the current columns."""
        self._numbers.pop(oid, None)

    def learn_numbers(self, oid: int, settings: TableSettings, numbers: Mapping[str, int]) -> None:
        """Raises StorageError."""
        known_numbers = {name: number for name, number in self.numbers(oid).items() if name in settings.protected}
        if settings.protected and (all_numbers := {**numbers, **known_numbers}) != self._numbers.get(oid):
            self._numbers[oid] = all_numbers
            self._store(self._protected)

    def check_partitions(
        self, names: Mapping[int, TableName], partitions_of: Callable[[Collection[int]], Mapping[int, int]]
    ) -> None:
        """Store the OIDs of masked tables and of their partitions. Raises StorageError."""
        protected = dict(self._protected)
        for oid, name in names.items():
            if self._settings.of(name).protected:
                protected[oid] = name
            elif name in self._settings.by_table.entries:
                protected.pop(oid, None)
        masked = {oid: name for oid, name in names.items() if self._settings.of(name).protected}
        if masked:
            protected |= {part: masked[top] for part, top in partitions_of(masked).items()}
        if protected != self._protected:
            self._store(protected)

    def reason(self, oid: int, name: TableName) -> str | None:
        """Return why a table must not be loaded; None if it may be loaded."""
        previous_name = self._protected.get(oid)
        if previous_name is None or name in self._settings.by_table.entries:
            return None
        was = "it had" if previous_name == name else f"it was {previous_name}, or a partition of it, with"
        return (
            f"{was} columns that are masked or left out, and the settings by table do not name {name}: add an entry "
            f"for it, or {name}: {{}} to mask nothing"
        )

    def has_other_masks(self, name: TableName) -> bool:
        previous, current = self._previous.of(name), self._settings.of(name)
        return (previous.masked, previous.left_out, previous.mask_key) != (
            current.masked,
            current.left_out,
            current.mask_key,
        )
