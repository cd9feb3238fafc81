"""Figures of tables and of the slot."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.error import HTTPError

from logicalrep.observe.figures import Standing, TableFigures
from logicalrep.postgres.slots.slot import Slot
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn
from tests.observe.scraping import got

SCRIPT = TableName("public", "<script>alert(1)</script>")

SLOT = Slot(
    name="s", plugin="pgoutput", database="d", active_pid=1, restart_lsn=Lsn(1000), confirmed_flush_lsn=Lsn(2000),
    two_phase=False, failover=False, lost=None, head=Lsn(5000), sent_up_to=Lsn(5000), useless_standbys=(), timeline=None,
    wal_status="reserved", safe_wal_size=6000, time=datetime.now(UTC),
)  # fmt: skip


def table_figures(state: str, version: int | None = None, **fields: Any) -> TableFigures:
    return TableFigures(state=Standing(state), version=version, **fields)


def get_status(url: str) -> tuple[int, str]:
    """Return the status and the text of an answer."""
    try:
        return 200, got(url)
    except HTTPError as error:
        return error.code, error.read().decode()
