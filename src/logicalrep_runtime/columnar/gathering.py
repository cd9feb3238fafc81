"""Values copied together by their positions, as `logicalrep-native` does it; used without `logicalrep-native`."""

from __future__ import annotations

import numpy as np

from logicalrep_runtime.columnar.located import Bytes, Int64s, Ints


def gather(data: Bytes, starts: Int64s, lengths: Ints, offsets: Ints, values: Bytes) -> None:
    """Concatenate values. `offsets` receives the start of each value and, last, the total size."""
    ends = starts + lengths.astype(np.int64)
    _check(bool(((starts >= 0) & (ends >= starts) & (ends <= len(data))).all()))
    offsets[0] = 0
    offsets[1:] = np.cumsum(lengths)
    if len(starts) and (starts[1:] == ends[:-1]).all():
        # Adjacent, as copied by the walk by `parse`.
        gathered = data[int(starts[0]) : int(ends[-1])]
    else:
        parts = [data[start:end].tobytes() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        gathered = np.frombuffer(b"".join(parts), np.uint8)
    _check(len(gathered) <= len(values))
    values[: len(gathered)] = gathered


def gather_texts(data: Bytes, spans: Int64s, offsets: Ints, values: Bytes) -> None:
    """Concatenate the values of spans. `offsets` receives the start of each row and, last, the total size."""
    spread_lists(spans, offsets)
    _, starts, lengths = spans.reshape(-1, 3).T
    gather(data, starts, lengths, np.empty(len(starts) + 1, np.int64), values)


def spread_lists(spans: Int64s, offsets: Ints) -> None:
    """Write the start of each row's list among the items of all lists, and last their number."""
    rows, _, lengths = spans.reshape(-1, 3).T
    _check(bool(((rows >= 0) & (rows < len(offsets) - 1) & (lengths >= 0)).all()))
    sizes = np.zeros(len(offsets), np.int64)
    sizes[rows + 1] = lengths
    offsets[:] = np.cumsum(sizes)


def _check(fits: bool) -> None:
    if not fits:
        raise ValueError("positions lie outside of the data, or the arrays are too short")
