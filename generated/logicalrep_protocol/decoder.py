"""A session's decoder for the versions of the protocol: bytes in, messages out, no socket.

Generated from spec/ by `python -m codegen regen`; do not edit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Never

from logicalrep_protocol.layouts import LOGICALREP
from logicalrep_protocol.versions import PARSE, AnyMessage, Relation, Type
from logicalrep_runtime.decoder import SessionDecoder
from logicalrep_runtime.scalars import Oid


class Decoder(SessionDecoder[AnyMessage]):
    """Decodes the messages of one session in the order in which they arrive.

    A new connection, and a new call of pg_logical_slot_get_binary_changes, is a new session: take a new decoder.
    A message that raises DecodeError leaves the decoder as it was.

    Example:
        >>> decoder = Decoder(1)
        >>> message = decoder.decode(data)
    """

    layouts = LOGICALREP
    parsers = PARSE

    streaming: bool
    """For the message that comes next: whether the message lies between Stream Start and Stream Stop."""
    two_phase: bool
    """Whether the slot was created with two_phase."""
    parallel: bool
    """Whether the session was started with the option streaming = parallel."""

    def __init__(
        self,
        version: int,
        *,
        two_phase: bool = False,
        parallel: bool = False,
        encoding: str = "utf-8",
        **unknown: Never,
    ) -> None:
        """Take a protocol version, 1 to 4; ValueError for another, EncodingError for an unknown `encoding`.

        `two_phase` says whether the slot was created with two_phase: Begin Prepare, Prepare, Commit Prepared,
        Rollback Prepared and Stream Prepare may come in older protocol versions too then. `parallel` says whether the
        session was started with the option streaming = parallel. `encoding` is the session's client_encoding as a
        Python codec.
        """
        super().__init__(version, encoding=encoding, two_phase=two_phase, parallel=parallel, **unknown)

    def _read(self, parse: Callable[..., AnyMessage], data: bytes) -> AnyMessage:
        return parse(data, streaming=self.streaming, parallel=self.parallel, encoding=self.encoding)

    @property
    def relations(self) -> dict[Oid, Relation]:
        """The last Relation of each `relation_id`."""
        return self.described["Relation"]

    @property
    def types(self) -> dict[Oid, Type]:
        """The last Type of each `type_id`."""
        return self.described["Type"]
