"""Deletion vectors: what the log has of them, and readers of such tables."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.delta.delta_log import DeltaLog
from logicalrep.pipeline.formats.delta.descriptors import descriptor, read_descriptor
from logicalrep.pipeline.formats.stored_table import NewTable, Position, UnsupportedTableError
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.data_files import read_rows, write_rows
from logicalrep.pipeline.storage.deletion_vectors import DeletionVector, VectorLocation
from logicalrep.pipeline.storage.storage import DamagedError, Storage, StorageError
from logicalrep.pipeline.upkeep.merging import merge_next
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.changes import change_batch, relation
from tests.pipeline.formats.delta.inline_vectors import move_vectors_into_log
from tests.pipeline.histories import NAMES, OID, table
from tests.pipeline.reading import read_delta

APP = "logicalrep/1/1/x"
ROWS = 20_000


def test_descriptors_equal_the_examples_of_the_protocol() -> None:
    """The examples of "Deletion Vector Descriptor Schema"; the bytes of the inline one are of another, older form."""
    inline = {
        "storageType": "i",
        "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        "sizeInBytes": 40,
        "cardinality": 6,
    }
    rows = np.array([3, 4, 7, 11, 18, 29])
    vector, own = read_descriptor(inline, "/lake/t"), DeletionVector.of(rows)
    assert descriptor(vector) == inline
    # The bitmap itself is the same in both.
    assert vector.data[12:] == own.data[16:]
    assert own.read(Storage("/lake"), "t").tolist() == rows.tolist()
    stored = {
        "storageType": "u",
        "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
        "offset": 4,
        "sizeInBytes": 40,
        "cardinality": 6,
    }
    path = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    vector = read_descriptor(stored, "s3://mytable")
    assert vector.location == VectorLocation(path, 4, 40)
    assert descriptor(vector) == stored
    named = {**stored, "storageType": "p", "pathOrInlineDv": f"s3://mytable/{path}"}
    vector = read_descriptor(named, "s3://mytable")
    assert vector.location is not None
    assert vector.location.path == path
    assert descriptor(vector) == named
    with pytest.raises(ValueError, match="outside of the table's folder"):
        read_descriptor(named, "s3://other")


def new_log(storage: Storage, rows: int = ROWS) -> DeltaLog:
    """Return a table with rows of the ids from 0 on, in two files."""
    spec = table(("id",), TableSettings(write_mode="merge-on-read"))
    ids = np.arange(rows)
    columns = [ids, ids.astype(str), ids / 2, [f"big {id_}" for id_ in ids]]
    loaded = pa.table([pa.array(column) for column in columns], schema=spec.schema)
    halves = (loaded.slice(0, rows // 2), loaded.slice(rows // 2))
    files = [file for half in halves for file in write_rows(storage, "public/t", half.schema, half)]
    return DeltaLog.replace(
        storage, "public/t", NewTable(spec, files, Position(APP, Lsn(999)), load="x", keep_hours=24), None
    )  # fmt: skip


def update(log: DeltaLog, lsn: int, ids: range) -> None:
    """Update rows, of whose large values none is sent."""
    changes = [
        {
            "op": "update",
            "after": {"id": str(id_), "b": f"at {lsn}", "v": None},
            "unchanged": ("big",),
            "commit_lsn": lsn,
            "ordinal": number,
        }
        for number, id_ in enumerate(ids)
    ]
    apply(log, [change_batch(relation(NAMES, oid=OID), changes)], Position(APP, Lsn(lsn)), SequentialEngine())


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    """Return a table with two files: the log has the vector of the first, and a file the second's."""
    log = new_log(Storage(str(tmp_path)))
    update(log, 1000, range(5))
    update(log, 1001, range(5, 10))
    assert move_vectors_into_log(tmp_path, "public/t", log.version, 10) == 1
    for path in (tmp_path / "public/t").glob("deletion_vector_*.bin"):
        path.unlink()
    opened = DeltaLog.open(log.storage, "public/t")
    assert opened is not None
    update(opened, 1002, range(10_000, 12_000, 17))
    return opened


def test_all_vectors_are_in_files(tmp_path: Path) -> None:
    log = new_log(Storage(str(tmp_path)))
    update(log, 1000, range(5))
    (vector,) = [file.vector for file in log.files.values() if file.vector]
    assert vector.location is not None
    assert (tmp_path / "public/t" / vector.location.path).exists()
    assert '"storageType": "i"' not in (tmp_path / f"public/t/_delta_log/{log.version:020}.json").read_text()


def expected() -> dict[int, tuple[str, str]]:
    values = {id_: (str(id_), f"big {id_}") for id_ in range(ROWS)}
    for lsn, ids in ((1000, range(5)), (1001, range(5, 10)), (1002, range(10_000, 12_000, 17))):
        values |= {id_: (f"at {lsn}", f"big {id_}") for id_ in ids}
    return values


def as_dict(rows: pa.Table) -> dict[int, tuple[str, str]]:
    columns = (rows[name].to_pylist() for name in ("id", "b", "big"))
    values = {id_: (b, big) for id_, b, big in zip(*columns, strict=True)}
    assert len(values) == rows.num_rows
    return values


def test_an_update_adds_one_small_file_and_marks_the_rows(log: DeltaLog, tmp_path: Path) -> None:
    folder = tmp_path / "public/t"
    assert len(log.files) == 3
    kinds = {file.vector and (file.vector.location is None) for file in log.files.values()}
    assert kinds == {True, False, None}
    assert [file.vector.count for file in log.files.values() if file.vector] == [10, len(range(10_000, 12_000, 17))]
    last = [json.loads(line) for line in (folder / f"_delta_log/{log.version:020}.json").read_text().splitlines()]
    (removed, added) = ([action[kind] for action in last if kind in action] for kind in ("remove", "add"))
    marked = next(entry for entry in added if "deletionVector" in entry)
    assert marked["deletionVector"]["storageType"] == "u"
    stats = json.loads(marked["stats"])
    assert (stats["numRecords"], stats["tightBounds"]) == (ROWS // 2, False)
    # The one is as it was, and the small file with the new rows was written anew.
    assert {entry["path"] for entry in removed} >= {marked["path"]}
    assert len(added) == 2
    assert sum(path.stat().st_size for path in folder.glob("deletion_vector_*.bin")) < 1000


@pytest.mark.slow
@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_readers_return_the_current_rows(log: DeltaLog, tmp_path: Path, has_checkpoint: bool) -> None:
    folder = str(tmp_path / "public/t")
    if has_checkpoint:
        log.write_checkpoint()
    reopened = DeltaLog.open(log.storage, "public/t")
    assert reopened is not None
    assert reopened.files.keys() == log.files.keys()
    assert {path: file.vector for path, file in reopened.files.items()} == {
        path: file.vector for path, file in log.files.items()
    }
    schema = log.table.schema
    own = [read_rows(log.storage, "public/t", file, schema, schema.names) for file in reopened.files.values()]
    assert as_dict(pa.concat_tables(own)) == expected()
    assert sum(file.live_rows for file in reopened.files.values()) == ROWS
    assert as_dict(read_delta(folder)) == expected()
    assert as_dict(polars.read_delta(folder).to_arrow()) == expected()
    assert polars.scan_delta(folder).select(polars.len()).collect().item() == ROWS
    rows = QueryBuilder().register("t", DeltaTable(folder)).execute("SELECT * FROM t")
    assert rows is not None
    assert duckdb.connect().execute("SELECT count(*), sum(id) FROM rows").fetchall() == [(ROWS, sum(range(ROWS)))]
    update(reopened, 1003, range(3))
    assert as_dict(read_delta(folder)) == expected() | {id_: ("at 1003", f"big {id_}") for id_ in range(3)}


def test_readers_without_vectors_refuse_the_table(log: DeltaLog, tmp_path: Path) -> None:
    folder = str(tmp_path / "public/t")
    reader = DeltaTable(folder)
    with_pyarrow = partial(polars.read_delta, folder, use_pyarrow=True)
    for read in (reader.to_pyarrow_table, reader.to_pyarrow_dataset, reader.to_pandas, with_pyarrow):
        with pytest.raises(DeltaError, match="deletionVectors"):
            read()
    # docs/how-to/reading.md warns of it.
    assert reader.count() > ROWS


def test_files_of_old_vectors_are_deleted(log: DeltaLog, tmp_path: Path) -> None:
    folder = tmp_path / "public/t"
    (first,) = folder.glob("deletion_vector_*.bin")
    update(log, 1004, range(10_000, 20_000, 3))
    assert first.name in {file.path for file in log.removed}
    reopened = DeltaLog.open(log.storage, "public/t")
    assert reopened is not None
    # More than an eighth of the second file is marked: it is written anew, and needs no vector.
    assert merge_next(reopened, SequentialEngine())
    assert not merge_next(reopened, SequentialEngine())
    reopened.maintain(24)
    assert first.name in {file.path for file in reopened.removed}
    reopened.maintain(0)
    assert not list(folder.glob("deletion_vector_*.bin"))
    assert len(list(folder.glob("part-*.parquet"))) == len(reopened.files)
    assert len(as_dict(read_delta(str(folder)))) == ROWS


def test_another_program_merges_files_with_marked_rows(log: DeltaLog, tmp_path: Path) -> None:
    folder = str(tmp_path / "public/t")
    DeltaTable(folder).optimize.compact()
    with pytest.raises(StorageError, match="another program committed OPTIMIZE without changing rows"):
        update(log, 1003, range(3))
    update(log, 1003, range(3))
    assert as_dict(read_delta(folder)) == expected() | {id_: ("at 1003", f"big {id_}") for id_ in range(3)}


def test_a_damaged_vector_is_an_error(log: DeltaLog, tmp_path: Path) -> None:
    (path,) = (tmp_path / "public/t").glob("deletion_vector_*.bin")
    data = bytearray(path.read_bytes())
    data[-7] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedError, match="a deletion vector is damaged"):
        update(log, 1005, range(10_000, 10_003))


def test_a_feature_that_is_not_known_is_refused(log: DeltaLog, tmp_path: Path) -> None:
    path = tmp_path / f"public/t/_delta_log/{log.version + 1:020}.json"
    features = ["deletionVectors", "v2Checkpoint"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    path.write_text(json.dumps({"protocol": protocol}) + "\n")
    with pytest.raises(UnsupportedTableError, match="readers need v2Checkpoint"):
        DeltaLog.open(log.storage, "public/t")
