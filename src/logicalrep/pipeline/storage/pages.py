"""Reads of a few rows of a Parquet file's column, from the pages that have these rows.

pyarrow reads a column as a whole. So this module builds a Parquet file in memory from these pages, unchanged, and a
footer that lists no other page. The file's offset index has the locations of the pages. Source: "Parquet Page Index"
and `parquet.thrift` of Apache Parquet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.pipeline.storage.parquet_files import ParquetFile
from logicalrep.pipeline.storage.store_files import StoreFile
from logicalrep.pipeline.storage.thrift import BINARY, I32, I64, LIST, STRUCT, Struct, encoded, read_struct

_Ints = NDArray[np.int64]
_MAGIC = b"PAR1"
_SPARSE = 2
"""Single pages are read if they have at most the column's bytes divided by this factor."""
_DICTIONARIES = (2, 8)
"""The encodings of pages that need the column's dictionary."""
_FOOTER = 4 << 10
"""Size of the first read at the end of a file, in bytes: most footers are smaller."""
_LOCATION = [0x16, None, 0x15, None, 0x16, None, 0x00]
"""A page's location in an offset index: headers of fields, and None for the offset, the size and the first row."""


@dataclass(frozen=True)
class Pages:
    """The locations of a column's pages in a file of one row group."""

    offsets: _Ints
    sizes: _Ints
    first_rows: _Ints
    """The number of each page's first row, then the number of all rows."""
    dictionary: tuple[int, int] | None
    """The start and the end of the page with the column's dictionary."""
    root: Struct
    leaf: Struct
    """The schema's root element, and the column's element."""
    column: Struct
    """The metadata of the column."""

    def page_numbers(self, rows: _Ints) -> _Ints:
        """Return the numbers of the pages that have the given rows."""
        return np.unique(np.searchsorted(self.first_rows, rows, "right") - 1)

    def bounds(self, page: int) -> tuple[int, int]:
        """Return the start and the end of a page."""
        return int(self.offsets[page]), int(self.offsets[page] + self.sizes[page])


class PagedSource:
    """A Parquet file whose pages are read one by one."""

    def __init__(self, source: IO[bytes], size: int, pages: dict[str, Pages] | None = None) -> None:
        """Take the open file, its size in bytes, and the cached pages by column, which reads add to."""
        self._source, self._size = source, size
        self._pages = {} if pages is None else pages

    def read_rows(self, columns: Sequence[str], rows: _Ints) -> pa.Table | None:
        """Return columns of rows, by ascending row numbers.

        Returns None if the pages are a large part of the columns, or if a file of another program has no usable offset
        index. Raises pyarrow.ArrowInvalid for damaged pages.
        """
        try:
            unread = [name for name in columns if name not in self._pages]
            if unread:
                self._pages |= _read_pages(self._source, self._size, unread)
            pages = {name: self._pages[name] for name in columns}
        except (ValueError, LookupError):
            return None
        page_numbers = {name: column_pages.page_numbers(rows) for name, column_pages in pages.items()}
        size = sum(int(pages[name].sizes[numbers].sum()) for name, numbers in page_numbers.items())
        if _SPARSE * size > sum(int(column_pages.sizes.sum()) for column_pages in pages.values()):
            return None
        data = iter(
            _read_parts(self._source, [pages[name].bounds(page) for name in columns for page in page_numbers[name]])
        )
        return pa.table(
            {
                name: _rows_in_pages(
                    self._source, pages[name], page_numbers[name], [next(data) for _ in page_numbers[name]], rows
                )
                for name in columns
            }
        )


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
    chunks: dict[str, Struct] = {}
    for chunk in group[1][1][1]:
        path = [bytes(part).decode() for part in chunk[3][1][3][1][1]]
        if len(path) == 1 and path[0] in columns:
            chunks[path[0]] = chunk
    indexes = _read_parts(source, [(chunk[4][1], chunk[4][1] + chunk[5][1]) for chunk in chunks.values()])
    pages: dict[str, Pages] = {}
    for (name, chunk), index in zip(chunks.items(), indexes, strict=True):
        column = chunk[3][1]
        offsets, sizes, rows = _locations(index)
        dictionary = (column[11][1], int(offsets[0])) if 11 in column else None
        first_rows = np.append(rows, group[3][1])
        pages[name] = Pages(offsets, sizes, first_rows, dictionary, elements[0], leaves[name], column)
    if len(pages) < len(columns):
        raise LookupError("a column that is nested")
    return pages


def _locations(data: bytes) -> tuple[_Ints, _Ints, _Ints]:
    """Return the offsets, the sizes and the first rows of the pages of an offset index."""
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
    for number, expected in enumerate(_LOCATION):
        if expected is not None and not (bytes_[ends[:, number]] == expected).all():
            raise ValueError("another form of locations")
    numbers = []
    for number in (1, 3, 5):
        first, last = ends[:, number - 1] + 1, ends[:, number]
        value = np.zeros(count, np.int64)
        for byte in range(int((last - first).max(initial=0)) + 1):
            is_in_number = first + byte <= last
            part = bytes_[np.minimum(first + byte, last)].astype(np.int64) & 127
            value |= np.where(is_in_number, part << (7 * byte), 0)
        # Thrift encodes numbers as zigzag; no location is negative.
        numbers.append(value >> 1)
    return numbers[0], numbers[1], numbers[2]


def _rows_in_pages(
    source: IO[bytes], pages: Pages, page_numbers: _Ints, parts: list[bytes], rows: _Ints
) -> pa.ChunkedArray:
    counts = np.diff(pages.first_rows)[page_numbers]
    headers = [_read_header(part) for part in parts]
    # Checksums of pages do not cover the index of locations.
    if [rows_in_page for rows_in_page, _ in headers] != counts.tolist():
        raise pa.ArrowInvalid("its index of pages does not match its pages")
    needs_dictionary = any(encoding in _DICTIONARIES for _, encoding in headers)
    dictionary = _read_parts(source, [pages.dictionary]) if needs_dictionary and pages.dictionary is not None else []
    begins = len(_MAGIC) + sum(map(len, dictionary))
    parts = [_MAGIC, *dictionary, *parts]
    total = int(counts.sum())
    footer = _footer(pages, begins, sum(map(len, parts)) - len(_MAGIC), total, has_dictionary=bool(dictionary))
    data = b"".join([*parts, footer, len(footer).to_bytes(4, "little"), _MAGIC])
    table = ParquetFile(pa.BufferReader(data)).read()
    # Each row's page, as an index into `page_numbers`.
    indexes = np.searchsorted(page_numbers, np.searchsorted(pages.first_rows, rows, "right") - 1)
    starts = np.cumsum(counts) - counts
    return table.column(0).take(pa.array(rows - pages.first_rows[page_numbers][indexes] + starts[indexes]))


def _read_header(page: bytes) -> tuple[int, int]:
    """Return the number of values and the encoding of a page of data. Raises pyarrow.ArrowInvalid for another page."""
    try:
        header, _ = read_struct(page)
        values, encoding = (
            (header[5][1][number][1] for number in (1, 2))
            if 5 in header
            else (header[8][1][number][1] for number in (1, 4))
        )
    except (ValueError, LookupError, TypeError) as error:
        raise pa.ArrowInvalid(f"a page has no header: {error}") from None
    return values, encoding


def _footer(pages: Pages, begins: int, size: int, rows: int, *, has_dictionary: bool) -> bytes:
    column = {number: pages.column[number] for number in (1, 2, 3, 4)}
    column |= {5: (I64, rows), 6: (I64, size), 7: (I64, size), 9: (I64, begins)}
    if has_dictionary:
        column[11] = (I64, len(_MAGIC))
    chunk: Struct = {2: (I64, 0), 3: (STRUCT, column)}
    group: Struct = {1: (LIST, (STRUCT, [chunk])), 2: (I64, size), 3: (I64, rows)}
    root: Struct = {**{number: value for number, value in pages.root.items() if number != 5}, 5: (I32, 1)}
    root = dict(sorted(root.items()))
    metadata: Struct = {
        1: (I32, 2),
        2: (LIST, (STRUCT, [root, pages.leaf])),
        3: (I64, rows),
        4: (LIST, (STRUCT, [group])),
        6: (BINARY, b"logicalrep"),
    }
    return encoded(metadata)


def _read_parts(source: IO[bytes], parts: Sequence[tuple[int, int]]) -> list[bytes]:
    if isinstance(source, StoreFile):
        return source.read_parts(parts)
    return [_read(source, first, end) for first, end in parts]


def _read(source: IO[bytes], first: int, end: int) -> bytes:
    source.seek(first)
    data = source.read(end - first)
    if len(data) != end - first:
        raise ValueError("it is cut off")
    return data
