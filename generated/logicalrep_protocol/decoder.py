"""A session's decoder for the versions of the protocol: bytes in, messages out, no socket.

Generated from spec/ by `python -m codegen regen`; do not edit.
"""

from __future__ import annotations

from logicalrep_protocol.layouts import LOGICALREP
from logicalrep_protocol.versions import PARSE, AnyMessage, Relation, Type
from logicalrep_runtime.decoder import SessionDecoder


class Decoder(SessionDecoder[AnyMessage, Relation, Type]):
    """Decodes the messages of one session in the order in which they arrive.

    A new connection, and a new call of pg_logical_slot_get_binary_changes, is a new session: take a new decoder.
    A message that raises DecodeError leaves the decoder as it was.

        decoder = Decoder(1)
        message = decoder.decode(data)
    """

    layouts = LOGICALREP
    parsers = PARSE
