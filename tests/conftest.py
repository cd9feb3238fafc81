"""What all tests share: where the shared captures lie, and that the tests which need them are skipped without them."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHARED_CAPTURES = ROOT.parent / "shared" / "captures"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests marked `corpus` where the shared captures are absent."""
    if SHARED_CAPTURES.is_dir():
        return
    skip = pytest.mark.skip(reason=f"there is no {SHARED_CAPTURES}")
    for item in items:
        if item.get_closest_marker("corpus") is not None:
            item.add_marker(skip)
