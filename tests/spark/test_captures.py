"""Captures without a header are read with the options' session."""

from __future__ import annotations

from pathlib import Path
from struct import Struct
from typing import Any

import pytest

from logicalrep import DecodeError
from logicalrep.captures.capture import Capture
from logicalrep.spark import feed_schema
from logicalrep.spark.batch import BatchReader
from logicalrep.spark.options import read_options
from tests.protocol.captured import selected
from tests.spark.failures import fails

CAPTURES = [path for path in selected() if path.match("v4*.walsender.jsonl.gz")]
_FRAME = Struct(">QI")


def rows(path: Path, **options: str) -> list[dict[str, Any]]:
    reader = BatchReader(read_options({"path": str(path), **options}), feed_schema())
    [partition] = reader.partitions()
    return [row for batch in reader.read(partition) for row in batch.to_pylist()]


@pytest.mark.slow
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: "/".join(path.parts[-3:]))
def test_frames_are_read_as_the_options_say(path: Path, tmp_path: Path) -> None:
    with Capture.open(path) as capture:
        session = capture.session
        frames = tmp_path / "frames.bin"
        frames.write_bytes(b"".join(_FRAME.pack(lsn, len(data)) + data for lsn, data in capture))
    options = {"protocol_version": "4", "two_phase": str(session.two_phase).lower()}
    if session.parallel:
        options["streaming"] = "parallel"
    expected = rows(path)
    assert expected
    assert rows(frames, **options) == expected
    # A file's header overrides the options.
    assert rows(path, protocol_version="1") == expected


def test_a_session_that_was_another_one_is_an_error(tmp_path: Path) -> None:
    path = next(path for path in CAPTURES if path.match("pg16/stream/*"))
    frames = tmp_path / "frames.bin"
    with Capture.open(path) as capture:
        assert capture.session.parallel
        frames.write_bytes(b"".join(_FRAME.pack(lsn, len(data)) + data for lsn, data in capture))
    with pytest.raises(DecodeError, match="Stream Abort"):
        rows(frames)


@pytest.mark.parametrize(
    ("options", "schema", "reason"),
    [
        ({}, "a int", "cannot be chosen"),
        (
            {"table": "public.t"},
            "id int",
            r"must end with these columns: _change_type string NOT NULL, _commit_version bigint",
        ),
    ],
)
def test_columns_that_are_none_of_its_own(spark: Any, options: dict[str, str], schema: str, reason: str) -> None:
    frame = spark.read.format("logicalrep").options(**options).schema(schema)
    with fails("OPTION_INVALID", reason):
        frame.load(str(CAPTURES[0])).collect()
