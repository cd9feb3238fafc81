"""The reading of a few rows of a Parquet file's column: of the pages that have them alone.

pyarrow reads a column as a whole. So it is given a file in memory that has these pages alone, as they are, and a footer
that tells of no others. Where the pages are is in the file's offset index. Source: "Parquet Page Index" and
`parquet.thrift` of Apache Parquet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from logicalrep.pipeline.storage.thrift import BINARY, I32, I64, LIST, STRUCT, Struct, read_struct, written

_Ints = NDArray[np.int64]
_MAGIC = b"PAR1"
_SPARSE = 2
"""Pages are read one by one if the wanted ones are at most one in so many."""
_DICTIONARIES = (2, 8)
"""The encodings of pages that need the column's dictionary."""
_FOOTER = 4 << 10
"""The bytes at the end of a file that are read at first: most footers are smaller."""
_LOCATION = [0x16, None, 0x15, None, 0x16, None, 0x00]
"""The parts of a page's location in an offset index: the fields' headers; the offset, size and first row."""


@dataclass(frozen=True)
class Pages:
    """The locations of a column's pages in a file of one row group."""

    offsets: _Ints
    sizes: _Ints
    first_rows: _Ints
    """The number of each page's first row, and at the end the number of all rows."""
    dictionary: tuple[int, int] | None
    """The offset of the page with the column's dictionary, and the offset behind it."""
    root: Struct
    leaf: Struct
    """The schema's elements: all, and the column."""
    column: Struct
    """The metadata of the column."""

    def of(self, rows: _Ints) -> _Ints:
        """Return the numbers of the pages that have some rows."""
        return np.unique(np.searchsorted(self.first_rows, rows, "right") - 1)


class PagedSource:
    """A Parquet file of which pages are read one by one."""

    def __init__(self, source: IO[bytes], size: int) -> None:
        """Take the open file, and its size in bytes."""
        self._source, self._size = source, size

    def read_rows(self, columns: Sequence[str], rows: _Ints) -> pa.Table | None:
        """Return columns of some rows, by their numbers in ascending order.

        Returns None if that would read much of the columns, or if the file does not tell where its pages are: one of
        another program, or of an earlier version. Raises pyarrow.ArrowInvalid if the pages are none.
        """
        try:
            pages = _read_pages(self._source, self._size, columns)
        except (ValueError, LookupError):
            return None
        if any(_SPARSE * len(each.of(rows)) > len(each.offsets) for each in pages.values()):
            return None
        return pa.table({name: _read_rows_of_pages(self._source, pages[name], rows) for name in columns})


def _read_pages(source: IO[bytes], size: int, columns: Sequence[str]) -> dict[str, Pages]:
    tail = _read(source, max(size - _FOOTER, 0), size)
    length = int.from_bytes(tail[-8:-4], "little")
    if tail[-4:] != _MAGIC or length + 8 > size:
        raise ValueError("no footer")
    if length + 8 > len(tail):
        tail = _read(source, size - length - 8, size)
    footer, _ = read_struct(tail, len(tail) - length - 8)
    (group,) = footer[4][1][1]
    elements = footer[2][1][1]
    leaves = {bytes(element[4][1]).decode(): element for element in elements[1:] if 5 not in element}
    found: dict[str, Pages] = {}
    for chunk in group[1][1][1]:
        column = chunk[3][1]
        path = [bytes(part).decode() for part in column[3][1][1]]
        if len(path) > 1 or path[0] not in columns:
            continue
        at, count = chunk[4][1], chunk[5][1]
        offsets, sizes, rows = _read_locations(_read(source, at, at + count))
        dictionary = (column[11][1], int(offsets[0])) if 11 in column else None
        first_rows = np.append(rows, group[3][1])
        found[path[0]] = Pages(offsets, sizes, first_rows, dictionary, elements[0], leaves[path[0]], column)
    if len(found) < len(columns):
        raise LookupError("a column that is nested")
    return found


def _read_locations(data: bytes) -> tuple[_Ints, _Ints, _Ints]:
    """Return the offset, the size and the first row of each page of an offset index."""
    header = data[1]
    if data[0] != 0x19 or header & 15 != STRUCT:
        raise ValueError("no list of locations")
    at, count = 2, header >> 4
    if count == 15:
        count = shift = 0
        while True:
            count |= (data[at] & 127) << shift
            shift += 7
            at += 1
            if data[at - 1] < 128:
                break
    bytes_ = np.frombuffer(data, np.uint8, offset=at)
    # Headers have one byte, and a number ends with the first byte below 128.
    ends = np.flatnonzero(bytes_ < 128)[: 7 * count].reshape(count, 7)
    for number, wanted in enumerate(_LOCATION):
        if wanted is not None and not (bytes_[ends[:, number]] == wanted).all():
            raise ValueError("another form of locations")
    numbers = []
    for number in (1, 3, 5):
        first, last = ends[:, number - 1] + 1, ends[:, number]
        value = np.zeros(count, np.int64)
        for byte in range(int((last - first).max(initial=0)) + 1):
            is_there = first + byte <= last
            part = bytes_[np.minimum(first + byte, last)].astype(np.int64) & 127
            value |= np.where(is_there, part << (7 * byte), 0)
        # Numbers are written as zigzag; none here is negative.
        numbers.append(value >> 1)
    return numbers[0], numbers[1], numbers[2]


def _read_rows_of_pages(source: IO[bytes], pages: Pages, rows: _Ints) -> pa.ChunkedArray:
    wanted = pages.of(rows)
    parts: list[bytes] = []
    needs_dictionary = False
    for page in wanted.tolist():
        offset = int(pages.offsets[page])
        parts.append(_read(source, offset, offset + int(pages.sizes[page])))
        needs_dictionary |= _is_of_dictionary(parts[-1])
    first = [_read(source, *pages.dictionary)] if needs_dictionary and pages.dictionary is not None else []
    begins = len(_MAGIC) + sum(map(len, first))
    parts = [_MAGIC, *first, *parts]
    counts = np.diff(pages.first_rows)[wanted]
    total = int(counts.sum())
    footer = _footer(pages, begins, sum(map(len, parts)) - len(_MAGIC), total, has_dictionary=bool(first))
    data = b"".join([*parts, footer, len(footer).to_bytes(4, "little"), _MAGIC])
    table = pq.ParquetFile(pa.BufferReader(data), coerce_int96_timestamp_unit="us").read()
    # The number of each row among those of these pages.
    page = np.searchsorted(wanted, np.searchsorted(pages.first_rows, rows, "right") - 1)
    before = np.cumsum(counts) - counts
    return table.column(0).take(pa.array(rows - pages.first_rows[wanted][page] + before[page]))


def _is_of_dictionary(page: bytes) -> bool:
    """Return whether the values of a data page are numbers of those in a dictionary."""
    header, _ = read_struct(page)
    encoding = header[5][1][2][1] if 5 in header else header[8][1][4][1]
    return encoding in _DICTIONARIES


def _footer(pages: Pages, begins: int, size: int, rows: int, *, has_dictionary: bool) -> bytes:
    """Return the footer of a file of some pages of the column."""
    column = {number: pages.column[number] for number in (1, 2, 3, 4)}
    column |= {5: (I64, rows), 6: (I64, size), 7: (I64, size), 9: (I64, begins)}
    if has_dictionary:
        column[11] = (I64, len(_MAGIC))
    chunk: Struct = {2: (I64, 0), 3: (STRUCT, column)}
    group: Struct = {1: (LIST, (STRUCT, [chunk])), 2: (I64, size), 3: (I64, rows)}
    root: Struct = {**{number: each for number, each in pages.root.items() if number != 5}, 5: (I32, 1)}
    root = dict(sorted(root.items()))
    metadata: Struct = {
        1: (I32, 2),
        2: (LIST, (STRUCT, [root, pages.leaf])),
        3: (I64, rows),
        4: (LIST, (STRUCT, [group])),
        6: (BINARY, b"logicalrep"),
    }
    return written(metadata)


def _read(source: IO[bytes], first: int, end: int) -> bytes:
    source.seek(first)
    data = source.read(end - first)
    if len(data) != end - first:
        raise ValueError("it is cut off")
    return data
