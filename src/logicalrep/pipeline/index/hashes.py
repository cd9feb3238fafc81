"""64-bit hashes of keys in numpy: equal keys have equal hashes; distinct integers have distinct hashes.

Each index has its own random number, so that nobody can choose keys with equal hashes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

FORM = 2
"""The version of the hash function; an index of another version is rebuilt."""
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_WORD = 8


def hashes_of(keys: pa.Array, salt: int) -> Hashes:
    """Return the hash of each key, evenly distributed over all 64-bit numbers; any number for null.

    Args:
        keys: integers, dates, texts or bytes, as `row_keys` returns them.
        salt: the random number of the index, of 64 bits.

    Example:
        >>> len(set(hashes_of(pa.array([1, 2, 3]), 17).tolist()))
        3
    """
    type_ = keys.type
    if pa.types.is_integer(type_) or pa.types.is_date(type_):
        numbers = keys.cast(pa.int32()) if pa.types.is_date32(type_) else keys
        if numbers.null_count:
            numbers = pc.fill_null(numbers, 0)
        words = numbers.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
        return _mixed((words ^ np.uint64(salt)) + _STEP)
    return _of_bytes(keys.cast(pa.large_binary()), np.uint64(salt))


def _mixed(numbers: Hashes) -> Hashes:
    """Return a bijective mix of numbers: each bit depends on all bits (the finalizer of splitmix64)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _FIRST
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _SECOND
    return numbers ^ (numbers >> np.uint64(31))


def _of_bytes(keys: pa.Array, salt: np.uint64) -> Hashes:
    """Mix each key's length, then its words one after another; the last word is padded with zeros.

    Each word is mixed with the salt before: without the salt, the difference that a word makes is unknown.
    """
    if not len(keys):
        return np.zeros(0, np.uint64)
    _, offsets, data = keys.buffers()
    ends = np.frombuffer(offsets, np.int64)[keys.offset : keys.offset + len(keys) + 1]
    starts, lengths = ends[:-1], np.diff(ends)
    key_hashes = _mixed((lengths.astype(np.uint64) ^ salt) + _STEP)
    # Zeros after the last key, so that a word can be read at each position.
    size = int(ends[-1])
    padded = np.zeros(size + _WORD, np.uint8)
    if data is not None:
        padded[:size] = np.frombuffer(data, np.uint8, size)
    words = np.ndarray((size + 1,), "<u8", padded, strides=(1,))
    unfinished = np.flatnonzero(lengths > 0)
    position = 0
    while len(unfinished):
        word, remaining = words[starts[unfinished] + position], lengths[unfinished] - position
        is_last = remaining < _WORD
        shift = (_WORD * (_WORD - remaining[is_last])).astype(np.uint64)
        word[is_last] = (word[is_last] << shift) >> shift
        key_hashes[unfinished] = _mixed((key_hashes[unfinished] ^ _mixed(word ^ salt)) + _STEP)
        position += _WORD
        unfinished = unfinished[remaining > _WORD]
    return key_hashes
