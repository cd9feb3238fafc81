"""The output of `logicalrep inspect`: a message byte by byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from logicalrep.cli.terminal import TerminalStyle
from logicalrep_runtime.errors import DecodeError
from logicalrep_runtime.layout import ProtocolLayout
from logicalrep_runtime.layout_walk import Step, walk
from logicalrep_runtime.operations import Take

_BYTES_SHOWN = 8
_VALUE_WIDTH = 60


def inspect(
    protocol: ProtocolLayout,
    version: int,
    data: bytes,
    *,
    facts: Mapping[str, Any],
    encoding: str,
    sender: str,
    style: TerminalStyle,
) -> Iterator[str]:
    """Yield the lines of a table of fields. Raises DecodeError after the bytes at the error's offset, marked."""
    rows = [("offset", "bytes", "field", "type", "value")]
    fault: DecodeError | None = None
    try:
        for step in walk(protocol, version, data, facts=facts, encoding=encoding, sender=sender):
            rows.append((str(step.offset), _hex(step.data), step.path, step.operation.type, _value(step)))
    except DecodeError as error:
        fault = error
        rows.append(
            (str(error.offset), _hex(data[error.offset :]) or "(none)", error.field, "", "expected " + error.expected)
        )
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for number, row in enumerate(rows):
        offset, *texts = row
        cells = [offset.rjust(widths[0]), *(text.ljust(width) for text, width in zip(texts, widths[1:], strict=False))]
        line = "  ".join([*cells, texts[-1]]).rstrip()
        if number == 0:
            yield style.dim(line)
        elif fault is not None and number == len(rows) - 1:
            yield style.red(line)
            yield " " * (widths[0] + 2) + style.red("^^")
        else:
            yield line
    if fault is not None:
        raise fault


def carried(
    protocol: ProtocolLayout,
    version: int,
    data: bytes,
    protocols: Mapping[str, ProtocolLayout],
    *,
    facts: Mapping[str, Any],
    sender: str,
) -> tuple[ProtocolLayout, bytes] | None:
    """Return the protocol and the bytes of the message inside a message; None if it contains none.

    `protocols` are those that messages may contain, by name.
    """
    layout = protocol.find(data, version, sender, facts) if data else None
    if layout is None or not layout.carries:
        return None
    *_, last = walk(protocol, version, data, facts=facts, sender=sender)
    candidates = [protocols[name] for name in layout.carries]
    has_message = (other for other in candidates if last.data and other.message(last.data[0], sender) is not None)
    return next(has_message, candidates[0]), last.data


def _hex(data: bytes) -> str:
    shown = data[:_BYTES_SHOWN].hex(" ")
    return shown if len(data) <= _BYTES_SHOWN else f"{shown} .. ({len(data)})"


def _value(step: Step) -> str:
    value = step.value
    flags = step.operation.flags if isinstance(step.operation, Take) else {}
    names = [name for mask, name in flags.items() if isinstance(value, int) and value & mask]
    if names:
        return f"{value} ({', '.join(names)})"
    if isinstance(value, bytes):
        with suppress(UnicodeDecodeError):
            value = value.decode("utf-8")
    text = repr(value) if isinstance(value, str | bytes) else str(value)
    return text if len(text) <= _VALUE_WIDTH else f"{text[: _VALUE_WIDTH - 3]}..."
