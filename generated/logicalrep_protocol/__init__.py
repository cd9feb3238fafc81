"""Logical Replication Message Formats: What the pgoutput plugin sends for the changes of a publication.

`v1` to `v4` hold the messages of each protocol version and `parse`; `Decoder` keeps the state of a session.
`walsender`: What a walsender and its client put into CopyData while they replicate.
`layouts` has the documentation's tables as data.

Generated from the spec by `python -m codegen regen`; do not edit.
"""

from __future__ import annotations

from logicalrep_protocol import v1, v2, v3, v4, versions, walsender
from logicalrep_protocol.decoder import Decoder

__all__ = [
    "Decoder",
    "v1",
    "v2",
    "v3",
    "v4",
    "versions",
    "walsender",
]
