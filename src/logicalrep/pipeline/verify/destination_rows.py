from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from logicalrep.pipeline.apply.ending import is_current
from logicalrep.pipeline.formats.stored_table import StoredTable, TableFormat
from logicalrep.pipeline.schema.forms import END_COLUMN
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, read_rows
from logicalrep.pipeline.verify.digests import Digests, Fingerprints, Hashes, digests_of, key_hashes
from logicalrep.pipeline.verify.progress import UnsettledError


def with_all_text_columns(table: TableSpec) -> TableSpec:
    return table.with_texts(table.lacking)


class DestinationRows:
    """Each method opens the table anew."""

    def __init__(self, tables: TableFormat, folder: str) -> None:
        self.storage, self._tables = tables.storage, tables
        self._folder = folder
        self.table: TableSpec = with_all_text_columns(self._open_table().table)

    def all(self) -> Iterator[pa.Table]:
        stored = self._current()
        for file in stored.files.values():
            rows = self._rows(stored.table, file)
            max_rows = self.storage.limits.hashed_rows
            yield from (rows.slice(start, max_rows) for start in range(0, rows.num_rows, max_rows))

    def read_keys(self, hashes: Hashes) -> tuple[Fingerprints, list[pa.Table]]:
        """Return the fingerprints of the keys with these sorted hashes, and the keys' rows."""
        stored, fingerprints = self._current(), Fingerprints.none(len(hashes))
        rows: list[pa.Table] = []
        for file in stored.files.values():
            keys = key_hashes(self.table, self._rows(stored.table, file, self.table.key_names))
            is_wanted = np.isin(keys, hashes)
            if is_wanted.any():
                wanted = self._rows(stored.table, file).filter(pa.array(is_wanted))
                digests = digests_of(self.table, wanted)
                fingerprints.add(hashes, Digests(keys[is_wanted], digests.rows))
                rows.append(wanted)
        return fingerprints, rows

    def _rows(self, stored_table: TableSpec, file: DataFile, columns: Sequence[str] = ()) -> pa.Table:
        """Return columns of a file's current rows, by default the columns of the server's table."""
        form, columns = self.table.form, columns or self.table.names
        end_columns = [END_COLUMN[form]] if form in END_COLUMN else []
        names = [name for name in columns if name in stored_table.names]
        rows = read_rows(self.storage, self._folder, file, stored_table.stored, [*names, *end_columns])
        rows = rows.filter(pa.array(is_current(rows, form))) if end_columns else rows
        return pa.table(
            {name: rows[name] if name in names else pa.nulls(rows.num_rows, pa.string()) for name in columns}
        )

    def _current(self) -> StoredTable:
        stored = self._open_table()
        is_same_table = (stored.table.relation, stored.table.key) == (self.table.relation, self.table.key)
        if not is_same_table or with_all_text_columns(stored.table).schema != self.table.schema:
            raise UnsettledError("it was reloaded with other columns during the comparison")
        return stored

    def _open_table(self) -> StoredTable:
        stored = self._tables.open(self._folder)
        if stored is None:
            raise UnsettledError("it is not loaded yet")
        return stored
