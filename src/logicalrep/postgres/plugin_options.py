"""pgoutput's options for a session, in START_REPLICATION and in the SQL functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from psycopg import sql

from logicalrep_protocol.decoder import Decoder

Streaming = Literal["off", "on", "parallel"]


def most_streaming(version: int) -> Streaming:
    """Return the value of `streaming` with which a protocol version sends the most."""
    return "off" if version < 2 else "on" if version < 4 else "parallel"


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginOptions:
    """pgoutput's options, under its own names.

    Example:
        >>> PluginOptions(publication_names=("shop",), proto_version=2, streaming="on")
    """

    publication_names: tuple[str, ...]
    proto_version: int
    """The version of the protocol, 1 to 4."""
    binary: bool = False
    messages: bool = False
    """Whether logical messages are sent."""
    origin: Literal["any", "none"] | None = None
    """`none` leaves out changes that were replayed from another server; needs PostgreSQL 16."""
    streaming: Streaming = "off"
    """Whether large transactions are sent while they are running."""
    two_phase: bool = False
    """Whether prepared transactions are sent when they are prepared."""

    def items(self) -> Mapping[str, str]:
        """Return the options by name, without those that have the server's default."""
        options = {
            "proto_version": str(self.proto_version),
            "publication_names": ",".join(sql.Identifier(name).as_string() for name in self.publication_names),
            "binary": "true" if self.binary else None,
            "messages": "true" if self.messages else None,
            "origin": self.origin,
            "streaming": None if self.streaming == "off" else self.streaming,
            "two_phase": "true" if self.two_phase else None,
        }
        return {name: value for name, value in options.items() if value is not None}

    def decoder(self, *, slot_two_phase: bool = False) -> Decoder:
        """Return a decoder for a new session with these options; `slot_two_phase`: the slot has two_phase."""
        return Decoder(self.proto_version, parallel=self.streaming == "parallel", two_phase=slot_two_phase)
