"""The reader of `spark.read`: of capture files in parallel, or of a slot without advancing it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from glob import glob, has_magic
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from logicalrep.arrow.reading import committed_batches
from logicalrep.captures.capture import Capture, CaptureSession
from logicalrep.postgres.preflight.checks import check
from logicalrep.postgres.slots.slot import query_slot
from logicalrep.spark.options import OptionError, SourceOptions
from logicalrep.spark.peek.slot_range import SlotRange, read_slot
from logicalrep.spark.schemas import row_form
from logicalrep.spark.server_connection import log_to_standard_error
from logicalrep.spark.worker import PromptReader, collect_garbage_once
from logicalrep.transactions.logs import warn


@dataclass
class File(InputPartition):
    """A capture file of one session; one task reads it."""

    path: Path


class BatchReader(PromptReader, DataSourceReader):
    """Reads the committed changes of capture files, a partition for each, or of a slot, in one partition."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        super().__init__()
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        if self._options.path is not None:
            return [File(path) for path in files(self._options.path)]
        log_to_standard_error()
        needs = replace(self._slot_options.needs, create_slot=False, moves_slot=False)
        with self._options.connection.connect() as connection:
            warn(check(connection, needs))
            slot = query_slot(connection, self._options.the_slot)
        return [SlotRange(slot.confirmed, slot.reached)]

    @property
    def _slot_options(self) -> SourceOptions:
        """The options for reading a slot: only `peek` reads a slot without advancing it."""
        return replace(self._options, mode="peek", streaming=None)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, SlotRange):
            return collect_garbage_once(read_slot(self._slot_options, self._schema, None, partition.end))
        assert isinstance(partition, File)
        return collect_garbage_once(self._read_capture(partition.path))

    def _read_capture(self, path: Path) -> Iterator[pa.RecordBatch]:
        with Capture.open(path) as capture:
            session = capture.session
            if not session.header:
                session = CaptureSession(
                    protocol_version=self._options.protocol_version or session.protocol_version,
                    parallel=self._options.streaming == "parallel",
                    two_phase=self._options.two_phase,
                )
            decoder = session.decoder()
            yield from committed_batches(
                capture.batches(), decoder, row_form(self._options, self._schema), is_capture=True
            )


def files(path: str) -> list[Path]:
    """Return the captures of a path: a file, a folder, a pattern, or several with commas. Raises OptionError."""
    paths: list[Path] = []
    for part in (part.strip() for part in path.split(",")):
        part = part.removeprefix("file:")
        if has_magic(part):
            paths += [Path(name) for name in sorted(glob(part, recursive=True)) if Path(name).is_file()]
        elif Path(part).is_dir():
            paths += sorted(file for file in Path(part).rglob("*") if file.is_file() and _is_read(file.name))
        elif Path(part).is_file():
            paths.append(Path(part))
        else:
            raise OptionError(f"option 'path': there is no {part!r}")
    if not paths:
        raise OptionError(f"option 'path': no capture in {path!r}")
    return paths


def _is_read(name: str) -> bool:
    return name.removesuffix(".gz").endswith((".jsonl", ".bin")) and not name.startswith("truth.")
