"""Damaged files of tables in both formats: each ends in rows or in an error of replicate's own, and soon."""

from __future__ import annotations

import bz2
import json
import random
import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.delta.delta_log import DeltaLog
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import LogDamagedError, NewTable, Position, StoredTable
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.table_formats import FORMATS, FormatName
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.deletion_vectors import DeletionVector
from logicalrep.pipeline.storage.storage import DamagedError, MalformedFileError, Storage
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.changes import change_batch, relation
from tests.pipeline.formats.damaging import MUTATIONS, cut, ids_of
from tests.pipeline.formats.delta.inline_vectors import move_vectors_into_log
from tests.pipeline.histories import NAMES, OID, table
from tests.pipeline.stored import APP

_LIMITS = Limits(small_file_bytes=1, marked_share=1, log_checkpoint_commits=4)
_JSON_BYTES = 1 << 20
"""The limit of decompressed bytes in these tests."""


def _open(folder: Path, form: FormatName) -> StoredTable | None:
    return table_format(Storage(str(folder), limits=replace(_LIMITS, json_bytes=_JSON_BYTES)), form).open("public/t")


def _opened(folder: Path, form: FormatName) -> StoredTable:
    stored = _open(folder, form)
    assert stored is not None
    return stored


def write_table(folder: Path, form: FormatName) -> StoredTable:
    """Write a table with marked rows in several commits, and with a checkpoint of its log if it has one."""
    storage = Storage(str(folder), limits=_LIMITS)
    spec = table(("id",), TableSettings(write_mode="merge-on-read", format=form))
    new = NewTable(spec, [], Position(APP, Lsn(999)), load="x", keep_hours=24)
    stored = table_format(storage, form).replace("public/t", new, None)
    chance, rest = random.Random(1), set[str]()
    for number in range(6):
        ids = range(1_000 * number, 1_000 * number + 1_000)
        rows = [{"id": str(id_), "b": "x", "v": None, "big": "big"} for id_ in ids]
        changes = [{"op": "insert", "after": row, "commit_lsn": 1000 + 2 * number} for row in rows]
        deleted = {str(id_) for id_ in chance.sample(range(1_000 * number), 200)} & rest if number else set()
        rest = rest - deleted | {str(id_) for id_ in ids}
        changes += [{"op": "delete", "before": {"id": id_}, "commit_lsn": 1001 + 2 * number} for id_ in sorted(deleted)]
        position = Position(APP, Lsn(1001 + 2 * number))
        apply(stored, [change_batch(relation(NAMES, oid=OID), changes)], position, SequentialEngine())
        if number == 3 and isinstance(stored, DeltaLog):
            stored.write_checkpoint()
    if isinstance(stored, DeltaLog):
        assert move_vectors_into_log(folder, "public/t", stored.version, 100)
        stored = _opened(folder, form)
    assert any(file.vector is not None for file in stored.files.values())
    return stored


@pytest.mark.thorough
@pytest.mark.parametrize("form", FORMATS)
def test_every_file_mutated_gives_rows_or_an_error_of_ours(form: FormatName, tmp_path: Path) -> None:
    expected, chance = ids_of(write_table(tmp_path, form)), random.Random(7)
    paths = sorted(path for path in (tmp_path / "public/t").rglob("*") if path.is_file())
    outcomes: Counter[str] = Counter()
    for number in range(900):
        path, mutate = paths[number % len(paths)], MUTATIONS[number % len(MUTATIONS)]
        data = path.read_bytes()
        path.write_bytes(mutate(data, chance))
        try:
            stored = _open(tmp_path, form)
            rows = None if stored is None else ids_of(stored)
            if stored is not None:
                stored.foreign_change(-1)
        except LogicalRepError as error:
            outcomes[error.code] += 1
        else:
            # A log without its first commit is the only missing table.
            assert rows is not None or path.parent.name in ("_delta_log", "metadata"), path
            outcomes["rows" if rows == expected else "other rows"] += 1
            # A commit of Delta is text without a checksum, but no cut commit is taken for a whole one.
            assert rows in (expected, None) or (path.parent.name == "_delta_log" and mutate is not cut), path
        path.write_bytes(data)
    assert outcomes["rows"] > 100
    assert outcomes.total() == 900


# Files that would take much memory or time


@pytest.mark.parametrize("codec", ["deflate", "bzip2", "zstandard"])
def test_bombs_in_manifests_are_refused(codec: str, tmp_path: Path) -> None:
    write_table(tmp_path, "iceberg")
    (newest,) = sorted((tmp_path / "public/t/metadata").glob("snap-*.avro"), key=lambda path: path.stat().st_mtime)[-1:]
    data = newest.read_bytes()
    sync = data[-16:]
    bomb, packer = bytes(_JSON_BYTES * 16), zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = {
        "deflate": packer.compress(bomb) + packer.flush(),
        "bzip2": bz2.compress(bomb),
        "zstandard": pa.compress(bomb, "zstd", asbytes=True),
    }
    block = packed[codec]
    data = data.replace(_text(b"deflate"), _text(codec.encode()))
    start = data.index(sync) + 16
    newest.write_bytes(data[:start] + _zigzag(1) + _zigzag(len(block)) + block + sync)
    with pytest.raises(LogDamagedError, match=f"more than {_JSON_BYTES} bytes"):
        _open(tmp_path, "iceberg")


def _text(text: bytes) -> bytes:
    return _zigzag(len(text)) + text


def _zigzag(number: int) -> bytes:
    number, data = number * 2, b""
    while number > 0x7F:
        data += bytes([number & 0x7F | 0x80])
        number >>= 7
    return data + bytes([number])


def test_a_delete_file_of_too_many_rows_is_refused(tmp_path: Path) -> None:
    write_table(tmp_path, "iceberg")
    path = max((tmp_path / "public/t").glob("deletes-*.parquet"), key=lambda path: path.stat().st_mtime)
    schema = pq.read_schema(path)
    uri = pq.read_table(path)["file_path"][0].as_py()
    positions = pa.repeat(pa.scalar(1 << 40), 1 << 16)
    pq.write_table(pa.table([pa.repeat(uri, len(positions)), positions], schema=schema), path)
    with pytest.raises(LogDamagedError, match=f"deletes-.*{1 << 16} rows"):
        _open(tmp_path, "iceberg")


@pytest.mark.parametrize("kind", ["count", "size"])
def test_a_vector_of_more_rows_than_its_file_is_refused_before_it_is_read(kind: str, tmp_path: Path) -> None:
    write_table(tmp_path, "delta")
    path = max((tmp_path / "public/t/_delta_log").glob("*.json"))
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        if "deletionVector" in action.get("add", {}):
            descriptor = action["add"]["deletionVector"]
            descriptor |= {"cardinality": 1 << 29} if kind == "count" else {"storageType": "u", "sizeInBytes": 1 << 30}
            descriptor["pathOrInlineDv"] = descriptor["pathOrInlineDv"][:20]
            descriptor["offset"] = 1
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))
    with pytest.raises((LogDamagedError, MalformedFileError), match="a deletion vector has"):
        _open(tmp_path, "delta")


def test_vectors_that_are_possible_pass() -> None:
    chance = np.random.default_rng(5)
    for rows in (1, 100, 70_000, 3_000_000):
        for share in (1, 2, 1000, rows):
            marked = np.flatnonzero(chance.integers(0, share, rows) == 0)
            DeletionVector.of(marked).check(rows)
    DeletionVector.of(np.arange(0, 1 << 40, 1 << 32)).check(1 << 41)


@pytest.mark.parametrize("line", [b"[" * 100_000, b"1", b'{"commitInfo": 1}', b'{"add": 1}', b"\xff"])
def test_a_commit_of_another_program_that_is_no_commit_is_a_change(line: bytes, tmp_path: Path) -> None:
    stored = write_table(tmp_path, "delta")
    (tmp_path / f"public/t/_delta_log/{stored.version + 1:020}.json").write_bytes(line)
    with pytest.raises((DamagedError, LogicalRepError)):
        stored.refuse_unknown_commits()
