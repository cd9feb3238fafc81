"""Operations as expressions in layouts.py."""

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
    """Return a tuple of operations as source."""
    return f"({', '.join(map(expression, operations))}{',' * (len(operations) == 1)})"


def expression(operation: Operation) -> str:
    """Return an operation as source, without arguments that have their default."""
    shown = ", ".join(
        f"{name}={value}" for name, value in _arguments(operation) if value not in ("''", "False", "()", "{}")
    )
    return f"{type(operation).__name__}({shown})"


def _arguments(operation: Operation) -> Iterator[tuple[str, str]]:
    yield "name", repr(operation.name)
    yield "type", repr(operation.printed)
    if operation.since > 1:
        yield "since", str(operation.since)
    if operation.until:
        yield "until", str(operation.until)
    if isinstance(operation, Integer):
        yield from [("order", repr(operation.order))] if operation.order != "big" else []
        yield from (
            ("width", str(operation.width)),
            ("signed", str(operation.signed)),
            ("is_character", str(operation.is_character)),
        )
    match operation:
        case Take():
            yield from (
                ("allowed", str(operation.allowed)),
                ("refused", str(operation.refused)),
                ("flags", str(dict(operation.flags))),
            )
            yield from [("wrapper", operation.scalar)] if operation.scalar else []
        case Constant():
            yield from (("code", str(operation.code)), ("is_length", str(operation.is_length)))
        case Measure():
            yield from (("of", repr(operation.of)), ("nullable", str(operation.nullable)))
            yield from [("preceding", str(operation.preceding))] if operation.preceding else []
        case Bytes():
            yield from (("count", repr(operation.count)), ("nullable", str(operation.nullable)))
            yield from [("size", str(operation.size))] if operation.size else []
            yield from [("constant", repr(operation.constant))] if operation.constant else []
        case Group() | Choose():
            yield "part", repr(operation.part.name)
        case Repeat():
            yield "count", repr(operation.count)
            yield from [("end", repr(operation.end))] if operation.end else []
            yield "body", expression(operation.body)
        case Conditional():
            yield from (
                ("fact", repr(operation.fact)),
                ("ahead", str(operation.ahead)),
                ("body", table(operation.body)),
            )
    yield "doc", repr(operation.doc)
