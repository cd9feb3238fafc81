"""The names of the native loops that read values in the text format."""

from __future__ import annotations

from enum import IntEnum


class NativeLoader(IntEnum):
    """A native loop that reads texts into an Arrow type's arrays, and leaves other values to the type's loader.

    The loops from STRING on write texts or bytes; UUID and NUMBER check the form of the text.
    """

    NONE = 0
    INT16 = 1
    INT32 = 2
    INT64 = 3
    OID = 4
    BOOLEAN = 5
    FLOAT32 = 6
    FLOAT64 = 7
    DECIMAL = 8
    DATE = 9
    TIMESTAMP = 10
    TIMESTAMPTZ = 11
    STRING = 12
    UUID = 13
    NUMBER = 14
    BYTES = 15
