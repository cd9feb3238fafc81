"""The types as the documentation prints them: "Int32 (Oid)", "Byte1('K') | Byte1('O')", "Byten".

The documentation explains its notation under "Message Data Types". Two things are added: alternatives joined by "|",
for what the page prints as two optional rows, and the name of a part in place of a type.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

INT_WIDTHS = {"Int8": 1, "Int16": 2, "Int32": 4, "Int64": 8}
"""The integers and their widths in bytes, in network byte order."""

NAMES = [*INT_WIDTHS, "Byte1", "Byten", "String"]
"""The types that are no parts."""

SECTION = "PROTOCOL-MESSAGE-TYPES"
"""The anchor of the documentation's section on types."""

PRINTED = {
    "Intn(i)": ("n-bit integer in network byte order (most significant byte first)", "is the exact value"),
    "Intn[k]": ("array of k n-bit integers, each in network byte order", "determined by an earlier field"),
    "String(s)": ("null-terminated string", "is the exact value"),
    "Byten(c)": ("exactly n bytes", "determinable from an earlier field", "is the exact value"),
}
"""The types as that section has them, and words that say of each what this notation takes it for."""

UNUSED = ('String("user")', r"Byte1('\n')")
"""Examples of that section that no message has, so that there is no notation for them."""

ALLOWED = (
    "Int8, Int16, Int32, Int64, each also as IntN (Name) or IntN(constant); Byte1, Byte1('X'), "
    "Byte1('X') | Byte1('Y'); Byten; String; or the name of a part"
)
"""The forms of a type, for error messages."""


class NotationError(ValueError):
    """A text that is no type in this notation; says what is wrong and what is allowed."""


@dataclass(frozen=True)
class Int:
    """IntN, with the name in parentheses or the constant that the documentation prints after it."""

    kind: ClassVar = "int"

    base: str
    name: str | None = None
    constant: int | None = None
    letter: str | None = None
    """The letter that the documentation has for the number of integers, `Int16[C]`."""

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
    """One byte: any, or one of the characters given."""

    kind: ClassVar = "int"

    constants: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " | ".join(f"Byte1('{constant}')" for constant in self.constants) or "Byte1"


@dataclass(frozen=True)
class Byten:
    """A number of bytes: as an earlier field says, all that are left, or a fixed one."""

    kind: ClassVar = "bytes"

    count: int | None = None
    """The fixed number, `Byte4`."""

    def __str__(self) -> str:
        return "Byten" if self.count is None else f"Byte{self.count}"


@dataclass(frozen=True)
class String:
    """Text up to a zero byte."""

    kind: ClassVar = "string"

    def __str__(self) -> str:
        return "String"


@dataclass(frozen=True)
class PartName:
    """A part, which has a layout of its own."""

    kind: ClassVar = "part"

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Unknown:
    """Stands in for a text that is no type, so that what else is wrong can be found too."""

    text: str

    def __str__(self) -> str:
        return self.text


Type = Int | Byte1 | Byten | String | PartName | Unknown

_INT = re.compile(r"(Int8|Int16|Int32|Int64)(?: \(([A-Za-z][A-Za-z0-9]*)\)|\((\d{1,20})\))?", re.ASCII)
_FIXED = re.compile(r"Byte([2-9]|[1-9]\d{1,2})", re.ASCII)
_ARRAY = re.compile(r"(Int8|Int16|Int32|Int64)\[([A-Z])\]", re.ASCII)
_BYTE1 = re.compile(r"Byte1\('([A-Za-z0-9])'\)")
_NAME = re.compile(r"[A-Z][A-Za-z]*", re.ASCII)


def parse_type(text: str) -> Type:
    """The type that a text in the notation stands for; NotationError if it is none."""
    if text == "Byten":
        return Byten()
    if text == "String":
        return String()
    if text == "Byte1":
        return Byte1()
    if fixed := _FIXED.fullmatch(text):
        return Byten(int(fixed[1]))
    if array := _ARRAY.fullmatch(text):
        return Int(array[1], letter=array[2])
    if text.startswith("Byte1"):
        return _byte1(text)
    if integer := _INT.fullmatch(text):
        base, name, constant = integer.groups()
        if constant is not None and int(constant) >= 1 << (8 * INT_WIDTHS[base] - (base != "Int8")):
            raise NotationError(f"constant {constant} does not fit {base}")
        return Int(base, name, None if constant is None else int(constant))
    if _NAME.fullmatch(text) and not text.startswith(("Int", "Byte")):
        return PartName(text)
    raise NotationError(f"{text!r} is no type; allowed: {ALLOWED}")


def _byte1(text: str) -> Byte1:
    constants = []
    for alternative in text.split(" | "):
        match = _BYTE1.fullmatch(alternative)
        if match is None:
            raise NotationError(
                f"{alternative!r} is no constant of one byte; allowed: Byte1('X') with a letter or a digit, "
                "alternatives joined by ' | '"
            )
        if match[1] in constants:
            raise NotationError(f"constant '{match[1]}' is named twice")
        constants.append(match[1])
    return Byte1(tuple(constants))
