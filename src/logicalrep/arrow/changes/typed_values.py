"""The values of change batches in a table's types."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.arrow.table.columns import LocatedValues, PresentRows, RowReader, Rows
from logicalrep.arrow.table.loading import load
from logicalrep.transactions.tags import NULL, TEXT
from logicalrep.values.native_loaders import NativeLoader


class TextReader:
    def __init__(self, reader: RowReader) -> None:
        self._reader = reader
        self._codes = reader.native_columns[:, 0].tolist()
        self._readers: dict[tuple[int, ...], RowReader] = {}

    def read(self, texts: Sequence[pa.Array], wanted: Collection[int]) -> Rows:
        """Return typed columns; unwanted columns are null, and values that do not fit, whose texts are in `unfit`."""
        reader, count = self._reader, len(texts[0]) if texts else 0
        parsed = tuple(index for index in sorted(wanted) if self._codes[index] != NativeLoader.STRING)
        loaded = self._load(texts, parsed, count) if parsed and count else None
        of_parsed = {index: number for number, index in enumerate(parsed)}

        def column(index: int) -> pa.Array:
            if loaded is not None and index in of_parsed:
                return loaded.values.column(of_parsed[index])
            return texts[index] if index in wanted else pa.nulls(count, reader.types[index])

        def states(index: int) -> pa.Buffer:
            is_valid = texts[index].is_valid().to_numpy(zero_copy_only=False)
            return pa.py_buffer(np.where(is_valid, TEXT, NULL).astype(np.uint8))

        unfit = {} if loaded is None else loaded.unfit
        if not texts:
            return Rows(pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([]))), unfit, states)
        arrays = [
            array if array.type == type_ else array.cast(type_)
            for array, type_ in zip(map(column, range(len(reader.types))), reader.types, strict=True)
        ]
        return Rows(pa.RecordBatch.from_arrays(arrays, schema=reader.schema), unfit, states)

    def _load(self, texts: Sequence[pa.Array], parsed: tuple[int, ...], count: int) -> Rows:
        width = len(parsed)
        kinds = np.empty((count, width), np.uint8)
        starts, lengths = np.empty((count, width), np.int64), np.empty((count, width), np.uint32)
        data: list[NDArray[np.uint8]] = []
        size = 0
        for number, index in enumerate(parsed):
            column = texts[index]
            _, offsets, values = column.buffers()
            ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + count + 1]
            starts[:, number] = ends[:-1] - ends[0] + np.int64(size)
            lengths[:, number] = np.diff(ends)
            kinds[:, number] = np.where(column.is_valid().to_numpy(zero_copy_only=False), TEXT, NULL)
            data.append(np.frombuffer(values or b"", np.uint8)[int(ends[0]) : int(ends[-1])])
            size += len(data[-1])
        source, rows = np.concatenate(data), np.arange(count)
        cells = LocatedValues(source, kinds.ravel(), starts.ravel(), lengths.ravel())
        present = PresentRows(cells, count, rows, rows * width, rows, rows * width)
        return load(source, [(self._reader_for(parsed), present)])[0]

    def _reader_for(self, parsed: tuple[int, ...]) -> RowReader:
        if parsed not in self._readers:
            columns = [self._reader.columns[index] for index in parsed]
            self._readers[parsed] = RowReader(columns, [True] * len(columns), for_spark=self._reader.for_spark)
        return self._readers[parsed]
