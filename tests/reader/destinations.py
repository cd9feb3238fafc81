"""Destinations for readers, with the files that replicate writes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from logicalrep.pipeline.schema.table_formats import FormatName
from logicalrep.pipeline.state.past_states import archive_state
from logicalrep.pipeline.state.state import State, States
from logicalrep.pipeline.state.table_state import TableState
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.scalars import Lsn


def write_identity(storage: Storage, table_format: FormatName = "delta", catalog: str | None = None) -> None:
    content = {"format": 1, "slot": "x", "publication": "x", "system_identifier": 1, "database": "d"}
    of_tables = {"table_format": table_format if catalog is None else "iceberg", "catalog": catalog}
    storage.write("_logicalrep/destination.json", json.dumps(content | of_tables).encode())


def write_states(storage: Storage, version: int) -> None:
    """Write the state of a table, now and of an hour ago."""
    table = TableState("public/t", version, Lsn(1), "x", 1)
    states, current_time = States(storage), datetime.now(UTC)
    for at in (current_time - timedelta(hours=1), current_time - timedelta(minutes=30)):
        state = State(Lsn(1), None, None, {"public.t": table}, at.isoformat())
        archive_state(storage, states, state, 24.0)
        states.write(state)
