"""The loading of all relations' rows of a batch at once; one by one, the calls would cost as much as the values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.arrow.kernels.lines import BOOLEAN, LINE, OTHER, STRING, ColumnLine
from logicalrep.arrow.table.columns import FoundRows, LoadedColumns, RowReader, Rows, ValuePlaces
from logicalrep.transactions.errors import TooLargeError
from logicalrep_runtime.columnar.located import PADDING, Bytes, Int64s, Records, padded_room, room

__all__ = ["Part", "load"]

Part = tuple[RowReader, FoundRows]
"""The old or the new rows of a relation's changes."""

_ALIGNED = 64


def load(data: Bytes, parts: Sequence[Part]) -> list[Rows]:
    """Return the rows of each part as columns, from a batch's data.

    Raises:
        ValueError: a column has more than 2 GiB of text.
    """
    there = [part for part in parts if len(part[1].rows)]
    loaded = iter(_by_kernels(data, there) if there else ())
    return [reader.rows(found, next(loaded) if len(found.rows) else _nothing(reader, found)) for reader, found in parts]


def _nothing(reader: RowReader, found: FoundRows) -> LoadedColumns:
    """Return the columns of a part without rows."""
    arrays = [pa.nulls(found.count, type_) for type_ in reader.types]
    return LoadedColumns(arrays, lambda index: pa.py_buffer(bytes(found.count)), {})


def _by_kernels(data: Bytes, parts: Sequence[Part]) -> list[LoadedColumns]:
    """Read all parts with the compiled loaders, each column by its line."""
    # Imported late: importing the compiled loops takes a while.
    from logicalrep.arrow.kernels.finding import Places
    from logicalrep.arrow.kernels.loaders import CellLocations, Left, Output, load_rows, measure_rows

    # The loaders are compiled for bytes that cannot be written to, and not once more for a caller's that can be.
    data = data.view()
    data.flags.writeable = False
    sides = list({id(found.cells): found.cells for _, found in parts}.values())
    lines, rows, first = _lines(parts, sides)
    places = Places(_joined(rows), _joined(first))
    old, new = (CellLocations(side.kinds, side.starts, side.lengths) for side in (sides[0], sides[-1]))
    measure_rows(lines, (old, new), places)
    totals = lines["total"]
    if totals.max(initial=0) > 2**31 - 1:
        raise TooLargeError("a column of more than 2 GiB needs smaller batches")
    lines["texts"] = lines["next"] = PADDING + np.cumsum(totals) - totals
    memory = _Memory.of(lines, int(totals.sum()))
    left = Left(*room(2 * int(lines["having"].sum()), np.int64).reshape(2, -1))
    out = Output(*(memory.bytes.view(dtype) for dtype in ("u1", "i2", "i4", "i8", "f4", "f8")))
    count = load_rows(data, lines, (old, new), places, out, memory.characters, left)

    of_lines = _by_line(left.lines[:count], left.rows[:count])
    known = enumerate(map(ColumnLine._make, lines.tolist()))
    return [_loaded(memory, reader, list(islice(known, len(reader.types))), of_lines) for reader, _ in parts]


def _lines(parts: Sequence[Part], sides: Sequence[ValuePlaces]) -> tuple[Records, list[Int64s], list[Int64s]]:
    """Return the lines of all parts' columns, without places in the output; and the rows that columns have."""
    lines = np.concatenate([reader.lines for reader, _ in parts]).view(LINE).ravel()
    rows: list[Int64s] = []
    first: list[Int64s] = []
    place = start = 0

    def enter(its: Records, which: int | slice | NDArray[np.bool_], having: tuple[Int64s, Int64s]) -> None:
        nonlocal place
        its["first"][which], its["having"][which] = place, len(having[0])
        rows.append(having[0])
        first.append(having[1])
        place += len(having[0])

    for reader, found in parts:
        its = lines[start : start + len(reader.columns)]
        start += len(its)
        its["side"], its["changes"] = sides[0] is not found.cells, found.count
        if found.whole_rows is found.rows:
            enter(its, slice(None), (found.rows, found.first))
            continue
        enter(its, reader.in_key, (found.rows, found.first))
        enter(its, ~reader.in_key, (found.whole_rows, found.whole_first))
        for index, having in found.more.items():
            enter(its, index, having)
    return lines, rows, first


def _joined(arrays: Sequence[Int64s]) -> Int64s:
    return np.concatenate(arrays, out=room(sum(map(len, arrays)), np.int64))


@dataclass(frozen=True, slots=True)
class _Memory:
    """The memory that lines are loaded into."""

    block: pa.Buffer
    """The states, the validity, then values or offsets, each at a multiple of 64 bytes; zeros at the front."""
    bytes: Bytes
    """The same memory."""
    zeros: pa.Buffer
    """Zeros for all columns without rows."""
    characters: Bytes
    texts: pa.Buffer
    """The same memory."""

    @classmethod
    def of(cls, lines: Records, text_size: int) -> _Memory:
        """Make the memory, and enter the places of the output into the lines."""
        counts, widths, is_absent = lines["changes"], lines["width"], lines["having"] == 0
        strides = -(-counts // (8 * _ALIGNED)) * 8 * _ALIGNED
        sizes = np.stack([strides, strides // 8, -(-widths * (counts + 1) // _ALIGNED) * _ALIGNED])
        nothing = int(sizes[:, is_absent].max(initial=0))
        sizes[:, is_absent] = 0
        places = nothing + (np.cumsum(sizes) - sizes.ravel()).reshape(3, -1)
        lines["states"], lines["validity"] = np.where(is_absent, 0, places[0]), places[1] // 4
        lines["values"] = places[2] // np.maximum(widths, 1)
        block = pa.allocate_buffer(nothing + int(sizes.sum()))
        whole = np.frombuffer(block, np.uint8)
        whole[:nothing].fill(0)
        characters = padded_room(text_size)
        return cls(block, whole, block.slice(0, nothing), characters, pa.py_buffer(characters))

    def array(self, line: ColumnLine, type_: pa.DataType) -> pa.Array:
        """Return a line's values."""
        if line.code == OTHER:
            return pa.nulls(line.changes, type_)
        if not line.having:
            buffers = [self.zeros] * (3 if line.code >= STRING else 2)
        else:
            is_full = line.valued == line.changes
            buffers = [None if is_full else self.block.slice(4 * line.validity, -(-line.changes // 8))]
            start = line.width * line.values
            if line.code >= STRING:
                buffers.append(self.block.slice(start, line.width * (line.changes + 1)))
                buffers.append(self.texts.slice(line.texts, line.total))
            elif line.code == BOOLEAN:
                values = self.bytes[start : start + line.changes]
                buffers.append(pa.py_buffer(np.packbits(values, bitorder="little")))
            else:
                buffers.append(self.block.slice(start, line.width * line.changes))
        return pa.Array.from_buffers(type_, line.changes, buffers, line.changes - line.valued)


def _loaded(
    memory: _Memory, reader: RowReader, lines: Sequence[tuple[int, ColumnLine]], left: dict[int, Int64s]
) -> LoadedColumns:
    """Return the columns of one part. The states are made late, as few callers need them."""
    arrays = [memory.array(line, type_) for (_, line), type_ in zip(lines, reader.types, strict=True)]
    rest = {index: left[number] for index, (number, _) in enumerate(lines) if number in left}
    return LoadedColumns(
        arrays, lambda index: memory.block.slice(lines[index][1].states, lines[index][1].changes), rest
    )


def _by_line(lines: Int64s, rows: Int64s) -> dict[int, Int64s]:
    """Return the rows that are left of each line, in order."""
    return {line: np.sort(rows[lines == line]) for line in np.unique(lines).tolist()}
