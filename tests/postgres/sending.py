"""What a server has sent to the readers of its slots."""

from __future__ import annotations

from logicalrep.postgres.server import query_wal_head
from tests.postgres.servers import Database
from tests.waiting import eventually


def wait_until_sent(db: Database) -> None:
    """Wait until the server has sent all that has committed to the readers of the database's slots."""
    head = query_wal_head(db.connection)
    query = f"""
        SELECT bool_and(sent_lsn >= '{head}') FROM pg_replication_slots JOIN pg_stat_replication ON pid = active_pid
        WHERE database = current_database()
    """
    eventually(lambda: db.value(query) is True)
