"""The tags of messages and the kinds of rows and values as bytes, from the classes generated from the spec."""

from __future__ import annotations

from logicalrep_protocol import v1, v2
from logicalrep_protocol.layouts import LOGICALREP

BEGIN, COMMIT, ORIGIN = (ord(message.tag) for message in (v1.Begin, v1.Commit, v1.Origin))
RELATION, TYPE, MESSAGE = (ord(message.tag) for message in (v1.Relation, v1.Type, v1.Message))
INSERT, UPDATE, DELETE, TRUNCATE = (ord(message.tag) for message in (v1.Insert, v1.Update, v1.Delete, v1.Truncate))
STREAM_START, STREAM_STOP, STREAM_ABORT = (
    ord(message.tag) for message in (v2.StreamStart, v2.StreamStop, v2.StreamAbort)
)

NULL, UNCHANGED, TEXT, BINARY = (ord(value.kind) for value in (v1.NullValue, v1.UnchangedToast, v1.Text, v1.Binary))
WHOLE = bytes(ord(layout.tag) for layout in LOGICALREP.messages if layout.since == 1)
"""The tags of messages in sessions without streamed or prepared transactions."""
IN_EVERY_SESSION = bytes(ord(layout.tag) for layout in LOGICALREP.messages if layout.is_sent_in(1, {}))
"""The tags in `WHOLE`, and of other messages that servers send in every session."""
KEY, WHOLE_ROW = ord("K"), ord("O")
"""The kinds of an old row: the replica identity's columns, or the whole row."""
