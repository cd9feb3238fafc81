"""A batch's rows by table."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa


def by_table(batches: Iterable[pa.RecordBatch]) -> dict[int, list[pa.RecordBatch]]:
    """Return the change feed's rows by their tables' OIDs, in the order they have; messages have none and are left out.

    Example:
        >>> {oid: sum(batch.num_rows for batch in rows) for oid, rows in by_table(changes.batches).items()}
        {16385: 3, 16390: 1}
    """
    found: dict[int, list[pa.RecordBatch]] = {}
    for batch in batches:
        of_rows = batch.column("relation_id").fill_null(0).to_numpy(zero_copy_only=False)
        oids = np.unique(of_rows).tolist()
        for oid in oids:
            if oid:
                rows = batch if len(oids) == 1 else batch.filter(pa.array(of_rows == oid))
                found.setdefault(oid, []).append(rows)
    return found


__all__ = ["by_table"]
