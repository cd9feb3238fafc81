"""All versions, for code that learns a session's version at run time.

Generated from the spec by `python -m codegen regen`; do not edit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from logicalrep_protocol import v1, v2, v3, v4

AnyMessage = v1.AnyMessage | v2.AnyMessage | v3.AnyMessage | v4.AnyMessage
"""Any message of any version."""

Begin = v1.Begin
Message = v1.Message | v2.Message
Commit = v1.Commit
Origin = v1.Origin
Relation = v1.Relation | v2.Relation
Type = v1.Type | v2.Type
Insert = v1.Insert | v2.Insert
Update = v1.Update | v2.Update
Delete = v1.Delete | v2.Delete
Truncate = v1.Truncate | v2.Truncate
StreamStart = v2.StreamStart
StreamStop = v2.StreamStop
StreamCommit = v2.StreamCommit
StreamAbort = v2.StreamAbort | v4.StreamAbort
BeginPrepare = v3.BeginPrepare
Prepare = v3.Prepare
CommitPrepared = v3.CommitPrepared
RollbackPrepared = v3.RollbackPrepared
StreamPrepare = v3.StreamPrepare

PARSE: Mapping[int, Callable[..., AnyMessage]] = {
    1: v1.parse,
    2: v2.parse,
    3: v3.parse,
    4: v4.parse,
}
"""Each version's `parse` by the version's number."""
