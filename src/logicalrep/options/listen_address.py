"""The address of the server for metrics and pages."""

from __future__ import annotations

import re

from logicalrep_runtime.errors import LogicalRepError

_LOOPBACK = "127.0.0.1"
_LISTEN = re.compile(r"(?:(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:\s]*):)?(?P<port>[0-9]{1,5})")


class ListenError(LogicalRepError, ValueError):
    """The address is invalid, or the server cannot listen at it."""

    code = "LISTEN_ADDRESS"


def listen_address(listen: str) -> tuple[str, int]:
    """Return the host and port of `HOST:PORT`, `[IPV6]:PORT` or `PORT`. Raises ListenError for any other text."""
    match = _LISTEN.fullmatch(listen.strip())
    if match is None or int(match["port"]) > 65535:
        raise ListenError(
            f"{listen!r} is not HOST:PORT, such as 0.0.0.0:8080, nor a port of this machine, such as 8080"
        )
    return (match["host"] or _LOOPBACK).strip("[]"), int(match["port"])
