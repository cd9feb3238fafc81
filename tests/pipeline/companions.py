"""The companions of a table, compared with the server's rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.compute as pc

from logicalrep.pipeline.schema.table_settings import TableSettings
from tests.pipeline.comparison import find_differences
from tests.pipeline.reading import read_table
from tests.postgres.servers import Database

ALL_COMPANIONS = TableSettings(deletes="soft", history=True, append=True)


def companion_differences(
    db: Database, storage: Path, copies: list[str], kept: TableSettings, *, counts_versions: bool = True
) -> dict[str, str]:
    """Return the differences of the current rows, of the current versions, and of the number of versions.

    Without another load there are as many versions as changes.
    """
    are_all = pc.scalar(True)
    condition = pc.field("_is_deleted") == pc.scalar(False) if kept.deletes == "soft" else are_all
    differences = find_differences(db.dsn, str(storage), copies, condition=condition)
    if kept.history:
        differences |= find_differences(
            db.dsn, str(storage), copies, companion="~history", condition=pc.field("_is_current")
        )
    for copy in copies if kept.append and counts_versions else ():
        loaded = pc.field("_valid_from_ordinal") >= 0
        uri = str(storage / copy.replace(".", "/"))
        versions = read_table(f"{uri}~history")
        changes = Counter(read_table(f"{uri}~changes")["_change_type"].to_pylist())
        begun, ended = versions.filter(loaded).num_rows, versions.filter(~pc.field("_is_current")).num_rows
        expected = changes["insert"] + changes["update_postimage"], changes["delete"] + changes["update_postimage"]
        if (begun, ended) != expected:
            differences[copy] = f"{begun} versions have begun and {ended} ended, and not {expected}"
    return differences
