"""The project's folder, and the marks of tests that start a server or Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

_STARTED_BY = {"spark": "spark", "db": "postgres", "db18": "postgres"}
"""The mark of a test that takes a fixture."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with what its fixtures start; one that starts something by itself says so in its file."""
    for item in items:
        for name in set(getattr(item, "fixturenames", ())) & _STARTED_BY.keys():
            item.add_marker(_STARTED_BY[name])
