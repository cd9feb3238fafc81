"""Text validation and conversion for session encodings other than UTF-8."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep_runtime.columnar.located import Bytes, Ints


def are_valid(data: Bytes, starts: Ints, lengths: Ints, encoding: str) -> NDArray[np.bool_]:
    """Return whether each text can be decoded. Decodes text by text, as only the codec knows."""
    result = np.ones(len(starts), bool)
    buffer = data.data
    for index, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        try:
            str(buffer[start : start + length], encoding)
        except ValueError:
            result[index] = False
    return result


def transcoded(offsets: Ints, values: pa.Buffer, encoding: str) -> tuple[pa.Buffer, pa.Buffer]:
    buffer = memoryview(values)
    ends = offsets.tolist()
    texts = [str(buffer[start:end], encoding).encode() if start < end else b"" for start, end in pairwise(ends)]
    new_offsets = np.zeros(len(offsets), offsets.dtype)
    np.cumsum([len(text) for text in texts], out=new_offsets[1:])
    return pa.py_buffer(new_offsets), pa.py_buffer(b"".join(texts))
