"""Lines of figures in the log."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest

from logicalrep.observe.log import log_figures


def test_a_line_has_what_is_known_in_its_order(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    moment = datetime(2026, 1, 1, 12, 0, 0, 5, UTC)
    log = logging.getLogger("logicalrep.test")
    log_figures(log, "batch", slot='my "slot"', changes=0, seconds=0.25, lag_bytes=None, committed=moment, empty="")
    (record,) = caplog.records
    assert record.getMessage() == (
        'batch slot="my \\"slot\\"" changes=0 seconds=0.250 committed=2026-01-01T12:00:00.000005+00:00 empty=""'
    )
    assert vars(record)["event"] == "batch"
    assert vars(record)["figures"] == {
        "slot": 'my "slot"', "changes": 0, "seconds": 0.25, "committed": moment, "empty": ""
    }  # fmt: skip
