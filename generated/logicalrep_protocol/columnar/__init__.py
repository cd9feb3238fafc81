"""Batches of messages to Arrow, without a Python object for each message.

    from logicalrep_protocol.columnar import Session, decode_batch

    batch, session = decode_batch(messages, Session(version=1))     # messages: a pyarrow array of bytes
    batch, session = decode_batch(more_messages, session)           # the next batch

`plans` has each version's columns, named as the fields of its messages. The native module reads and checks messages in
one pass, and locates every value; without it, each version's `parse` reads message by message. `logicalrep_runtime`
makes arrays of the located values.

Generated from the spec by `python -m codegen regen`; do not edit.
"""

from __future__ import annotations

from dataclasses import dataclass

from logicalrep_protocol.columnar.plans import PLANS
from logicalrep_protocol.layouts import LOGICALREP
from logicalrep_protocol.versions import PARSE
from logicalrep_runtime import columnar
from logicalrep_runtime.columnar import ColumnarSession, RowDecodeError, batch_schema, decode_batch, locate_batch

__all__ = [
    "LocatedBatch",
    "RowDecodeError",
    "Session",
    "batch_schema",
    "decode_batch",
    "locate_batch",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session(ColumnarSession):
    """A session's state for `decode_batch`: the version, and the facts that decoding depends on.

    Example:
        >>> batch, session = decode_batch(messages, Session(version=1))
    """

    plans = PLANS
    layouts = LOGICALREP
    parsers = PARSE

    streaming: bool = False
    """For the next message: whether the message is between Stream Start and Stream Stop."""
    two_phase: bool = False
    """Whether the slot was created with two_phase."""
    parallel: bool = False
    """Whether the session was started with the option streaming = parallel."""


LocatedBatch = columnar.LocatedBatch[Session]
