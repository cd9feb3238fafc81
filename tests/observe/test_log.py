"""Lines of figures in the log."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

import pytest

from logicalrep.observe.log import JsonFormatter, log_figures


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


def test_a_line_of_json_has_the_figures_as_they_are(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log = logging.getLogger("logicalrep.test")
    log_figures(log, "batch", slot="a\nb", changes=3, committed=datetime(2026, 1, 1, tzinfo=UTC))
    log.warning("no figures: %s", "ü")
    lines = [JsonFormatter().format(record) for record in caplog.records]
    assert not any("\n" in line for line in lines)
    batch, warning = map(json.loads, lines)
    assert batch["figures"] == {"slot": "a\nb", "changes": 3, "committed": "2026-01-01T00:00:00+00:00"}
    assert (batch["event"], batch["level"], batch["logger"]) == ("batch", "INFO", "logicalrep.test")
    assert datetime.fromisoformat(warning["time"]).tzinfo == UTC
    assert (warning["message"], warning["level"], "figures" in warning) == ("no figures: ü", "WARNING", False)
