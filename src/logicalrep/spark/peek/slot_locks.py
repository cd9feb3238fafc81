"""An advisory lock on a slot for a session's lifetime, as SQL readers release the slot between two queries."""

from __future__ import annotations

from hashlib import blake2b

from logicalrep.postgres.retries import Retries
from logicalrep.postgres.server import Connection
from logicalrep.postgres.slots.errors import SlotError
from logicalrep.postgres.slots.usage import in_use

# A reader whose machine is gone keeps the lock until the server notices: with this setting, and the keepalives of every
# session, within a minute, which is as long as the reader itself would wait for the server.
_NOTICES = "SELECT set_config(name, '60000', false) FROM pg_settings WHERE name = 'tcp_user_timeout'"
_HOLDER = """
SELECT lock.pid, activity.application_name, activity.client_addr, activity.client_port FROM pg_locks AS lock
JOIN pg_database AS database ON database.oid = lock.database AND database.datname = current_database()
LEFT JOIN pg_stat_activity AS activity ON activity.pid = lock.pid
WHERE lock.locktype = 'advisory' AND lock.granted AND lock.objsubid = 1
AND (lock.classid::bigint << 32 | lock.objid::bigint) = %s
"""


def lock_slot(connection: Connection, slot: str, *, patience: float) -> None:
    """Take the lock until the connection closes; raise SlotError if another session holds it for `patience` seconds."""
    key = lock_key(slot)
    connection.execute(_NOTICES)
    retries = Retries(patience)
    while connection.execute("SELECT pg_try_advisory_lock(%s)", (key,)).fetchone() != (True,):
        if not retries.wait():
            holder = connection.execute(_HOLDER, (key,)).fetchone()
            raise SlotError(in_use(slot, holder), code="SLOT_IN_USE")


def lock_key(slot: str) -> int:
    return int.from_bytes(blake2b(slot.encode(), digest_size=8, person=b"logicalrep").digest(), signed=True)
