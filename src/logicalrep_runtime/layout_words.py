"""Wording of errors about a layout's legal values, shared by the errors of decoding and encoding."""

from __future__ import annotations

from typing import TypeVar

from logicalrep_runtime.layout import PartLayout
from logicalrep_runtime.operations import Constant, Integer, Operation, Take

_Since = TypeVar("_Since", Operation, PartLayout)


def of_version(items: tuple[_Since, ...], version: int) -> tuple[_Since, ...]:
    return tuple(
        item
        for item in items
        if item.since <= version and (isinstance(item, PartLayout) or not 0 < item.until < version)
    )


def tag_of(alternative: PartLayout) -> Constant:
    tag = alternative.operations[0]
    assert isinstance(tag, Constant)
    return tag


def allowed_by(integer: Integer) -> tuple[int, ...]:
    """Return the legal values of an integer; () for any."""
    if isinstance(integer, Constant):
        return (integer.code,)
    return integer.allowed if isinstance(integer, Take) else ()


def legal_of(integer: Integer) -> str:
    return choice_of(allowed_by(integer)) if integer.is_character else either(allowed_by(integer))


def either(numbers: tuple[int, ...]) -> str:
    return " or ".join(map(str, numbers))


def bytes_of(count: int) -> str:
    return "1 byte" if count == 1 else f"{count} bytes"


def byte_text(value: int) -> str:
    return f"'{chr(value)}'" if 0x20 < value < 0x7F else f"0x{value:02X}"


def choice_of(constants: tuple[int, ...]) -> str:
    texts = [byte_text(constant) for constant in constants]
    return texts[0] if len(texts) == 1 else f"one of {', '.join(texts)}"
