"""The documentation's types: "Int32 (Oid)", "Byte1('K') | Byte1('O')", "Byten".

The documentation explains its notation under "Message Data Types". The spec adds alternatives joined by "|", for two
optional rows on the page, and the name of a part as a type.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

INT_WIDTHS = {"Int8": 1, "Int16": 2, "Int32": 4, "Int64": 8}
"""The integer types and their widths in bytes."""

NAMES = [*INT_WIDTHS, "Byte1", "Byten", "String"]
"""The types that are not parts."""

SECTION = "PROTOCOL-MESSAGE-TYPES"
"""The anchor of the documentation's section on types."""

PRINTED = {
    "Intn(i)": ("n-bit integer in network byte order (most significant byte first)", "is the exact value"),
    "Intn[k]": ("array of k n-bit integers, each in network byte order", "determined by an earlier field"),
    "String(s)": ("null-terminated string", "is the exact value"),
    "Byten(c)": ("exactly n bytes", "determinable from an earlier field", "is the exact value"),
}
"""The types in that section, and words of their descriptions."""

UNUSED = ('String("user")', r"Byte1('\n')")
"""Examples in that section that no message uses, and that have no notation here."""

ALLOWED = (
    "Int8, Int16, Int32, Int64, each also as IntN (Name) or IntN(constant); Byte1, Byte1('X'), "
    "Byte1('X') | Byte1('Y'); Byten; ByteN, ByteN('constant'); String; or the name of a part"
)
"""The forms of a type, for error messages."""


class NotationError(ValueError):
    """A text that is not a type, with the allowed forms."""


@dataclass(frozen=True)
class Int:
    """IntN, with the name or the constant in parentheses."""

    kind: ClassVar = "int"

    base: str
    name: str | None = None
    constant: int | None = None
    letter: str | None = None
    """The documentation's letter for the number of integers, `Int16[C]`."""

    @property
    def width(self) -> int:
        """Bytes."""
        return INT_WIDTHS[self.base]

    def __str__(self) -> str:
        if self.letter is not None:
            return f"{self.base}[{self.letter}]"
        if self.name is not None:
            return f"{self.base} ({self.name})"
        return self.base if self.constant is None else f"{self.base}({self.constant})"


@dataclass(frozen=True)
class Byte1:
    """One byte: any, or one of the given characters."""

    kind: ClassVar = "int"

    constants: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " | ".join(f"Byte1('{constant}')" for constant in self.constants) or "Byte1"


@dataclass(frozen=True)
class Byten:
    """Bytes: of a measured or a fixed number, or the rest of the message."""

    kind: ClassVar = "bytes"

    count: int | None = None
    """The fixed number, as in `Byte4`."""
    constant: bytes = b""
    """The only legal bytes, as in `Byte4('ab\\r\\n')`; empty for any."""

    def __str__(self) -> str:
        if self.count is None:
            return "Byten"
        return f"Byte{self.count}('{escaped(self.constant)}')" if self.constant else f"Byte{self.count}"


@dataclass(frozen=True)
class String:
    """Text up to a zero byte."""

    kind: ClassVar = "string"

    def __str__(self) -> str:
        return "String"


@dataclass(frozen=True)
class PartName:
    """A part."""

    kind: ClassVar = "part"

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Unknown:
    """A placeholder for an invalid type, so that other mistakes are found too."""

    text: str

    def __str__(self) -> str:
        return self.text


Type = Int | Byte1 | Byten | String | PartName | Unknown

_INT = re.compile(r"(Int8|Int16|Int32|Int64)(?: \(([A-Za-z][A-Za-z0-9]*)\)|\((-?\d{1,20})\))?", re.ASCII)
_FIXED = re.compile(r"Byte([2-9]|[1-9]\d{1,2})(?:\('([^']+)'\))?", re.ASCII)
_CHARACTER = re.compile(r"\\(?:(?P<octal>[0-3][0-7]{2}|0)|(?P<letter>[rnt\\]))|(?P<plain>[ -\[\]-~])", re.ASCII)
"""One byte of a constant, with the escapes of C: a plain character, a letter's escape, or an octal number."""
_ESCAPES = {"r": 13, "n": 10, "t": 9, "\\": 92}
_ARRAY = re.compile(r"(Int8|Int16|Int32|Int64)\[([A-Z])\]", re.ASCII)
_BYTE1 = re.compile(r"Byte1\('([A-Za-z0-9])'\)")
_NAME = re.compile(r"[A-Z][A-Za-z]*", re.ASCII)


def parse_type(text: str) -> Type:
    """Return the type of a text. Raises NotationError if the text is not a type."""
    if text == "Byten":
        return Byten()
    if text == "String":
        return String()
    if text == "Byte1":
        return Byte1()
    if fixed := _FIXED.fullmatch(text):
        return _fixed(text, int(fixed[1]), fixed[2] or "")
    if array := _ARRAY.fullmatch(text):
        return Int(array[1], letter=array[2])
    if text.startswith("Byte1"):
        return _byte1(text)
    if integer := _INT.fullmatch(text):
        base, name, constant = integer.groups()
        if constant is not None:
            bits = 8 * INT_WIDTHS[base] - (base != "Int8")
            if not (0 if base == "Int8" else -(1 << bits)) <= int(constant) < 1 << bits:
                raise NotationError(f"constant {constant} does not fit {base}")
        return Int(base, name, None if constant is None else int(constant))
    if _NAME.fullmatch(text) and not text.startswith(("Int", "Byte")):
        return PartName(text)
    raise NotationError(f"{text!r} is not a type; allowed: {ALLOWED}")


def _byte1(text: str) -> Byte1:
    constants = []
    for alternative in text.split(" | "):
        match = _BYTE1.fullmatch(alternative)
        if match is None:
            raise NotationError(
                f"{alternative!r} is not a constant of one byte; allowed: Byte1('X') with a letter or a digit, "
                "alternatives joined by ' | '"
            )
        if match[1] in constants:
            raise NotationError(f"constant '{match[1]}' is named twice")
        constants.append(match[1])
    return Byte1(tuple(constants))


def _fixed(text: str, count: int, constant: str) -> Byten:
    characters = list(_CHARACTER.finditer(constant))
    if "".join(character[0] for character in characters) != constant:
        raise NotationError(f"{text!r} has a character that needs an escape; allowed: \\n, \\r, \\t, \\\\, \\0, \\377")
    data = bytes(
        int(character["octal"], 8)
        if character["octal"]
        else _ESCAPES[character["letter"]]
        if character["letter"]
        else ord(character[0])
        for character in characters
    )
    if data and len(data) != count:
        raise NotationError(f"{text!r} has a constant of {len(data)} bytes, not {count}")
    return Byten(count, data)


def escaped(data: bytes) -> str:
    """Return bytes as a constant in the notation."""
    letters = {code: f"\\{letter}" for letter, code in _ESCAPES.items()}
    texts = [letters.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in data]
    # A digit may follow an octal number of three digits only.
    return "".join(texts[:-1]) + ("\\0" if data.endswith(b"\0") else "".join(texts[-1:]))
