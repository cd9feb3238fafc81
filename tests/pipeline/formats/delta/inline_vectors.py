"""Deletion vectors in the log itself, as another program may write them; replicate writes all vectors to files."""

from __future__ import annotations

import json
from pathlib import Path

from logicalrep.pipeline.formats.delta.descriptors import descriptor, read_descriptor
from logicalrep.pipeline.storage.deletion_vectors import DeletionVector
from logicalrep.pipeline.storage.storage import Storage


def move_vectors_into_log(lake: Path, folder: str, version: int, most_rows: int) -> int:
    """Move the vectors of a version's added files, of up to `most_rows` rows each, into its commit; return how many."""
    path, moved = lake / folder / f"_delta_log/{version:020}.json", 0
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        add = action.get("add", {})
        if "deletionVector" not in add or add["deletionVector"]["cardinality"] > most_rows:
            continue
        vector = read_descriptor(add["deletionVector"], str(lake / folder))
        add["deletionVector"] = descriptor(DeletionVector.of(vector.read(Storage(str(lake)), folder)))
        moved += 1
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))
    return moved
