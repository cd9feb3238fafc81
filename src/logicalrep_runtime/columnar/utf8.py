"""UTF-8 validation of one text, or of many adjacent texts at once, in a fraction of the time."""

from __future__ import annotations

import functools
from typing import Any

from logicalrep_runtime.columnar.located import Bytes, Ints
from logicalrep_runtime.columnar.memory import (
    LANES,
    checked,
    compiled,
    int64,
    intrinsic,
    ir,
    lane_bits,
    load_lanes,
    read,
    types,
    uint8,
)


@compiled
def is_utf8(data: Bytes, start: int, end: int) -> bool:
    """Return whether bytes are UTF-8 as Python defines it: shortest forms, no surrogates, up to U+10FFFF."""
    offset = start
    while offset < end:
        if end - offset >= 8 and int64(data, offset) & -0x7F7F7F7F7F7F7F80 == 0:
            offset += 8
            continue
        first = uint8(data, offset)
        offset += 1
        if first < 0x80:
            continue
        low = 0x80
        high = 0xBF
        if 0xC2 <= first <= 0xDF:
            more = 1
        elif 0xE0 <= first <= 0xEF:
            more = 2
            if first == 0xE0:
                low = 0xA0
            elif first == 0xED:
                high = 0x9F
        elif 0xF0 <= first <= 0xF4:
            more = 3
            if first == 0xF0:
                low = 0x90
            elif first == 0xF4:
                high = 0x8F
        else:
            return False
        if end - offset < more:
            return False
        for _ in range(more):
            byte = uint8(data, offset)
            if byte < low or byte > high:
                return False
            low = 0x80
            high = 0xBF
            offset += 1
    return True


@intrinsic
def _errors(typing_context: Any, data: Any, offset: Any) -> Any:
    """Return a bit for each of 32 bytes: 1 if the byte cannot follow the three bytes before it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data, offset = arguments
        here, previous, second, third = (
            load_lanes(context, builder, signature.args[0], data, builder.sub(offset, offset.type(distance)))
            for distance in range(4)
        )

        def compare(how: str, bytes_: Any, byte: int) -> Any:
            return builder.icmp_unsigned(how, bytes_, ir.Constant(bytes_.type, [byte] * LANES))

        def either(*conditions: Any) -> Any:
            return functools.reduce(builder.or_, conditions)

        continues = builder.and_(compare(">=", here, 0x80), compare("<", here, 0xC0))
        is_to = either(compare(">=", previous, 0xC0), compare(">=", second, 0xE0), compare(">=", third, 0xF0))
        errors = either(
            builder.xor(continues, is_to),
            compare("==", here, 0xC0),
            compare("==", here, 0xC1),
            compare(">=", here, 0xF5),
            builder.and_(compare("==", previous, 0xE0), compare("<", here, 0xA0)),
            builder.and_(compare("==", previous, 0xED), compare(">=", here, 0xA0)),
            builder.and_(compare("==", previous, 0xF0), compare("<", here, 0x90)),
            builder.and_(compare("==", previous, 0xF4), compare(">=", here, 0x90)),
        )
        return lane_bits(builder, errors)

    return types.int64(data, types.int64), generate


_errors_at = checked(_errors, LANES)


@intrinsic
def _beyond_ascii(typing_context: Any, data: Any, offset: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = load_lanes(context, builder, signature.args[0], *arguments)
        return lane_bits(builder, builder.icmp_signed("<", lanes, ir.Constant(lanes.type, [0] * LANES)))

    return types.int64(data, types.int64), generate


_beyond_ascii_at = checked(_beyond_ascii, LANES)


@compiled
def are_utf8(texts: Bytes, start: int, length: int, ends: Ints) -> bool:
    """Return whether all texts are UTF-8. True is certain; after False check each text with `is_utf8`.

    The texts are adjacent in `texts` from `start` on, with PADDING more bytes on either side; `ends` has 0, then the
    end of each text.
    """
    first, end = start, start + length
    while first < end and _beyond_ascii_at(texts, first) == 0:
        first += LANES
    if first >= end:
        return True
    # If all texts together are UTF-8, so is each text that does not begin in the middle of a character.
    errors = uint8(texts, end - 1) >= 0xC0 or uint8(texts, end - 2) >= 0xE0 or uint8(texts, end - 3) >= 0xF0
    for offset in range(first, end, LANES):
        errors |= _errors_at(texts, offset) != 0
    for index in range(len(ends) - 1):
        errors |= uint8(texts, start + read(ends, index)) & 0xC0 == 0x80
    return not errors
