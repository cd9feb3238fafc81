"""Operations as the expressions of layouts.py."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.lowering.operations import (
    Bytes,
    Choose,
    Conditional,
    Constant,
    Group,
    Integer,
    Measure,
    Operation,
    Operations,
    Repeat,
    Take,
)


def table(operations: Operations) -> str:
    """A tuple of operations."""
    return f"({', '.join(map(expression, operations))}{',' * (len(operations) == 1)})"


def expression(one: Operation) -> str:
    """The expression that makes an operation; what has its default is left out."""
    shown = ", ".join(f"{name}={value}" for name, value in _arguments(one) if value not in ("''", "False", "()", "{}"))
    return f"{type(one).__name__}({shown})"


def _arguments(one: Operation) -> Iterator[tuple[str, str]]:
    yield "name", repr(one.name)
    yield "type", repr(one.printed)
    if one.since > 1:
        yield "since", str(one.since)
    if one.until:
        yield "until", str(one.until)
    if isinstance(one, Integer):
        yield from [("order", repr(one.order))] if one.order != "big" else []
        yield from (("width", str(one.width)), ("signed", str(one.signed)), ("is_character", str(one.is_character)))
    match one:
        case Take():
            yield from (("allowed", str(one.allowed)), ("refused", str(one.refused)), ("flags", str(dict(one.flags))))
            yield from [("wrapper", one.scalar)] if one.scalar else []
        case Constant():
            yield from (("code", str(one.code)), ("is_length", str(one.is_length)))
        case Measure():
            yield from (("of", repr(one.of)), ("nullable", str(one.nullable)))
            yield from [("preceding", str(one.preceding))] if one.preceding else []
        case Bytes():
            yield from (("count", repr(one.count)), ("nullable", str(one.nullable)))
            yield from [("size", str(one.size))] if one.size else []
        case Group() | Choose():
            yield "part", repr(one.part.name)
        case Repeat():
            yield from (("count", repr(one.count)), ("body", expression(one.body)))
        case Conditional():
            yield from (("fact", repr(one.fact)), ("ahead", str(one.ahead)), ("body", table(one.body)))
    yield "doc", repr(one.doc)
