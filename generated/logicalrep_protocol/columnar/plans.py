"""The columns of each version and the messages that fill them, for kernels and for Arrow.

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
        expand="column__items",
        fields=(
            PlanColumn(name="flags", kind="int", width=1),
            PlanColumn(name="name", kind="text"),
            PlanColumn(name="type_id", kind="int", width=4),
            PlanColumn(name="type_modifier", kind="int", width=4, signed=True),
        ),
    ),
    PlanColumn(name="type_id", kind="int", width=4),
    PlanColumn(name="new", kind="cells", valued=b"tb", texts=b"t", path="new.cells[{}].value"),
    PlanColumn(name="old_kind", kind="char", width=1),
    PlanColumn(name="old", kind="cells", valued=b"tb", texts=b"t", path="old.cells[{}].value"),
    PlanColumn(name="options", kind="int", width=1),
    PlanColumn(name="relation_ids", kind="ints", width=4),
    PlanColumn(name="first_segment", kind="bool", width=1),
    PlanColumn(name="subxid", kind="int", width=4),
    PlanColumn(name="abort_lsn", kind="int", width=8),
    PlanColumn(
        name="abort_timestamp", kind="int", width=8, signed=True, arrow="timestamp[us, UTC]", epoch=946684800000000
    ),
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
)
_MESSAGES = (
    MessagePlan(name="Begin", tag="B", since=1, versions=(1, 2, 3, 4), columns=(0, 1, 2)),
    MessagePlan(name="Message", tag="M", since=1, versions=(1,), columns=(3, 4, 5, 6)),
    MessagePlan(name="Message", tag="M", since=1, versions=(2, 3, 4), columns=(2, 3, 4, 5, 6)),
    MessagePlan(name="Commit", tag="C", since=1, versions=(1, 2, 3, 4), columns=(7, 8, 1)),
    MessagePlan(name="Origin", tag="O", since=1, versions=(1, 2, 3, 4), columns=(9, 10)),
    MessagePlan(name="Relation", tag="R", since=1, versions=(1,), columns=(11, 12, 10, 13, 14)),
    MessagePlan(name="Relation", tag="R", since=1, versions=(2, 3, 4), columns=(2, 11, 12, 10, 13, 14)),
    MessagePlan(name="Type", tag="Y", since=1, versions=(1,), columns=(15, 12, 10)),
    MessagePlan(name="Type", tag="Y", since=1, versions=(2, 3, 4), columns=(2, 15, 12, 10)),
    MessagePlan(name="Insert", tag="I", since=1, versions=(1,), columns=(11, 16)),
    MessagePlan(name="Insert", tag="I", since=1, versions=(2, 3, 4), columns=(2, 11, 16)),
    MessagePlan(name="Update", tag="U", since=1, versions=(1,), columns=(11, 17, 18, 16)),
    MessagePlan(name="Update", tag="U", since=1, versions=(2, 3, 4), columns=(2, 11, 17, 18, 16)),
    MessagePlan(name="Delete", tag="D", since=1, versions=(1,), columns=(11, 17, 18)),
    MessagePlan(name="Delete", tag="D", since=1, versions=(2, 3, 4), columns=(2, 11, 17, 18)),
    MessagePlan(name="Truncate", tag="T", since=1, versions=(1,), columns=(19, 20)),
    MessagePlan(name="Truncate", tag="T", since=1, versions=(2, 3, 4), columns=(2, 19, 20)),
    MessagePlan(name="Stream Start", tag="S", since=2, versions=(2, 3, 4), columns=(2, 21)),
    MessagePlan(name="Stream Stop", tag="E", since=2, versions=(2, 3, 4), columns=()),
    MessagePlan(name="Stream Commit", tag="c", since=2, versions=(2, 3, 4), columns=(2, 7, 8, 1)),
    MessagePlan(name="Stream Abort", tag="A", since=2, versions=(1, 2, 3), columns=(2, 22)),
    MessagePlan(name="Stream Abort", tag="A", since=2, versions=(4,), columns=(2, 22, 23, 24)),
    MessagePlan(
        name="Begin Prepare", tag="b", since=3, versions=(1, 2, 3, 4), columns=(25, 8, 26, 2, 27), when="two_phase"
    ),
    MessagePlan(name="Prepare", tag="P", since=3, versions=(1, 2, 3, 4), columns=(25, 8, 26, 2, 27), when="two_phase"),
    MessagePlan(
        name="Commit Prepared", tag="K", since=3, versions=(1, 2, 3, 4), columns=(7, 8, 1, 2, 27), when="two_phase"
    ),
    MessagePlan(
        name="Rollback Prepared",
        tag="r",
        since=3,
        versions=(1, 2, 3, 4),
        columns=(28, 29, 26, 30, 2, 27),
        when="two_phase",
    ),
    MessagePlan(
        name="Stream Prepare", tag="p", since=3, versions=(2, 3, 4), columns=(25, 8, 26, 2, 27), when="two_phase"
    ),
)


def _plan(version: int, kernel: str, walk: str) -> Plan:
    sent = tuple(message for message in _MESSAGES if version in message.versions)
    return Plan(version=version, kernel=kernel, walk=walk, columns=_COLUMNS, sent=sent)


PLANS = {
    1: _plan(1, "logicalrep_protocol.columnar.kernel_v1", "16f079ffbea8539a"),
    2: _plan(2, "logicalrep_protocol.columnar.kernel_v2", "0f9c25a1cf04ba55"),
    3: _plan(3, "logicalrep_protocol.columnar.kernel_v3", "c78b2884ffd22a50"),
    4: _plan(4, "logicalrep_protocol.columnar.kernel_v4", "505fcfac4672a4f6"),
}
"""By version."""
