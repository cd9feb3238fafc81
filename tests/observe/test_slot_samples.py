"""The samples of a slot, and the lag that they tell."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from logicalrep.observe import slot_samples
from logicalrep.observe.slot_samples import SlotSamples, sampling
from logicalrep.postgres.slots.slot import Slot
from logicalrep_runtime.scalars import Lsn

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SLOT = Slot(
    name="s",
    plugin="pgoutput",
    database="shop",
    active_pid=None,
    restart_lsn=Lsn(100),
    confirmed_flush_lsn=Lsn(200),
    two_phase=False,
    failover=False,
    lost=None,
    head=Lsn(900),
    sent_up_to=Lsn(800),
    useless_standbys=(),
    timeline=None,
    time=NOW,
)


def test_the_lag_is_unknown_without_a_slot_or_a_position() -> None:
    samples = SlotSamples()
    assert (samples.lag_bytes(Lsn(1)), samples.lag_seconds(Lsn(1), NOW)) == (None, None)
    samples.record_slot(SLOT)
    assert (samples.lag_bytes(None), samples.lag_seconds(None, NOW)) == (None, None)
    assert (samples.lag_bytes(Lsn(500)), samples.lag_bytes(Lsn(900))) == (300, 0)
    # The server has dropped the slot.
    samples.record_slot(None)
    assert (samples.last, samples.lag_bytes(Lsn(500))) == (None, None)


def test_the_lag_in_seconds_is_by_the_clock_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logicalrep.observe.slot_samples.time.time", lambda: 1000.0)
    samples = SlotSamples()
    samples.record_slot(SLOT)
    assert samples.lag_seconds(Lsn(500), NOW - timedelta(seconds=7)) == 7
    monkeypatch.setattr("logicalrep.observe.slot_samples.time.time", lambda: 1003.0)
    assert samples.lag_seconds(Lsn(500), NOW - timedelta(seconds=7)) == 10


def test_sampling_continues_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_samples, "PAUSE", 0.0)
    errors: list[str] = []
    goes_on = threading.Event()

    def sample() -> None:
        if len(errors) < 3:
            raise ValueError(str(len(errors)))
        goes_on.set()

    with sampling(sample, lambda error: errors.append(str(error))):
        assert goes_on.wait(60)
    assert errors == ["0", "1", "2"]
    assert not [thread for thread in threading.enumerate() if thread.name == "logicalrep-sampling"]
