"""The files of the change buffer: what is stored is read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from logicalrep.arrow.changes.sent_relation import SentRelation
from logicalrep.arrow.changes.table_changes import TableChanges
from logicalrep.pipeline.buffer.change_buffer import ChangeBuffer
from logicalrep.pipeline.buffer.change_files import changes_in, contents, parquet
from logicalrep.pipeline.storage.storage import MalformedFileError, Storage
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.changes import change_batch, relation


def test_properties_have_their_keys_and_are_reread() -> None:
    batch = change_batch(relation(("id", "v")), [{"op": "update", "after": {"id": "1"}, "unchanged": ["v"]}])
    other = change_batch(relation(("id",), None), [{"op": "delete", "before": {"id": "1"}, "commit_lsn": 2}])
    sent = replace(SentRelation.of(other.relation, commit_lsn=2, ordinal=0, xid=3), partition=8)
    changes = TableChanges([sent], [batch, other])
    files = contents(changes, 1 << 20)
    assert [{key: json.loads(value) for key, value in properties.items()} for _, properties in files] == [
        {
            b"logicalrep.format": 1,
            b"logicalrep.relation": {
                "relation_id": 7, "schema": "public", "name": "t", "replica_identity": "d",
                "columns": [[1, "id", 25, -1], [0, "v", 25, -1]],
            },
        },
        {
            b"logicalrep.format": 1,
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
    parts = [changes_in(parquet(*file)) for file in files]
    assert [part.batches for part in parts] == [[batch], [other]]
    assert [*parts[0].relations, *parts[1].relations] == [sent]


def test_relation_messages_alone_are_stored(tmp_path: Path) -> None:
    buffer = ChangeBuffer(Storage(str(tmp_path)))
    sent = SentRelation.of(relation(("id",)), commit_lsn=2, ordinal=0, xid=3)
    buffer.append("public/t", TableChanges([sent]), Lsn(5))
    buffer.append("public/t", TableChanges(), Lsn(6))
    ((end, changes),) = buffer.changes("public/t")
    assert (end, [*changes.relations], changes.num_rows) == (Lsn(5), [sent], 0)


@pytest.mark.parametrize(
    ("name", "properties", "reason"),
    [
        (
            "0000000000000010-0000000000000000",
            {"logicalrep.format": "2"},
            "its format 2 is not supported by this version",
        ),
        ("0000000000000010-0000000000000000", {}, "it lacks b'logicalrep.format'"),
        ("0000000000000010", {"logicalrep.format": "1"}, "0000000000000010.parquet is damaged"),
    ],
    ids=["of another format", "without a format", "without the end of the file before"],
)
def test_another_file_is_damaged(tmp_path: Path, name: str, properties: dict[str, str], reason: str) -> None:
    path = tmp_path / f"_logicalrep/buffered/public/t/{name}.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata(properties), path)
    with pytest.raises(MalformedFileError, match=reason):
        list(ChangeBuffer(Storage(str(tmp_path))).changes("public/t"))
