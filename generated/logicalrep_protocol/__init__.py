"""Binary Format of COPY: The file that COPY writes and reads with the binary format.

`copy_binary` hold the messages of each protocol version and `parse`; `Decoder` keeps the state of a session.
`v1`: The messages of the pgoutput plugin for the changes of a publication.
`walsender`: The messages of a walsender and its client in CopyData during replication.
`layouts` has the documentation's tables as data.

Generated from the spec by `python -m codegen regen`; do not edit.
"""

from __future__ import annotations

from logicalrep_protocol import copy_binary, v1, v2, v3, v4, versions, walsender
from logicalrep_protocol.decoder import Decoder

__all__ = [
    "Decoder",
    "copy_binary",
    "v1",
    "v2",
    "v3",
    "v4",
    "versions",
    "walsender",
]
