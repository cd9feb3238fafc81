"""Base Backup: The messages of a walsender in CopyData during BASE_BACKUP.

`Session` decodes both sides of a connection. `v1` has the messages of each version; `layouts` has the rows of
the documentation's tables as operations.

Generated from the spec by `python -m codegen regen`; do not edit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from logicalrep_protocol.basebackup import v1
from logicalrep_protocol.basebackup.layouts import BASEBACKUP
from logicalrep_runtime.conversation import Conversation

__all__ = ["PARSE", "AnyMessage", "Session", "v1"]

AnyMessage = v1.AnyMessage
"""Any message of any version."""


PARSE: Mapping[int, Callable[..., AnyMessage]] = {
    1: v1.parse,
}
"""Each version's `parse` by the version's number."""

_READERS: Mapping[tuple[int, Literal["server", "client"]], Callable[..., AnyMessage | None] | None] = {
    (1, "server"): v1.native_read,
}


class Session(Conversation[AnyMessage]):
    """Decodes the messages of both sides of a connection, in order.

    Example:
        >>> session = Session()
        >>> message = session.decode(data, sender="server")
    """

    layouts = BASEBACKUP
    parsers = PARSE
    readers = _READERS
