"""The bucket numbers of values; source: "Bucket Transform Details" and "Appendix B" of the Iceberg Table Spec."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_Words = NDArray[np.uint32]
_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)


def buckets_of(values: pa.Array, count: int) -> pa.Array:
    """Return the bucket of each value, from 0 to `count` - 1; NULL for NULL. Times must be in microseconds."""
    distinct = values.dictionary_encode()
    hashes = _hashes(distinct.dictionary)
    buckets = pa.array((hashes & np.uint32(0x7FFFFFFF)).astype(np.int64) % count, pa.int32())
    return buckets.take(distinct.indices)


def _hashes(values: pa.Array) -> _Words:
    """Return the 32-bit Murmur3 hashes of values; integers and dates are hashed as 64-bit integers."""
    type_ = values.type
    if pa.types.is_string(type_):
        whole = values.cast(pa.large_binary())
        _, offsets, data = whole.buffers()
        ends = np.frombuffer(offsets, np.int64)[whole.offset : whole.offset + len(whole) + 1]
        return _murmur3(np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8), ends)
    if pa.types.is_date(type_):
        values = values.cast(pa.int32())
    numbers = values.cast(pa.int64()).to_numpy(zero_copy_only=False).astype("<i8")
    return _murmur3(numbers.view(np.uint8), np.arange(len(numbers) + 1, dtype=np.int64) * 8)


def _murmur3(data: NDArray[np.uint8], ends: NDArray[np.int64]) -> _Words:
    """Return the hashes of concatenated texts; each step hashes the next word of all texts."""
    starts, lengths = ends[:-1], np.diff(ends)
    hashes: _Words = np.zeros(len(starts), np.uint32)
    if not len(hashes):
        return hashes
    size = int(ends[-1])
    padded = np.zeros(size + 4, np.uint8)
    padded[:size] = data[:size]
    words = np.ndarray((size + 1,), "<u4", padded, strides=(1,))
    at = 0
    unfinished = np.flatnonzero(lengths >= 4)
    while len(unfinished):
        hashes[unfinished] = _rotated(hashes[unfinished] ^ _mixed(words[starts[unfinished] + at]), 13) * np.uint32(
            5
        ) + np.uint32(0xE6546B64)
        at += 4
        unfinished = unfinished[lengths[unfinished] >= at + 4]
    partial = np.flatnonzero(lengths % 4)
    if len(partial):
        tails = words[starts[partial] + lengths[partial] // 4 * 4]
        shift = (8 * (4 - lengths[partial] % 4)).astype(np.uint32)
        hashes[partial] ^= _mixed((tails << shift) >> shift)
    hashes ^= lengths.astype(np.uint32)
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return hashes ^ (hashes >> np.uint32(16))


def _mixed(words: _Words) -> _Words:
    return _rotated(words * _C1, 15) * _C2


def _rotated(words: _Words, by: int) -> _Words:
    return (words << np.uint32(by)) | (words >> np.uint32(32 - by))
