"""The loading of all relations' rows of a batch at once; one by one, the calls would cost as much as the values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from logicalrep.arrow.table.columns import Found, Ints, Loaded, RowReader, Rows
from logicalrep.transactions.errors import TooLargeError
from logicalrep.transactions.tags import BINARY, TEXT
from logicalrep_runtime.columnar.located import PADDING, address, padded_room, room

__all__ = ["Part", "load"]

Part = tuple[RowReader, Found]
"""The old or the new rows of a relation's changes."""

_ALIGNED = 64


def load(data: Ints, parts: Sequence[Part]) -> list[Rows]:
    """Return the rows of each part as columns, from a batch's data.

    Raises:
        ValueError: a column has more than 2 GiB of text.
    """
    there = [(reader, found) for reader, found in parts if len(found.rows)]
    loaded = iter(_by_kernels(there[0][0].kernels, data, there) if there else ())
    return [reader.rows(found, next(loaded) if len(found.rows) else _left((reader, found))) for reader, found in parts]


def _left(part: Part) -> Loaded:
    """Leave all values to the loaders of their types; tests compare the compiled loaders with this."""
    reader, found = part
    states = np.zeros((len(reader.columns), found.count), np.int8)
    for index, in_key in enumerate(reader.in_key.tolist()):
        rows, first = found.having(index, in_key=in_key)
        states[index, rows] = found.cells.kinds[first + index]
    arrays = [pa.nulls(found.count, type_) for type_ in reader.types]
    left = {index: np.flatnonzero((line == TEXT) | (line == BINARY)) for index, line in enumerate(states)}
    return Loaded(
        arrays, lambda index: pa.py_buffer(states[index]), {index: rows for index, rows in left.items() if len(rows)}
    )


def _by_kernels(kernels: Any, data: Ints, parts: Sequence[Part]) -> list[Loaded]:
    """Read all parts with the compiled loaders; each column is a line of their table."""
    table = _table(kernels, parts)
    counts, is_absent = table[:, kernels.CHANGES], table[:, kernels.COUNT] == 0
    # One block holds the states, the validity, then values or offsets, each at a multiple of 64 bytes.
    strides = -(-counts // (8 * _ALIGNED)) * 8 * _ALIGNED
    sizes = np.stack([strides, strides // 8, -(-table[:, kernels.WIDTH] * (counts + 1) // _ALIGNED) * _ALIGNED])
    # Columns without rows share the zeros at the front.
    nothing = int(sizes[:, is_absent].max(initial=0))
    sizes[:, is_absent] = 0
    places = nothing + (np.cumsum(sizes) - sizes.ravel()).reshape(3, -1)
    block = pa.allocate_buffer(nothing + int(sizes.sum()))
    whole = np.frombuffer(block, np.uint8)
    whole[:nothing].fill(0)
    table[:, [kernels.STATES, kernels.VALIDITY, kernels.VALUES]] = block.address + places.T
    left = room(2 * int(table[:, kernels.COUNT].sum()), np.int64).reshape(-1, 2)
    kernels.measure_rows(address(table), len(table))
    totals = table[:, kernels.TOTAL]
    if totals.max(initial=0) > 2**31 - 1:
        raise TooLargeError("a column of more than 2 GiB needs smaller batches")
    characters = padded_room(int(totals.sum()))
    texts = pa.py_buffer(characters)
    table[:, kernels.TEXTS] = table[:, kernels.NEXT] = PADDING + np.cumsum(totals) - totals
    count = kernels.load_rows(data, address(table), len(table), whole, block.address, characters, address(left))

    of_lines = _by_line(left[:count])
    zeros = block.slice(0, nothing)
    entries = kernels.CODE, kernels.WIDTH, kernels.COUNT, kernels.TEXTS, kernels.TOTAL, kernels.VALUED
    lines = enumerate(zip(*(table[:, entry].tolist() for entry in entries), *places[1:].tolist(), strict=True))
    loaded = []
    first = 0
    for reader, found in parts:
        arrays, rest = [], {}
        for index, type_ in enumerate(reader.types):
            line, (code, width, there, start, total, valued, validity, values) = next(lines)
            if line in of_lines:
                rest[index] = of_lines[line]
            if code == kernels.OTHER:
                arrays.append(pa.nulls(found.count, type_))
                continue
            if not there:
                buffers = [zeros] * (3 if code >= kernels.STRING else 2)
            else:
                buffers = [block.slice(validity, -(-found.count // 8)) if valued < found.count else None]
                if code >= kernels.STRING:
                    buffers += [block.slice(values, width * (found.count + 1)), texts.slice(start, total)]
                elif code == kernels.BOOLEAN:
                    buffers.append(pa.py_buffer(np.packbits(whole[values : values + found.count], bitorder="little")))
                else:
                    buffers.append(block.slice(values, width * found.count))
            arrays.append(pa.Array.from_buffers(type_, found.count, buffers, found.count - valued))
        of_part = np.where(is_absent, 0, places[0])[first : first + len(arrays)]
        loaded.append(Loaded(arrays, _states(block, of_part, found.count), rest))
        first += len(arrays)
    return loaded


def _states(block: pa.Buffer, places: Ints, count: int) -> Callable[[int], pa.Buffer]:
    """Return the states of each column of a part. They are made late, as few callers need them."""
    return lambda index: block.slice(int(places[index]), count)


def _table(kernels: Any, parts: Sequence[Part]) -> Ints:
    """Return the lines of all parts' columns."""
    widths = [len(reader.columns) for reader, _ in parts]
    table = np.concatenate([reader.table for reader, _ in parts])
    in_key = np.concatenate([reader.in_key for reader, _ in parts])[:, None]
    of_parts = [
        [
            *(address(found.rows), address(found.first), len(found.rows)),
            *(address(found.whole_rows), address(found.whole_first), len(found.whole_rows)),
            *(found.count, address(found.cells.kinds), address(found.cells.starts), address(found.cells.lengths)),
        ]
        for _, found in parts
    ]
    facts = np.repeat(np.array(of_parts, np.int64), widths, axis=0)
    table[:, [kernels.ROWS, kernels.FIRST, kernels.COUNT]] = np.where(in_key, facts[:, :3], facts[:, 3:6])
    line = 0
    for (_, found), width in zip(parts, widths, strict=True):
        for index, (rows, first) in found.more.items():
            table[line + index, [kernels.ROWS, kernels.FIRST, kernels.COUNT]] = address(rows), address(first), len(rows)
        line += width
    table[:, kernels.CHANGES] = facts[:, 6]
    cells = parts[0][1].cells
    sizes = [cells.kinds.itemsize, cells.starts.itemsize, cells.lengths.itemsize]
    indices = np.concatenate([np.arange(width) for width in widths])[:, None]
    table[:, [kernels.KINDS, kernels.STARTS, kernels.LENGTHS]] = facts[:, 7:] + sizes * indices
    return table


def _by_line(left: Ints) -> dict[int, Ints]:
    """Return the rows that are left of each line, in order."""
    result: dict[int, Ints] = {}
    for line in np.unique(left[:, 0]).tolist():
        result[line] = np.sort(left[left[:, 0] == line, 1])
    return result
