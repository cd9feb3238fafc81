"""PostgreSQL's logical replication protocol: every message of pgoutput in every version, read and written.

`v1` to `v4` hold the messages of each protocol version and `parse`; `Decoder` keeps the state of a session;
`walsender` holds the envelope of a replication connection; `layouts` the documentation's tables as data.

Generated from spec/ by `python -m codegen regen`; do not edit.
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
