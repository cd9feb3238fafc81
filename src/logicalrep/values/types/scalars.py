"""Booleans, integers, floating-point numbers, strings of characters, bytes and bits, and identifiers.

In all modules of this folder a function named `…_text` takes the text format as str; `…_binary` takes the binary format
and the Python codec of the session's client_encoding; `format_…` returns PostgreSQL's text of a Python value. An
invalid value raises ValueError with the reason.
"""

from __future__ import annotations

import binascii
import math
import re
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from logicalrep.values.types.binary import BinaryReader, matching

# --- boolean ---------------------------------------------------------------------------------------------------


def boolean_text(text: str) -> bool:
    if text == "t":
        return True
    if text == "f":
        return False
    raise ValueError("neither t nor f")


def boolean_binary(value: bytes, encoding: str) -> bool:
    if value == b"\1":
        return True
    if value == b"\0":
        return False
    raise ValueError("neither the byte 0 nor the byte 1")


def format_boolean(value: bool) -> str:
    return "t" if value else "f"


# --- integers --------------------------------------------------------------------------------------------------

# int() alone would accept "1_0", " 1" and digits of other scripts.
_INTEGER = re.compile("-?[0-9]{1,20}").fullmatch


def integer_text(lowest: int, highest: int) -> Callable[[str], int]:
    def load(text: str) -> int:
        if not _INTEGER(text):
            raise ValueError("not an integer")
        value = int(text)
        if not lowest <= value <= highest:
            raise ValueError(f"not between {lowest} and {highest}")
        return value

    return load


# --- floating point --------------------------------------------------------------------------------------------

_FLOAT = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?|Infinity)|NaN").fullmatch


def float8_text(text: str) -> float:
    if not _FLOAT(text):
        raise ValueError("not a floating-point number")
    value = float(text)
    if not value:
        _refuse_underflow(text)
    elif math.isinf(value) and "Infinity" not in text:
        raise ValueError("too large for double precision")
    return value


def float4_text(text: str) -> float:
    """Return the nearest single-precision number, as in the server's own input and binary format."""
    value = float8_text(text)
    # Rounding twice, to double and then to single precision, goes wrong if the first step lands exactly between two
    # single-precision numbers: then the low 28 bits of the double are zero.
    if not struct.unpack("<q", struct.pack("<d", value))[0] & 0xFFFFFFF and math.isfinite(value):
        exact, rounded = Decimal(text), Decimal(value)
        if exact != rounded:
            value = math.nextafter(value, math.inf if exact > rounded else -math.inf)
    try:
        single: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        raise ValueError("too large for real") from None
    if not single:
        _refuse_underflow(text)
    return single


def _refuse_underflow(text: str) -> None:
    if any(digit in "123456789" for digit in text.partition("e")[0]):
        raise ValueError("too small: it would become zero")


# Below this no text of a double's shortest length lies exactly between two doubles.
_FIRST_TIE = 2.0**53


def format_float8(value: float) -> str:
    number = abs(value)
    if not math.isfinite(value) or number < _FIRST_TIE:
        return _format_float(value, repr(number), 15)
    below, above = Fraction(math.nextafter(number, 0)), Fraction(number) + Fraction(math.ulp(number))
    return _format_float(value, _shortest(number, below, above), 15)


def format_float4(value: float) -> str:
    number = abs(value)
    if not math.isfinite(value) or not value:
        return _format_float(value, "", 6)
    (bits,) = struct.unpack("<i", struct.pack("<f", number))
    below, above = struct.unpack("<2f", struct.pack("<2i", bits - 1, bits + 1))
    beyond = Fraction(2**128) if math.isinf(above) else Fraction(above)
    return _format_float(value, _shortest(number, Fraction(below), beyond), 6)


def _shortest(number: float, below: Fraction, above: Fraction) -> str:
    """Return the nearest of the shortest decimals that are nearer to `number` than to its neighbours.

    A decimal exactly halfway to a neighbour reads as `number` half of the time: Python accepts it where it reads
    right, PostgreSQL never does.
    """
    low, high = (below + Fraction(number)) / 2, (Fraction(number) + above) / 2
    for decimals in range(17):
        mantissa, _, power = f"{number:.{decimals}e}".partition("e")
        nearest, exponent = int(mantissa.replace(".", "")), int(power) - decimals
        # If the distance below is half of the distance above, the nearest decimal can be too far, the next near enough.
        for digits in (nearest, nearest - 1, nearest + 1):
            if low < digits * Fraction(10) ** exponent < high:
                return f"{digits}e{exponent}"
    return repr(number)


def _format_float(value: float, shortest: str, exponent_from: int) -> str:
    """Return `shortest` as the server writes it: with an exponent below 1e-04 and from 1e+15 (real: 1e+06)."""
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}Infinity"
    if not value:
        return f"{sign}0"
    number = Decimal(shortest)
    exponent = number.adjusted()
    if -4 <= exponent < exponent_from:
        text = f"{number:f}"
        return sign + (text.rstrip("0").rstrip(".") if "." in text else text)
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{exponent:+03d}"


# --- characters ------------------------------------------------------------------------------------------------


def text_text(text: str) -> str:
    return text


def text_binary(value: bytes, encoding: str) -> str:
    return str(value, encoding)


def versioned_text_binary(value: bytes, encoding: str) -> str:
    """Read text after the version byte 1: jsonb, jsonpath, and ltree's types."""
    if value[:1] != b"\1":
        raise ValueError("does not start with the version byte 1")
    return str(value[1:], encoding)


def char_text(text: str) -> str:
    """Read the one-byte type `"char"`: a character, nothing for the zero byte, `\\ooo` for a byte from 0x80."""
    if len(text) > 1 and not re.fullmatch(r"\\[2-3][0-7]{2}", text):
        raise ValueError("more than one character")
    return text


def char_binary(value: bytes, encoding: str) -> str:
    if len(value) != 1:
        raise ValueError(f"{len(value)} bytes where there should be 1")
    if value == b"\0":
        return ""
    return chr(value[0]) if value[0] < 0x80 else f"\\{value[0]:03o}"


# --- bytes and bits --------------------------------------------------------------------------------------------

_ESCAPED = re.compile(r"(?:[ -\[\]-~]|\\\\|\\[0-3][0-7]{2})*")
_ESCAPE = re.compile(rb"\\(\\|[0-7]{3})")


def bytea_text(text: str) -> bytes:
    """Read both forms of `bytea_output`, hex and escape. No value in the escape form starts with `\\x`."""
    if text.startswith("\\x"):
        # bytes.fromhex() would skip blanks; binascii does not.
        return binascii.unhexlify(text[2:])
    if not _ESCAPED.fullmatch(text):
        raise ValueError("neither the hex nor the escape form of bytea")
    return _ESCAPE.sub(lambda match: b"\\" if match[1] == b"\\" else bytes([int(match[1], 8)]), text.encode("ascii"))


def bytea_binary(value: bytes, encoding: str) -> bytes:
    return bytes(value)


def format_bytea(value: bytes) -> str:
    return f"\\x{value.hex()}"


bits_text = matching("[01]*", "a string of bits")


def bits_binary(value: bytes, encoding: str) -> str:
    reader = BinaryReader(value)
    length = reader.int32()
    if length < 0 or reader.remaining != (length + 7) // 8:
        raise ValueError(f"{length} bits in {reader.remaining} bytes")
    if not length:
        return ""
    number = int.from_bytes(reader.take(reader.remaining), "big")
    padding = -length % 8
    if number & ((1 << padding) - 1):
        raise ValueError("the bits after the last one are not zero")
    return f"{number >> padding:0{length}b}"


# --- identifiers -----------------------------------------------------------------------------------------------

_UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def uuid_text(text: str) -> uuid.UUID:
    # UUID() alone would accept braces, "urn:uuid:" and hyphens anywhere.
    if not _UUID.fullmatch(text):
        raise ValueError("not a UUID")
    return uuid.UUID(text)


def uuid_binary(value: bytes, encoding: str) -> uuid.UUID:
    if len(value) != 16:
        raise ValueError(f"{len(value)} bytes where there should be 16")
    return uuid.UUID(bytes=bytes(value))


lsn_text = matching("[0-9A-F]{1,8}/[0-9A-F]{1,8}", "an LSN")


def make_lsn(high: int, low: int) -> str:
    return f"{high:X}/{low:X}"


tid_text = matching(r"\(([0-9]{1,10}),([0-9]{1,5})\)", "a tuple identifier")


def make_tid(block: int, offset: int) -> str:
    return f"({block},{offset})"


snapshot_text = matching("[0-9]+:[0-9]+:(?:[0-9]+(?:,[0-9]+)*)?", "a snapshot")


def snapshot_binary(value: bytes, encoding: str) -> str:
    reader = BinaryReader(value)
    count = reader.int32()
    if count < 0 or reader.remaining != 16 + 8 * count:
        raise ValueError(f"{count} transactions in {reader.remaining} bytes")
    lowest, highest, *running = struct.unpack(f"!{count + 2}Q", reader.take(reader.remaining))
    return f"{lowest}:{highest}:{','.join(map(str, running))}"


_MONEY_DIGITS = 2


def money_binary_in_c_locale(value: bytes, encoding: str) -> str:
    """Return the server's text when lc_monetary is C: `-$1,234.56`."""
    if len(value) != 8:
        raise ValueError(f"{len(value)} bytes where there should be 8")
    cents = int.from_bytes(value, "big", signed=True)
    units, rest = divmod(abs(cents), 10**_MONEY_DIGITS)
    return f"{'-' if cents < 0 else ''}${units:,}.{rest:0{_MONEY_DIGITS}}"


def money_binary(value: bytes, encoding: str) -> str:
    raise ValueError(
        "the binary format of money counts the smallest units of the server's lc_monetary, which the protocol does "
        "not send: pass lc_monetary, or have the values sent as text"
    )


def no_binary(value: bytes, encoding: str) -> str:
    raise ValueError("this type has no known binary format")


_INT2_TEXT = integer_text(-(2**15), 2**15 - 1)
_OID_TEXT = integer_text(0, 2**32 - 1)


def int2vector_text(text: str) -> tuple[int, ...]:
    return tuple(map(_INT2_TEXT, text.split(" "))) if text else ()


def oidvector_text(text: str) -> tuple[int, ...]:
    return tuple(map(_OID_TEXT, text.split(" "))) if text else ()


def vector_binary(element_oid: int, layout: str) -> Callable[[bytes, str], tuple[int, ...]]:
    """Return a loader for int2vector or oidvector: a one-dimensional binary array that starts at 0 and has no NULL."""
    size = struct.calcsize(f"!{layout}")

    def load(value: bytes, encoding: str) -> tuple[int, ...]:
        reader = BinaryReader(value)
        dimensions, nulls, oid = reader.int32(), reader.int32(), reader.uint32()
        if nulls or oid != element_oid or dimensions not in (0, 1):
            raise ValueError("not the array header of a vector")
        if not dimensions:
            reader.end()
            return ()
        count, lower_bound = reader.int32(), reader.int32()
        if lower_bound or reader.remaining != count * (4 + size):
            raise ValueError(f"{count} elements from {lower_bound} on in {reader.remaining} bytes")
        parts = struct.unpack(f"!{f'i{layout}' * count}", reader.take(reader.remaining))
        if any(length != size for length in parts[::2]):
            raise ValueError(f"an element that is not {size} bytes long")
        return parts[1::2]

    return load


def format_vector(value: tuple[int, ...]) -> str:
    return " ".join(map(str, value))
