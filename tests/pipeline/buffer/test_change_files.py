"""The files of the change buffer: what is stored is read, also what an earlier version stored."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from logicalrep.arrow.changes.sent_relation import SentRelation
from logicalrep.arrow.changes.table_changes import TableChanges
from logicalrep.arrow.row_form import FEED_SCHEMA
from logicalrep.pipeline.buffer.change_buffer import ChangeBuffer
from logicalrep.pipeline.buffer.change_files import changes_in, contents, parquet
from logicalrep.pipeline.storage.storage import MalformedFileError, Storage
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.changes import change_batch, plain, relation


def test_properties_have_their_keys_and_all_is_read_again() -> None:
    batch = change_batch(relation(("id", "v")), [{"op": "update", "after": {"id": "1"}, "unchanged": ["v"]}])
    other = change_batch(relation(("id",), None), [{"op": "delete", "before": {"id": "1"}, "commit_lsn": 2}])
    sent = replace(SentRelation.of(other.relation, commit_lsn=2, ordinal=0, xid=3), partition=8)
    changes = TableChanges([sent], [batch, other])
    files = contents(changes, 1 << 20)
    assert [{key: json.loads(value) for key, value in properties.items()} for _, properties in files] == [
        {
            b"logicalrep.format": 3,
            b"logicalrep.relation": {
                "relation_id": 7, "schema": "public", "name": "t", "replica_identity": "d",
                "columns": [[1, "id", 25, -1], [0, "v", 25, -1]],
            },
        },
        {
            b"logicalrep.format": 3,
            b"logicalrep.relation": {
                "relation_id": 7, "schema": "public", "name": "t", "replica_identity": "f",
                "columns": [[1, "id", 25, -1]],
            },
            b"logicalrep.relations": [
                {
                    "relation_id": 7, "replica_identity": "f", "columns": [["id", 25, -1]], "key": ["id"],
                    "commit_lsn": 2, "ordinal": 0, "xid": 3, "partition": 8, "sent_as": None,
                }
            ],
        },
    ]  # fmt: skip
    assert files[0][0].schema.names == [
        "op", "old_kind", "commit_lsn", "ordinal", "commit_timestamp", "xid", "unsent",
        "old.id", "old.v", "new.id", "new.v",
    ]  # fmt: skip
    found = [changes_in(parquet(*each)) for each in files]
    assert [part.batches for part in found] == [[batch], [other]]
    assert [*found[0].relations, *found[1].relations] == [sent]


def test_relation_messages_of_format_2_have_no_partition() -> None:
    sent = SentRelation.of(relation(("id",)), commit_lsn=2, ordinal=0, xid=3)
    ((rows, properties),) = contents(TableChanges([sent]), 1 << 20)
    (message,) = json.loads(properties[b"logicalrep.relations"])
    assert (message.pop("partition"), message.pop("sent_as")) == (None, None)
    earlier = {b"logicalrep.format": b"2", b"logicalrep.relations": json.dumps([message]).encode()}
    assert changes_in(parquet(rows, earlier)).relations == [sent]


def test_relation_messages_alone_are_stored(tmp_path: Path) -> None:
    buffer = ChangeBuffer(Storage(str(tmp_path)))
    sent = SentRelation.of(relation(("id",)), commit_lsn=2, ordinal=0, xid=3)
    buffer.keep("public/t", TableChanges([sent]), Lsn(5))
    buffer.keep("public/t", TableChanges(), Lsn(6))
    ((end, changes),) = buffer.changes("public/t")
    assert (end, [*changes.relations], changes.num_rows) == (Lsn(5), [sent], 0)


def test_a_file_of_a_later_version_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "_logicalrep/kept/public/t/0000000000000010-0000000000000000.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata({"logicalrep.format": "4"}), path)
    with pytest.raises(MalformedFileError, match="its format 4 is of a later version"):
        list(ChangeBuffer(Storage(str(tmp_path))).changes("public/t"))


def feed_row(op: str, lsn: int, **values: Any) -> dict[str, Any]:
    fixed = {"schema": "public", "table": "t", "relation_id": 7, "key": ["id"], "unchanged": [], "ordinal": 0, "xid": 9}
    return fixed | {"op": op, "commit_lsn": lsn, "commit_timestamp": 0} | values


def test_rows_of_the_change_feed_are_read(tmp_path: Path) -> None:
    rows = [
        feed_row("delete", 1, before=[("id", "0")]),
        feed_row("insert", 1, after=[("id", "1"), ("v", None)], ordinal=1),
        feed_row("update", 2, after=[("id", "1")], unchanged=["v"]),
        feed_row("relation", 3, before=[("replica_identity", "d")], after=[("id", "23:-1"), ("w", "1043:14")]),
        feed_row("update", 3, before=[("id", "1")], after=[("id", "2"), ("w", "x")]),
        feed_row("truncate", 4),
        feed_row("unreadable", 5, unchanged=["w"]),
    ]
    path = tmp_path / "_logicalrep/kept/public/t/0000000000000010-0000000000000000.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, FEED_SCHEMA), path)
    ((_, changes),) = ChangeBuffer(Storage(str(tmp_path))).changes("public/t")
    (sent,) = changes.relations
    assert (sent.columns, sent.key, sent.commit_lsn, sent.xid) == ((("id", 23, -1), ("w", 1043, 14)), ("id",), 3, 9)
    assert [batch.relation.names for batch in changes.batches] == [("id", "v"), ("id", "w")]
    assert [row for batch in changes.batches for row in plain(batch)] == [
        ("delete", {"id": "0", "v": None}, None),
        ("insert", None, {"id": "1", "v": None}),
        ("update", None, {"id": "1"}),
        ("update", {"id": "1", "w": None}, {"id": "2", "w": "x"}),
        ("truncate", None, None),
        ("unreadable", None, None),
    ]
    assert changes.batches[1].unsent()[-1].tolist() == [False, True]
