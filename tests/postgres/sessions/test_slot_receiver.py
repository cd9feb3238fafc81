"""The receivers of a slot: the shared behaviour of the receivers of `replicate` and of Spark."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.run.receiving import ChangeReceiver
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.server import query_wal_head
from logicalrep.postgres.sessions.slot_receiver import SlotReceiver
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.errors import SlotError
from logicalrep.postgres.slots.slot import query_slot
from logicalrep.spark import feed_schema
from logicalrep.spark.options import read_options
from logicalrep.spark.walsender.receiver import SpoolReceiver
from logicalrep_runtime.scalars import Lsn
from tests.postgres.servers import Database
from tests.waiting import eventually

Start = Callable[[Database], tuple[SlotReceiver, Callable[[Lsn], None]]]
"""Starts a receiver, and returns how what is stored is acknowledged."""

PLUGIN = PluginOptions(publication_names=("p",), proto_version=4)


def _start_change_receiver(db: Database) -> tuple[SlotReceiver, Callable[[Lsn], None]]:
    receiver = ChangeReceiver(db.settings, "s", PLUGIN, limits=Limits())
    receiver.__enter__()
    return receiver, receiver.acknowledge


def _start_spool_receiver(db: Database) -> tuple[SlotReceiver, Callable[[Lsn], None]]:
    options = read_options({"dsn": db.dsn, "slot": "s", "publication": "p"})
    receiver = SpoolReceiver(options, PLUGIN, feed_schema(), None)
    return receiver, receiver.commit


@pytest.fixture(params=[_start_change_receiver, _start_spool_receiver])
def start(request: pytest.FixtureRequest) -> Start:
    start_receiver: Start = request.param
    return start_receiver


def test_the_error_that_ends_the_thread_reaches_whoever_waits(db18: Database, start: Start) -> None:
    db18.execute("CREATE PUBLICATION p FOR ALL TABLES")
    receiver, _ = start(db18)
    with pytest.raises(SlotError) as raised:
        receiver.wait_until_started()
    assert raised.value.code == "SLOT_MISSING"
    # A user that does not wait finds it as well.
    with pytest.raises(SlotError):
        receiver.wait(0) if isinstance(receiver, ChangeReceiver) else receiver.wait(Lsn(0), 0)  # type: ignore[attr-defined]
    receiver.stop()


def test_a_receiver_continues_after_its_session_was_ended(db18: Database, start: Start) -> None:
    db18.execute("CREATE TABLE t (id int)", "CREATE PUBLICATION p FOR TABLE t")
    slot = create_slot(db18.connection, "s")
    receiver, acknowledge = start(db18)
    assert receiver.wait_until_started() >= slot.confirmed.lsn
    db18.execute("SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots WHERE slot_name = 's'")
    db18.execute("INSERT INTO t VALUES (1)")
    head = query_wal_head(db18.connection)
    eventually(lambda: receiver.received >= head)
    assert receiver.traffic.restarts == 1
    # What is stored is acknowledged, at the latest when the receiver ends.
    acknowledge(head)
    receiver.stop()

    def is_acknowledged_and_free() -> bool:
        slot = query_slot(db18.connection, "s")
        return slot.active_pid is None and slot.confirmed.lsn == head

    eventually(is_acknowledged_and_free)
