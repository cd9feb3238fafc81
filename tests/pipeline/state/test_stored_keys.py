"""The paths and the keys of what is stored at a destination, and of what commands print as JSON.

They are written out here: programs of other versions read them, whatever their attributes are called in this one.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyiceberg.table.metadata import TableMetadataUtil

from logicalrep.arrow.changes.table_changes import TableChanges
from logicalrep.cli.verify import verdict_json
from logicalrep.observe.figures import LoadProgress, Phase
from logicalrep.pipeline.buffer.change_buffer import ChangeBuffer
from logicalrep.pipeline.buffer.pending_loads import BufferedChanges, HeldCommit, PartitionsLoad, TableLoad
from logicalrep.pipeline.formats.iceberg.old_versions import read_old_version, store_old_versions
from logicalrep.pipeline.formats.iceberg.versions import MetadataVersion
from logicalrep.pipeline.formats.removed_files import RemovedFile, RemovedFiles
from logicalrep.pipeline.formats.stored_table import application_id
from logicalrep.pipeline.operate.status import Status
from logicalrep.pipeline.schema.file_partitions import PartitionRule
from logicalrep.pipeline.schema.stored_json import decode, parse_json, plain
from logicalrep.pipeline.schema.table_facts import Evidence, PartitionBound, Skipped, TypePart
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.state.lost_slots import may_replace_slot
from logicalrep.pipeline.state.past_states import archive_state, read_state
from logicalrep.pipeline.state.requests import (
    RequestedPart,
    RequestedPartition,
    pause,
    request_part,
    request_resync,
    request_skip,
    take_requests,
)
from logicalrep.pipeline.state.state import Identity, State, StateError, States
from logicalrep.pipeline.state.stored_settings import StoredSettings
from logicalrep.pipeline.state.table_state import Buffered, SkippedCommit, TableState
from logicalrep.pipeline.storage.storage import MalformedFileError, Storage
from logicalrep.pipeline.tables.reload_limiter import ReloadLimiter
from logicalrep.pipeline.verify.verdicts import Difference, Verdict
from logicalrep.postgres.sessions.commit_log import CommitId, History
from logicalrep.postgres.table_rows.conditions import parse_condition
from logicalrep.postgres.timelines import Timeline, WalPosition
from logicalrep.spark.offsets import offset_of, position_of
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.table_names import TableName
from logicalrep.values import CatalogType, TypeCatalog
from logicalrep_protocol import v1
from logicalrep_protocol.v1 import ReplicaIdentity
from logicalrep_runtime.scalars import Lsn, Oid
from tests.pipeline.changes import change_batch, relation
from tests.pipeline.state.stored_files import FILES, REQUESTED_PART, STORED_SETTINGS, STORED_TABLE, STORED_TABLE_STATE
from tests.pipeline.stored import new_log

SKIPPED: SkippedCommit = {"lsn": "0/5", "changes": 2, "at": "2026-01-01T00:00:00+00:00", "folders": ["public/t"]}
TABLE_STATE = TableState(
    folder="public/t", version=3, lsn=Lsn(16), load="load", timeline=1, phase=Phase.STOPPED, error="why", oid=7,
    companions={"history": 4}, rows=5, commit_timestamp="2026-01-01T00:00:00+00:00",
    progress=LoadProgress(rows=8, estimate=9, snapshot_since="2026-01-01T00:00:00+00:00"), refused="0/6",
    skipped=[SKIPPED], unrepresentable={"price": 2}, commits={"table": "ab", "history": None},
    buffered=Buffered(end=Lsn(16), load="load"),
)  # fmt: skip
HISTORY = History(
    last=CommitId(lsn=Lsn(24), xid=740, timestamp=5), slot_began=Lsn(8), server_started="1.5", origin="none"
)
SETTINGS = TableSettings(
    unrepresentable="text", deletes="soft", history=True, append=False, key=("id",), masked={"a": "nulled"},
    left_out=("b",), mask_key="check", origin="none", write_mode="merge-on-read",
    format="iceberg", partition_by=("day(at)",),
)  # fmt: skip
MOODS = CatalogType(
    namespace="public", name="moods", is_base=False, delimiter=";", element=CatalogType(namespace="public", name="mood")
)
TABLE = TableSpec(
    relation=TableDescription(
        relation_id=Oid(7),
        schema="public",
        name="t",
        replica_identity=ReplicaIdentity.DEFAULT,
        columns=(v1.Column(flags=0, name="id", type_id=Oid(9), type_modifier=-1),),
        types=(v1.Type(type_id=Oid(9), namespace="public", name="moods"),),
    ),
    catalog=TypeCatalog({9: MOODS}),
    key=("id",),
    attnums=(1,),
    files=((7, 8),),
    published="digest",
    settings=SETTINGS,
    dropped_columns=("gone",),
    companion="history",
    type_parts=(TypePart(type_id=9, number=10, label="happy", written=11),),
    protected=((2, "b"),),
    evidence=Evidence(
        columns=((1, "id", 9, -1),),
        columns_written=((1, 12),),
        numbers=3,
        published=("p",),
        written=((7, "w"),),
        links=((13, 7, 14),),
        bounds=(PartitionBound(13, 1, (("=", "happy"),)),),
        labelled=((1, 9, 0),),
        key_indexes=((15, 0),),
        filled=(16,),
        logged=("t17",),
        lc_monetary="C",
    ),
    skipped=(Skipped(lsn="0/5", changes=2, at="2026-01-01T00:00:00+00:00"),),
    comments=((0, "all moods"), (1, "its name")),
    partitions=(PartitionRule(transform="day", number=1),),
)


def test_the_files_of_a_destination_have_their_paths_and_keys(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    identity: dict[str, Any] = {"slot": "s", "publication": "p", "system_identifier": 1, "database": "d"}
    Identity.claim(storage, **identity, table_format="iceberg", catalog="sqlite:///c.db")
    with pytest.raises(StateError, match="in the format iceberg, not delta"):
        Identity.claim(storage, **identity)
    Identity.claim(Storage(str(tmp_path / "delta")), **identity)
    place = json.loads((tmp_path / "delta/_logicalrep/destination.json").read_text())
    assert place == {**identity, "format": 1, "table_format": "delta", "catalog": None}
    shutil.rmtree(tmp_path / "delta")
    previous_state = State(
        lsn=Lsn(32), commit_timestamp="2026-01-01T00:00:00+00:00", caught_up="2026-01-02T00:00:00+00:00",
        tables={"public.t": TABLE_STATE}, until="2026-01-02T00:00:00+00:00", history=HISTORY,
    )  # fmt: skip
    states, state = States(storage), replace(previous_state, until="2026-01-03T00:00:00+00:00")
    states.write(previous_state)
    archive_state(storage, states, state, 24)
    states.write(state)
    storage.delete("_logicalrep/states/00000000000000000001.json")
    name = TableName("public", "t")
    settings = StoredSettings(defaults=SETTINGS, tables={name: SETTINGS}, protected={7: name}, numbers={7: {"b": 2}})
    settings.write(storage)
    pending = {
        "public/t": HeldCommit(folder="public/t", refused="0/6", since=1.5),
        "public/u": TableLoad(folder="public/u", reason="asked for", replaces="load"),
        "public/v": PartitionsLoad(folder="public/v", reason="attached", partitions=(7, 8), begin=2.5),
        "public/w": BufferedChanges(folder="public/w", reason="its changes are buffered"),
    }
    buffer = ChangeBuffer(storage)
    for load in pending.values():
        buffer.save_pending_load(load)
    buffer.append("public/t", TableChanges(batches=[change_batch(relation(("id",)), [{"op": "truncate"}])]), Lsn(16))
    ReloadLimiter(storage).add("public/t", "new table")
    assert may_replace_slot(storage)
    pause(storage)
    request_skip(storage, name, Lsn(6))
    removed = RemovedFiles(storage, "public/t")
    removed.add(RemovedFile(at=1.5, path="part-1.parquet", size=100))
    removed.save(4)
    start = f"{tmp_path}/public/t/metadata/snap"
    metadata: dict[str, Any] = {
        "format-version": 2, "location": f"{tmp_path}/public/t", "last-updated-ms": 1500, "last-column-id": 0,
        "last-partition-id": 999, "last-sequence-number": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "schemas": [{"type": "struct", "schema-id": 0, "fields": []}], "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}], "default-spec-id": 0, "sort-orders": [],
        "properties": {"logicalrep.table": TABLE.to_json()}, "current-snapshot-id": 7,
        "snapshots": [
            {"snapshot-id": number, "timestamp-ms": 1500, "manifest-list": f"{start}-{number}-RANDOM.avro"}
            for number in (7, 8)
        ],
    }  # fmt: skip
    version = MetadataVersion(3, TableMetadataUtil.parse_raw(json.dumps(metadata)), "v3")
    store_old_versions(storage, "public/t", [version], 0.0)
    assert read_old_version(storage, "public/t", 3) == ("public/t/metadata/snap-7-RANDOM.avro", TABLE)
    assert read_old_version(storage, "public/t", 2) is None

    files = {path.relative_to(tmp_path).as_posix(): path for path in tmp_path.rglob("*") if path.is_file()}
    copy = files.pop("_logicalrep/state.json")
    assert copy.read_bytes() == files["_logicalrep/states/00000000000000000002.json"].read_bytes()
    contents: dict[str, Any] = {
        re.sub(r"requests/\w+", "requests/RANDOM", path): None if path.endswith(".parquet") else read(file)
        for path, file in files.items()
    }
    contents["_logicalrep/states/00000000000000000002.json"]["writer"] = "RANDOM"
    contents["_logicalrep/past/20260102T000000.000000Z.json"]["writer"] = "RANDOM"
    contents["_logicalrep/reloads/public/t.json"]["loads"][0][0] = 1.5
    contents["_logicalrep/lost_slots.json"]["times"][0] = 1.5
    contents["_logicalrep/paused.json"]["since"] = "2026-01-01T00:00:00+00:00"
    assert contents == {path: json.loads(text) for path, text in FILES.items()}

    assert Identity.read(storage) == Identity("s", "p", 1, "d", table_format="iceberg", catalog="sqlite:///c.db")
    assert State.read(storage) == state
    assert read_state(storage, datetime(2026, 1, 2, 12, tzinfo=UTC)) == previous_state
    assert StoredSettings.read(storage) == settings
    assert ChangeBuffer(storage).pending_loads() == pending
    assert [request.skip for _, request in take_requests(storage, pytest.fail)] == [(name, Lsn(6))]
    request_resync(storage, [name])
    where = parse_condition("id < 100 OR id BETWEEN 200 AND 300")
    part = RequestedPart(name, where, RequestedPartition(7, TableName("public", "t_7")))
    request_part(storage, part)
    requested = [read(path) for path in (tmp_path / "_logicalrep/requests").iterdir()]
    assert {"resync": [["public", "t"]]} in requested
    assert REQUESTED_PART in requested
    parts = [(path, request.part) for path, request in take_requests(storage, pytest.fail) if request.part is not None]
    assert parts == [(path, replace(part, path=path)) for path, _ in parts]
    assert len(parts) == 1


def test_the_properties_of_a_delta_table_have_their_names_and_keys(tmp_path: Path) -> None:
    log = new_log(Storage(str(tmp_path)), ("id",))
    log.write_stopped("why")
    reader = DeltaTable(tmp_path / "public/t")
    properties = {name: value for name, value in reader.metadata().configuration.items() if name[:6] != "delta."}
    assert properties == {
        "logicalrep.table": log.table.to_json(), "logicalrep.load": "x", "logicalrep.stopped": "why",
        "logicalrep.key": '["id"]',
    }  # fmt: skip
    assert reader.transaction_version("logicalrep/1/1/x") == 999
    assert application_id(1, 2, "x") == "logicalrep/1/2/x"
    assert json.loads(TABLE.to_json()) == json.loads(STORED_TABLE)
    assert TableSpec.from_json(STORED_TABLE) == TABLE
    assert decode(json.loads(STORED_SETTINGS), TableSettings) == SETTINGS


@pytest.mark.parametrize(
    ("path", "read"),
    [
        ("destination.json", Identity.read),
        ("states/00000000000000000002.json", State.read),
        ("pending/public/t.json", lambda storage: ChangeBuffer(storage).pending_loads()),
    ],
)
def test_an_unknown_key_is_refused(tmp_path: Path, path: str, read: Callable[[Storage], object]) -> None:
    """A version that does not know what it means must not drop it when it writes the file again."""
    content = json.loads(FILES[f"_logicalrep/{path}"])
    (content["tables"]["public.t"] if "tables" in content else content)["later"] = 1
    storage = Storage(str(tmp_path))
    storage.write(f"_logicalrep/{path}", json.dumps(content).encode())
    with pytest.raises(MalformedFileError, match="later"):
        read(storage)


@pytest.mark.parametrize("path", [(), ("evidence",), ("settings",), ("types", "9", "element")], ids=str)
def test_a_description_with_another_key_is_refused(path: tuple[str, ...]) -> None:
    for change in ("unknown", "absent", "renamed"):
        content = json.loads(STORED_TABLE)
        part = content
        for key in path:
            part = part[key]
        name = next(reversed(part))
        if change == "unknown":
            part["later"] = 1
        else:
            value = part.pop(name)
            part |= {"later": value} if change == "renamed" else {}
        with pytest.raises((ValueError, KeyError), match="later" if change == "unknown" else name):
            TableSpec.from_json(json.dumps(content))


def test_texts_with_a_character_of_code_0_are_refused() -> None:
    for text in ("\\u0000", "a\\\\u0000"):
        assert parse_json(json.dumps([text])) == [text]
    for text in ("\0", "\\\0", "a\\\\\0"):
        with pytest.raises(ValueError, match="code 0"):
            parse_json(json.dumps([text]))


def test_status_and_verify_print_their_keys() -> None:
    status = Status(
        slot="s", publication="p", is_running=True, lsn="0/20", lag_bytes=1, lag_seconds=2.0, retained_bytes=3,
        safe_wal_size=4, paused_since=None, lost=None, oldest_transaction="o", oldest_transaction_since=None,
        load_snapshot=None, standbys={"b:5432": True}, tables={"public.t": plain(TABLE_STATE)},
    )  # fmt: skip
    assert json.loads(json.dumps(status.to_json())) == json.loads(
        """{
          "slot": "s", "publication": "p", "is_running": true, "lsn": "0/20", "lag_bytes": 1, "lag_seconds": 2.0,
          "retained_bytes": 3, "safe_wal_size": 4, "paused_since": null, "lost": null, "oldest_transaction": "o",
          "oldest_transaction_since": null, "load_snapshot": null, "standbys": {"b:5432": true},
          "tables": {"public.t": TABLE}
        }""".replace("TABLE", STORED_TABLE_STATE)
    )
    row = {"id": "1"}
    verdict = Verdict(TableName("public", "t"), "different", 3, 1, True, (Difference("changed", row, row, row),), "r")
    assert json.loads(verdict_json(verdict)) == json.loads(
        """{
          "table": "public.t", "result": "different", "rows": 3, "differing": 1, "is_least": true,
          "examples": [{"kind": "changed", "key": {"id": "1"}, "server": {"id": "1"}, "destination": {"id": "1"}}],
          "reason": "r"
        }"""
    )


def test_an_offset_of_spark_has_its_keys() -> None:
    position = WalPosition(Lsn(32), Timeline(1, 2, Lsn(16)))
    offset = offset_of(position, slot="s", relation_id=7, first_xid=9)
    assert offset == json.loads(
        """{
          "lsn": "0/20", "slot": "s", "relation_id": 7, "first_xid": 9, "system_identifier": "1", "timeline": 2,
          "timeline_began": "0/10"
        }"""
    )
    assert position_of(offset) == position


def read(path: Path) -> Any:
    return json.loads(path.read_bytes())


def test_lost_slots_are_replaced_three_times_a_day(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    # The times of a day ago, and of a clock that was ahead, do not count.
    storage.write(
        "_logicalrep/lost_slots.json", json.dumps({"times": [time.time() - 86401, time.time() + 1000]}).encode()
    )
    assert [may_replace_slot(Storage(str(tmp_path))) for _ in range(4)] == [True, True, True, False]
