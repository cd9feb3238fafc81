"""Loads the rows of all relations of a batch at once: what is done for each by itself costs as much as its values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from logicalrep.columnar.walked import PADDING, address, room
from logicalrep_pipeline.wide_columns import Found, Ints, Loaded, Reader, Rows

__all__ = ["Part", "load"]

Part = tuple[Reader, Found]
"""The old or the new rows of a relation's changes."""

_TEXT = ord("t")
_BINARY = ord("b")
_ALIGNED = 64


def load(data: Ints, parts: Sequence[Part]) -> list[Rows]:
    """The rows of each part as columns, from a batch's data.

    Raises:
        ValueError: a column has more than 2 GiB of text.
    """
    there = [(reader, found) for reader, found in parts if len(found.rows)]
    kernels = parts[0][0].kernels if parts else None
    loaded = iter(_by_kernels(kernels, data, there) if kernels is not None and there else map(_left, there))
    return [reader.rows(found, next(loaded) if len(found.rows) else _left((reader, found))) for reader, found in parts]


def _left(part: Part) -> Loaded:
    """All values are left, as where nothing is compiled."""
    reader, found = part
    states = np.zeros((len(reader.columns), found.count), np.int8)
    for index, in_key in enumerate(reader.in_key):
        rows, first = (found.rows, found.first) if in_key else (found.whole_rows, found.whole_first)
        states[index, rows] = found.cells.kinds[first + index]
    arrays = [pa.nulls(found.count, type_) for type_ in reader.types]
    left = {index: np.flatnonzero((line == _TEXT) | (line == _BINARY)) for index, line in enumerate(states)}
    return Loaded(
        arrays, lambda index: pa.py_buffer(states[index]), {index: rows for index, rows in left.items() if len(rows)}
    )


def _by_kernels(kernels: Any, data: Ints, parts: Sequence[Part]) -> list[Loaded]:
    """What the compiled loaders read of all parts, each column of which is a line of their table."""
    table = np.concatenate([_lines(kernels, *part) for part in parts])
    widths = np.concatenate([reader.widths for reader, _ in parts])
    counts = table[:, kernels.CHANGES]
    # All lie in one block: the states, the validity, then values or offsets, each at a multiple of 64 bytes.
    strides = -(-counts // (8 * _ALIGNED)) * 8 * _ALIGNED
    sizes = np.stack([strides, strides // 8, -(-widths * (counts + 1) // _ALIGNED) * _ALIGNED])
    places = (np.cumsum(sizes) - sizes.ravel()).reshape(3, -1)
    block = pa.allocate_buffer(int(sizes.sum()))
    whole = np.frombuffer(block, np.uint8)
    whole.fill(0)
    table[:, [kernels.STATES, kernels.VALIDITY, kernels.VALUES]] = block.address + places.T
    left = room(2 * int(table[:, kernels.COUNT].sum()), np.int64).reshape(-1, 2)
    to = address(table), len(table)
    count = kernels.load_rows(address(data), len(data), *to, block.address, block.size, address(left))
    totals = table[:, kernels.TOTAL]
    if totals.max(initial=0) > 2**31 - 1:
        raise ValueError("a column of more than 2 GiB takes smaller batches")
    table[:, kernels.TEXTS] = PADDING + np.cumsum(totals) - totals
    texts = pa.allocate_buffer(int(totals.sum()) + 2 * PADDING)
    characters = np.frombuffer(texts, np.uint8)
    characters[:PADDING] = characters[-PADDING:] = 0
    count = kernels.copy_rows(address(data), len(data), *to, texts.address, texts.size, address(left), count)

    of_lines = _by_line(left[:count])
    loaded = []
    lines = zip(
        *(table[:, entry].tolist() for entry in (kernels.CODE, kernels.TEXTS, kernels.TOTAL, kernels.VALUED)),
        widths.tolist(), *places.tolist(), strides.tolist(), strict=True,
    )  # fmt: skip
    numbered = enumerate(lines)
    for reader, found in parts:
        arrays, states, rest = [], [], {}
        for index, type_ in enumerate(reader.types):
            line, (code, start, total, valued, width, state, validity, values, stride) = next(numbered)
            states.append(block.slice(state, found.count))
            if line in of_lines:
                rest[index] = of_lines[line]
            buffers = [block.slice(validity, stride // 8) if valued < found.count else None]
            if code == kernels.OTHER:
                arrays.append(pa.nulls(found.count, type_))
                continue
            if code >= kernels.STRING:
                buffers += [block.slice(values, width * (found.count + 1)), texts.slice(start, total)]
            elif code == kernels.BOOLEAN:
                buffers.append(pa.py_buffer(np.packbits(whole[values : values + found.count], bitorder="little")))
            else:
                buffers.append(block.slice(values, width * found.count))
            arrays.append(pa.Array.from_buffers(type_, found.count, buffers, found.count - valued))
        loaded.append(Loaded(arrays, states.__getitem__, rest))
    return loaded


def _lines(kernels: Any, reader: Reader, found: Found) -> Ints:
    lines = reader.table.copy()
    for entry, of_any, of_whole in (
        (kernels.ROWS, address(found.rows), address(found.whole_rows)),
        (kernels.FIRST, address(found.first), address(found.whole_first)),
        (kernels.COUNT, len(found.rows), len(found.whole_rows)),
    ):
        lines[:, entry] = np.where(reader.in_key, of_any, of_whole)
    lines[:, kernels.CHANGES] = found.count
    for entry, of_cells in (
        (kernels.KINDS, found.cells.kinds),
        (kernels.STARTS, found.cells.starts),
        (kernels.LENGTHS, found.cells.lengths),
    ):
        lines[:, entry] = address(of_cells) + of_cells.itemsize * np.arange(len(lines))
    return lines


def _by_line(left: Ints) -> dict[int, Ints]:
    """The rows that are left of each line, in order."""
    result: dict[int, Ints] = {}
    for line in np.unique(left[:, 0]).tolist():
        result[line] = np.sort(left[left[:, 0] == line, 1])
    return result
