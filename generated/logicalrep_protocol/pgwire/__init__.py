"""Message Formats: The messages between a client and a server.

`Session` decodes both sides of a connection. `v3_0` and `v3_2` hold the messages of each version; `layouts`
has the rows of the documentation's tables as operations.

Generated from the spec by `python -m codegen regen`; do not edit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from logicalrep_protocol.pgwire import v3_0, v3_2
from logicalrep_protocol.pgwire.layouts import PGWIRE
from logicalrep_runtime.conversation import FramedConversation

__all__ = ["PARSE", "AnyMessage", "Session", "v3_0", "v3_2"]

AnyMessage = v3_0.AnyMessage | v3_2.AnyMessage
"""Any message of any version."""


PARSE: Mapping[int, Callable[..., AnyMessage]] = {
    1: v3_0.parse,
    2: v3_2.parse,
}
"""Each version's `parse` by the version's number."""

_READERS: Mapping[tuple[int, Literal["server", "client"]], Callable[..., AnyMessage | None] | None] = {
    (1, "server"): v3_0.native_read_of_server,
    (1, "client"): v3_0.native_read_of_client,
    (2, "server"): v3_2.native_read_of_server,
    (2, "client"): v3_2.native_read_of_client,
}


class Session(FramedConversation[AnyMessage]):
    """Decodes the messages of both sides of a connection, in order.

    Example:
        >>> session = Session()
        >>> for data, message in session.receive(sent_by_the_client, sender="client"):
        ...     print(message)
    """

    layouts = PGWIRE
    parsers = PARSE
    readers = _READERS
