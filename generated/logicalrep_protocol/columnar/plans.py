"""The columns of each version and the messages that fill them, for walks and for Arrow.

Generated from the spec by `python -m codegen regen`; do not edit.
"""

from __future__ import annotations

from logicalrep_runtime.columnar.plan import MessagePlan, Plan, PlanColumn

_COLUMNS = (
    PlanColumn(name="final_lsn", kind="int", width=8),
    PlanColumn(
        name="commit_timestamp", kind="int", width=8, signed=True, arrow="timestamp[us, UTC]", epoch=946684800000000
    ),
    PlanColumn(name="xid", kind="int", width=4),
    PlanColumn(name="flags", kind="int", width=1),
    PlanColumn(name="message_lsn", kind="int", width=8),
    PlanColumn(name="prefix", kind="text"),
    PlanColumn(name="content", kind="bytes"),
    PlanColumn(name="commit_lsn", kind="int", width=8),
    PlanColumn(name="end_lsn", kind="int", width=8),
    PlanColumn(name="origin_lsn", kind="int", width=8),
    PlanColumn(name="name", kind="text"),
    PlanColumn(name="relation_id", kind="int", width=4),
    PlanColumn(name="namespace", kind="text"),
    PlanColumn(name="replica_identity", kind="char", width=1),
    PlanColumn(
        name="columns",
        kind="items",
        fields=(
            PlanColumn(name="flags", kind="int", width=1, path="flags"),
            PlanColumn(name="name", kind="text", path="name"),
            PlanColumn(name="type_id", kind="int", width=4, path="type_id"),
            PlanColumn(name="type_modifier", kind="int", width=4, signed=True, path="type_modifier"),
        ),
    ),
    PlanColumn(name="type_id", kind="int", width=4),
    PlanColumn(name="new", kind="cells", valued=b"tb", texts=b"t", path="new.cells[{}].value"),
    PlanColumn(name="old_kind", kind="char", width=1),
    PlanColumn(name="old", kind="cells", valued=b"tb", texts=b"t", path="old.cells[{}].value"),
    PlanColumn(name="options", kind="int", width=1),
    PlanColumn(name="relation_ids", kind="ints", width=4),
    PlanColumn(name="subxid", kind="int", width=4),
    PlanColumn(name="prepare_lsn", kind="int", width=8),
    PlanColumn(
        name="prepare_timestamp", kind="int", width=8, signed=True, arrow="timestamp[us, UTC]", epoch=946684800000000
    ),
    PlanColumn(name="gid", kind="text"),
    PlanColumn(name="prepare_end_lsn", kind="int", width=8),
    PlanColumn(name="rollback_end_lsn", kind="int", width=8),
    PlanColumn(
        name="rollback_timestamp", kind="int", width=8, signed=True, arrow="timestamp[us, UTC]", epoch=946684800000000
    ),
    PlanColumn(name="first_segment", kind="bool", width=1),
    PlanColumn(name="abort_lsn", kind="int", width=8),
    PlanColumn(
        name="abort_timestamp", kind="int", width=8, signed=True, arrow="timestamp[us, UTC]", epoch=946684800000000
    ),
)
_MESSAGES = (
    MessagePlan(
        name="Begin", tag="B", since=1, versions=(1, 2, 3, 4), columns={"final_lsn": 0, "commit_timestamp": 1, "xid": 2}
    ),
    MessagePlan(
        name="Message",
        tag="M",
        since=1,
        versions=(1,),
        columns={"flags": 3, "message_lsn": 4, "prefix": 5, "content": 6},
    ),
    MessagePlan(
        name="Message",
        tag="M",
        since=1,
        versions=(2, 3, 4),
        columns={"xid": 2, "flags": 3, "message_lsn": 4, "prefix": 5, "content": 6},
    ),
    MessagePlan(
        name="Commit",
        tag="C",
        since=1,
        versions=(1, 2, 3, 4),
        columns={"commit_lsn": 7, "end_lsn": 8, "commit_timestamp": 1},
    ),
    MessagePlan(name="Origin", tag="O", since=1, versions=(1, 2, 3, 4), columns={"origin_lsn": 9, "name": 10}),
    MessagePlan(
        name="Relation",
        tag="R",
        since=1,
        versions=(1,),
        columns={"relation_id": 11, "namespace": 12, "name": 10, "replica_identity": 13, "columns": 14},
    ),
    MessagePlan(
        name="Relation",
        tag="R",
        since=1,
        versions=(2, 3, 4),
        columns={"xid": 2, "relation_id": 11, "namespace": 12, "name": 10, "replica_identity": 13, "columns": 14},
    ),
    MessagePlan(name="Type", tag="Y", since=1, versions=(1,), columns={"type_id": 15, "namespace": 12, "name": 10}),
    MessagePlan(
        name="Type",
        tag="Y",
        since=1,
        versions=(2, 3, 4),
        columns={"xid": 2, "type_id": 15, "namespace": 12, "name": 10},
    ),
    MessagePlan(name="Insert", tag="I", since=1, versions=(1,), columns={"relation_id": 11, "new": 16}),
    MessagePlan(name="Insert", tag="I", since=1, versions=(2, 3, 4), columns={"xid": 2, "relation_id": 11, "new": 16}),
    MessagePlan(
        name="Update",
        tag="U",
        since=1,
        versions=(1,),
        columns={"relation_id": 11, "old_kind": 17, "old": 18, "new": 16},
    ),
    MessagePlan(
        name="Update",
        tag="U",
        since=1,
        versions=(2, 3, 4),
        columns={"xid": 2, "relation_id": 11, "old_kind": 17, "old": 18, "new": 16},
    ),
    MessagePlan(name="Delete", tag="D", since=1, versions=(1,), columns={"relation_id": 11, "old_kind": 17, "old": 18}),
    MessagePlan(
        name="Delete",
        tag="D",
        since=1,
        versions=(2, 3, 4),
        columns={"xid": 2, "relation_id": 11, "old_kind": 17, "old": 18},
    ),
    MessagePlan(name="Truncate", tag="T", since=1, versions=(1,), columns={"options": 19, "relation_ids": 20}),
    MessagePlan(
        name="Truncate", tag="T", since=1, versions=(2, 3, 4), columns={"xid": 2, "options": 19, "relation_ids": 20}
    ),
    MessagePlan(name="Stream Start", tag="S", since=2, versions=(2, 3, 4), columns={"xid": 2, "first_segment": 28}),
    MessagePlan(name="Stream Stop", tag="E", since=2, versions=(2, 3, 4), columns={}),
    MessagePlan(
        name="Stream Commit",
        tag="c",
        since=2,
        versions=(2, 3, 4),
        columns={"xid": 2, "commit_lsn": 7, "end_lsn": 8, "commit_timestamp": 1},
    ),
    MessagePlan(name="Stream Abort", tag="A", since=2, versions=(1, 2, 3), columns={"xid": 2, "subxid": 21}),
    MessagePlan(
        name="Stream Abort",
        tag="A",
        since=2,
        versions=(4,),
        columns={"xid": 2, "subxid": 21, "abort_lsn": 29, "abort_timestamp": 30},
    ),
    MessagePlan(
        name="Begin Prepare",
        tag="b",
        since=3,
        versions=(1, 2, 3, 4),
        columns={"prepare_lsn": 22, "end_lsn": 8, "prepare_timestamp": 23, "xid": 2, "gid": 24},
        when="two_phase",
    ),
    MessagePlan(
        name="Prepare",
        tag="P",
        since=3,
        versions=(1, 2, 3, 4),
        columns={"prepare_lsn": 22, "end_lsn": 8, "prepare_timestamp": 23, "xid": 2, "gid": 24},
        when="two_phase",
    ),
    MessagePlan(
        name="Commit Prepared",
        tag="K",
        since=3,
        versions=(1, 2, 3, 4),
        columns={"commit_lsn": 7, "end_lsn": 8, "commit_timestamp": 1, "xid": 2, "gid": 24},
        when="two_phase",
    ),
    MessagePlan(
        name="Rollback Prepared",
        tag="r",
        since=3,
        versions=(1, 2, 3, 4),
        columns={
            "prepare_end_lsn": 25,
            "rollback_end_lsn": 26,
            "prepare_timestamp": 23,
            "rollback_timestamp": 27,
            "xid": 2,
            "gid": 24,
        },
        when="two_phase",
    ),
    MessagePlan(
        name="Stream Prepare",
        tag="p",
        since=3,
        versions=(2, 3, 4),
        columns={"prepare_lsn": 22, "end_lsn": 8, "prepare_timestamp": 23, "xid": 2, "gid": 24},
        when="two_phase",
    ),
)


def _plan(version: int, walk: str) -> Plan:
    sent = tuple(message for message in _MESSAGES if version in message.versions)
    return Plan(version=version, walk=walk, columns=_COLUMNS, sent=sent)


PLANS = {
    1: _plan(1, "3dc7c3e2cfb39fea"),
    2: _plan(2, "f55c7a4ffee9ad9a"),
    3: _plan(3, "9e9f3e59bec7f480"),
    4: _plan(4, "d6550b95832015fc"),
}
"""By version."""
