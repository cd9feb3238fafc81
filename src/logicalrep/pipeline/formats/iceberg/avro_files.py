"""Files of Avro, checked before pyiceberg reads them.

pyiceberg takes a truncated file for a shorter one, and decompresses blocks of any size. Source: "Object Container
Files" in the specification of Apache Avro.
"""

from __future__ import annotations

import zlib
from typing import Any

import pyarrow as pa
from pyiceberg.avro.file import AvroFile
from pyiceberg.io import InputFile

_SYNC_BYTES = 16
_ARROW_CODECS = {"bzip2": "bz2", "zstandard": "zstd"}


def check_avro(file: InputFile, most_bytes: int) -> int:
    """Return the number of records in a file.

    Raises many kinds of errors for a damaged file, and ValueError for more than `most_bytes` of decompressed blocks.
    """
    count, room = 0, most_bytes
    with AvroFile[Any](file) as opened:
        decoder, sync = opened.decoder, opened.header.sync
        codec = opened.header.meta.get("avro.codec", "null")
        while decoder.tell() < len(file):
            records, block = decoder.read_int(), decoder.read_bytes()
            if decoder.read(_SYNC_BYTES) != sync:
                raise ValueError("a block does not end with the file's marker")
            size = len(_decompressed(codec, block, room))
            # Each record of Iceberg has at least one byte.
            if not 0 <= records <= size or size > room:
                raise ValueError(f"a block has {records} records, or more than {most_bytes} bytes")
            count, room = count + records, room - size
    return count


def _decompressed(codec: str, block: bytes, most_bytes: int) -> bytes:
    """Return a decompressed block, up to one byte more than `most_bytes`."""
    if codec == "null":
        return block
    if codec == "deflate":
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(block, most_bytes + 1)
    if codec in _ARROW_CODECS:
        with pa.CompressedInputStream(pa.BufferReader(block), _ARROW_CODECS[codec]) as stream:
            return bytes(stream.read(most_bytes + 1))
    raise ValueError(f"its blocks are compressed by {codec}, which replicate does not read")
