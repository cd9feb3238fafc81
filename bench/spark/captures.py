"""Captures for Spark to read: with the source, and as Parquet with the same messages for the bounds."""

from __future__ import annotations

import os
from collections import Counter
from itertools import islice
from pathlib import Path
from struct import Struct
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from bench.contenders import pypgoutput
from bench.measure import Contender
from bench.spark.rows import by_parse, by_pypgoutput, identity
from bench.spark.session import to_noop, to_parquet
from logicalrep.captures.capture import Capture
from logicalrep.spark import feed_schema
from logicalrep.spark.typed_tables.table_schema import relation_schema
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.change_feed import events
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.transaction import Transaction

IDENTITY, FEED, TYPED = "identity mapInArrow", "captures to the feed", "captures to a typed table"
PARQUET = "captures to the feed, to parquet"
PARSE, PYPGOUTPUT = "parse in mapInArrow", "pypgoutput in mapInPandas"
_FRAME = Struct(">QI")
_MESSAGES = "lsn bigint, data binary"
"""The schema of a capture's messages in Parquet."""
_FILES = 16
_FEW = 12_500
"""The messages of a file for contenders that read them one by one."""
_FILES_TO_WRITE = 4
"""The number of files to write: writing takes Spark several times as long as the rest."""


class Captures:
    """Copies of a capture, each for one task, and the same messages in Parquet."""

    def __init__(self, capture: Path, folder: Path) -> None:
        self._relation = _largest_table(capture)
        self._files, self._all, self._few = folder / "captures", folder / "all", folder / "few"
        self._written = folder / "written"
        for subfolder in (self._files, self._all, self._few):
            subfolder.mkdir()
        with Capture.open(capture) as opened:
            messages = [(int(lsn), data) for lsn, data in opened]
        self._count = len(messages)
        lsns, contents = zip(*messages, strict=True)
        table = pa.table({"lsn": pa.array(lsns, pa.int64()), "data": pa.array(contents, pa.binary())})
        for number in range(_FILES):
            with self._file(number).open("wb") as file:
                file.writelines(_FRAME.pack(lsn, len(data)) + data for lsn, data in messages)
            pa.parquet.write_table(table, self._all / f"{number}.parquet")
            pa.parquet.write_table(table[:_FEW], self._few / f"{number}.parquet")

    def by_the_source(self, spark: Any) -> list[Contender]:
        """Return the contenders that use the source: the feed, a typed table, and the feed written to a file."""

        def read(files: str, schema: Any, **options: str) -> Any:
            return spark.read.format("logicalrep").schema(schema).options(**options).load(files)

        feed = read(str(self._files), feed_schema())
        typed = read(str(self._files), relation_schema(self._relation), table=str(self._relation))
        sample = read(",".join(str(self._file(number)) for number in range(_FILES_TO_WRITE)), feed_schema())
        return [
            Contender(FEED, _FILES * self._count, to_noop(feed)),
            Contender(TYPED, _FILES * self._count, to_noop(typed)),
            # Several sessions may write at the same time.
            Contender(PARQUET, _FILES_TO_WRITE * self._count, to_parquet(sample, self._written / str(os.getpid()))),
        ]

    def contenders(self, spark: Any) -> list[Contender]:
        """Return the source's contenders, and the contenders of its upper and lower bounds."""
        raw, few = (spark.read.schema(_MESSAGES).parquet(str(folder)) for folder in (self._all, self._few))
        total, sample_count = _FILES * self._count, _FILES * min(_FEW, self._count)
        contenders = [
            Contender(IDENTITY, total, to_noop(raw.mapInArrow(identity, _MESSAGES))),
            *self.by_the_source(spark),
            Contender(PARSE, sample_count, to_noop(few.mapInArrow(by_parse, feed_schema()))),
        ]
        if pypgoutput():
            contenders.append(
                Contender(PYPGOUTPUT, sample_count, to_noop(few.mapInPandas(by_pypgoutput, feed_schema())))
            )
        return contenders

    def _file(self, number: int) -> Path:
        return self._files / f"{number}.bin"


def _largest_table(capture: Path) -> TableDescription:
    """Return the table with the most changes."""
    changes: Counter[TableDescription] = Counter()
    with Capture.open(capture) as opened, Assembler() as assembler:
        decoder = opened.session.decoder()
        for event in events(islice(opened, 20_000), decoder, assembler):
            if isinstance(event, Transaction):
                changes.update(change.relation for change in event.changes if change.relation is not None)
    return changes.most_common(1)[0][0]
