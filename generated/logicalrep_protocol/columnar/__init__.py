"""Batches of messages straight to Arrow, without a Python object for each: `pip install logicalrep[arrow]`.

    from logicalrep_protocol.columnar import Session, decode_batch

    batch, session = decode_batch(messages, Session(version=1))     # messages: a pyarrow array of bytes
    batch, session = decode_batch(more_messages, session)           # the next batch goes on from there

`plans` has each version's columns, the field names of its messages; `kernel_v1` and so on read and check messages in
one compiled pass and note where every value is. `logicalrep_runtime.columnar` runs them and makes arrays of what they
found. So a field that is added to the spec is read, checked and a column without a change there.

Generated from spec/ by `python -m codegen regen`; do not edit.
"""

from __future__ import annotations

from logicalrep_protocol.columnar.plans import FACTS, PLANS
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


class Session(ColumnarSession):
    """A session's state for `decode_batch`: the version, and the facts that decoding depends on."""

    __slots__ = ()
    plans = PLANS
    facts = FACTS
    parsers = PARSE


LocatedBatch = columnar.LocatedBatch[Session]
