"""The changes of tables that are being loaded, kept at the place until the copy is whole.

The slot goes on while a table loads: its changes are stored as rows of the change feed before they are acknowledged,
and applied once the copied rows are there, from the position of the copy on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from logicalrep.tables.delta.place import Place, below
from logicalrep.tables.follow.state import FOLDER
from logicalrep_runtime.scalars import Lsn

_MARKS = f"{FOLDER}/loads"
_KEPT = f"{FOLDER}/kept"
_MARK = "load.json"
_AT_ONCE = 64 << 20
"""About the bytes of changes that are applied at once: to rewrite files for each batch could take ever longer."""
ASKED_FOR = "asked for"
"""The reason of a load that somebody asked for."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A table that is to be loaded, or whose kept changes are not all applied."""

    folder: str
    replaces: str | None
    """The load whose rows the table had before; None for a new table. Once it has others, the copy is whole."""
    reason: str
    """The reason in a few words, such as `new table`."""


class Kept:
    """The marks of loading tables, and their changes."""

    def __init__(self, place: Place, check: Callable[[], object] = lambda: None) -> None:
        """Take the place, and what raises an error if another process writes there: nothing is removed before it."""
        self._place = place
        self._check = check

    def marks(self) -> dict[str, Mark]:
        """Return the marked tables by their folders."""
        found = {}
        for path in self._place.list(_MARKS):
            if path.endswith(f"/{_MARK}"):
                mark = self._place.parse(path, lambda content: Mark(**content | {"folder": below(content["folder"])}))
                if mark is not None:
                    found[mark.folder] = mark
        return found

    def mark(self, mark: Mark) -> None:
        """Note that a table loads: from now on its changes have to be kept."""
        content = {"folder": mark.folder, "replaces": mark.replaces, "reason": mark.reason}
        self._place.write(f"{_MARKS}/{mark.folder}/{_MARK}", json.dumps(content).encode())

    def keep(self, folder: str, rows: pa.Table, end: Lsn) -> None:
        """Store a table's changes, all those of the commits before `end` that are not stored yet."""
        ends = self._ends(folder)
        if ends:
            rows = rows.filter(pc.greater_equal(rows["commit_lsn"], pa.scalar(int(ends[-1]), pa.int64())))
        if rows.num_rows:
            sink = pa.BufferOutputStream()
            pq.write_table(rows, sink, compression="zstd")
            self._place.write(self._path(folder, end), sink.getvalue().to_pybytes())

    def changes(self, folder: str) -> Iterator[tuple[Lsn, pa.Table]]:
        """Yield a table's stored changes in their order, those of many batches at once, with the end of the last."""
        held: list[pa.Table] = []
        size, ends = 0, self._ends(folder)
        for number, end in enumerate(ends, 1):
            path = self._path(folder, end)
            data = self._place.read(path)
            assert data is not None
            with self._place.parsing(path):
                rows = pq.read_table(pa.BufferReader(data))
            if number > 1:
                # Two processes may have stored some at the same time.
                rows = rows.filter(pc.greater_equal(rows["commit_lsn"], pa.scalar(int(ends[number - 2]), pa.int64())))
            held.append(rows)
            size += held[-1].nbytes
            if number == len(ends) or size >= _AT_ONCE:
                yield end, pa.concat_tables(held)
                held, size = [], 0

    def forget_all(self, folder: str) -> None:
        """Remove all of a table's changes: a load that is to begin has them."""
        self._check()
        for end in self._ends(folder):
            self._place.delete(self._path(folder, end))

    def forget(self, folder: str, upto: Lsn) -> None:
        """Remove a table's changes up to an end: they are applied."""
        self._check()
        for end in self._ends(folder):
            if end <= upto:
                self._place.delete(self._path(folder, end))

    def remove(self, folder: str) -> None:
        """Remove a table's changes and then its mark: all of them are applied."""
        self.forget_all(folder)
        self._place.delete(f"{_MARKS}/{folder}/{_MARK}")

    def _ends(self, folder: str) -> list[Lsn]:
        ends = []
        for path in self._place.list(f"{_KEPT}/{folder}"):
            if path.endswith(".parquet"):
                with self._place.parsing(path):
                    ends.append(Lsn(int(path.rpartition("/")[2].removesuffix(".parquet"), 16)))
        return sorted(ends)

    @staticmethod
    def _path(folder: str, end: Lsn) -> str:
        return f"{_KEPT}/{folder}/{int(end):016X}.parquet"
