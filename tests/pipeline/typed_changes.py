"""Values of each type, and changes with them."""

from __future__ import annotations

from typing import Any

from logicalrep.arrow.changes.change_batch import ChangeBatch
from logicalrep.pipeline.formats.delta.delta_log import DeltaLog
from logicalrep.pipeline.formats.stored_table import NewTable, Position
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.transactions.relations import TableDescription
from logicalrep.values import TypeCatalog
from logicalrep_protocol import v1
from logicalrep_protocol.v1 import ReplicaIdentity
from logicalrep_runtime.scalars import Lsn, Oid
from tests.pipeline.changes import change_batch, relation
from tests.pipeline.evidence import evidence

APP = "logicalrep/1/1/x"

NUMERIC_38_2 = (38 << 16 | 2) + 4

TYPES: dict[str, tuple[int, int, list[str]]] = {
    # OID, modifier, texts of distinct values
    "bool": (16, -1, ["t", "f"]),
    "bytea": (17, -1, ["\\x", "\\x00", "\\x0000ff", "\\xdeadbeef"]),
    "int8": (20, -1, ["-9223372036854775808", "9223372036854775807", "0"]),
    "float4": (700, -1, ["NaN", "-0", "0", "Infinity", "-Infinity", "1e-45", "3.4028235e+38"]),
    "float8": (701, -1, ["NaN", "-0", "0", "Infinity", "5e-324", "0.1", "1.7976931348623157e+308"]),
    "numeric": (1700, -1, ["NaN", "1.0", "1.00", "-0.000001", "1" * 60, "Infinity"]),
    "numeric(38,2)": (1700, NUMERIC_38_2, ["12345678901234567890.12", "12345678901234567890.13", "-0.01", "0.00"]),
    "text": (25, -1, ["", "ä", "a\x01b", "x" * 3000, "1:a", "-"]),
    "date": (1082, -1, ["0001-01-01", "4713-01-01 BC", "5874897-12-31", "2026-02-28"]),
    "timestamp": (1114, -1, ["2026-01-01 00:00:00.000001", "4713-01-01 00:00:00 BC", "294247-01-01 00:00:00"]),
    "timestamptz": (1184, -1, ["2026-01-01 00:00:00.000001+00", "0001-01-01 00:00:00+00"]),
    "uuid": (2950, -1, ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"]),
    "int4[]": (1007, -1, ["{}", "{1}", "{1,NULL}", "{NULL}"]),
    "text[]": (1009, -1, ["{}", '{""}', '{"a,b"}', "{a,b}"]),
    "jsonb": (3802, -1, ["{}", '{"a": 1}', "null"]),
}


def table_spec(types: dict[str, tuple[int, int]], key: tuple[str, ...] | None) -> TableSpec:
    return TableSpec(
        relation=TableDescription(
            relation_id=Oid(7),
            schema="public",
            name="t",
            replica_identity=ReplicaIdentity.DEFAULT if key else ReplicaIdentity.FULL,
            columns=tuple(
                v1.Column(flags=0, name=name, type_id=Oid(oid), type_modifier=modifier)
                for name, (oid, modifier) in types.items()
            ),
            types=(None,) * len(types),
        ),
        catalog=TypeCatalog(),
        key=key,
        attnums=tuple(range(1, len(types) + 1)),
        files=((7, 1),),
        evidence=evidence([(n, name, *type_) for n, (name, type_) in enumerate(types.items(), 1)]),
    )


def new_table(storage: Storage, table: TableSpec) -> DeltaLog:
    return DeltaLog.replace(
        storage, "public/t", NewTable(table, [], Position(APP, Lsn(1)), load="x", keep_hours=24), None
    )


def change_batches(changes: list[tuple[str, Any, Any]], lsn: int, key: tuple[str, ...] | None) -> list[ChangeBatch]:
    names = dict.fromkeys(name for _, old_row, new_row in changes for name in {**(old_row or {}), **(new_row or {})})
    described = [
        {"op": op, "before": old_row, "after": new_row, "commit_lsn": lsn, "ordinal": number}
        for number, (op, old_row, new_row) in enumerate(changes)
    ]
    return [change_batch(relation(tuple(names), key), described)]
