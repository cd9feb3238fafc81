"""pgoutput's options for a session, in START_REPLICATION and in the SQL functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from psycopg import sql

from logicalrep_protocol.decoder import Decoder

Streaming = Literal["off", "on", "parallel"]


def most_streaming(version: int) -> Streaming:
    """Return the value of `streaming` that sends the most for a protocol version."""
    return "off" if version < 2 else "on" if version < 4 else "parallel"


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginOptions:
    """pgoutput's options, by pgoutput's names.

    Example:
        >>> PluginOptions(publication_names=("shop",), proto_version=2, streaming="on")
    """

    publication_names: tuple[str, ...]
    proto_version: int
    """The protocol version, 1 to 4."""
    binary: bool = False
    messages: bool = False
    """Whether the server sends logical messages."""
    origin: Literal["any", "none"] | None = None
    """`none`: the server does not send changes that were replicated from another server; needs PostgreSQL 16."""
    streaming: Streaming = "off"
    """Whether the server sends large transactions while they run."""
    two_phase: bool = False
    """Whether the server sends prepared transactions at PREPARE."""

    def items(self) -> Mapping[str, str]:
        """Return the options that differ from the server's defaults, by name."""
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
        """Return a decoder for a new session with these options.

        Args:
            slot_two_phase: whether the slot has two_phase.
        """
        return Decoder(self.proto_version, parallel=self.streaming == "parallel", two_phase=slot_two_phase)
