"""What pgoutput is told at the start of a session: the options of START_REPLICATION and of the SQL functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from logicalrep_protocol.decoder import Decoder


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginOptions:
    """pgoutput's options, by its own names."""

    publication_names: tuple[str, ...]
    proto_version: int
    binary: bool = False
    messages: bool = False
    """Whether logical messages are sent."""
    origin: Literal["any", "none"] | None = None
    """`none` leaves out what was replayed from another server; needs PostgreSQL 16."""
    streaming: Literal["off", "on", "parallel"] = "off"
    """Whether large transactions are sent while they are running."""
    two_phase: bool = False

    def items(self) -> Mapping[str, str]:
        """The options as names and values; those that have the server's default are left out."""
        options = {
            "proto_version": str(self.proto_version),
            "publication_names": ",".join(_identifier(name) for name in self.publication_names),
        }
        if self.binary:
            options["binary"] = "true"
        if self.messages:
            options["messages"] = "true"
        if self.origin is not None:
            options["origin"] = self.origin
        if self.streaming != "off":
            options["streaming"] = self.streaming
        if self.two_phase:
            options["two_phase"] = "true"
        return options

    def decoder(self, *, slot_two_phase: bool = False) -> Decoder:
        """A decoder for a new session with these options."""
        return Decoder(self.proto_version, parallel=self.streaming == "parallel", two_phase=slot_two_phase)


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
