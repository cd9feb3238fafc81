from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.pipeline.formats.delta.unity_server import REAL, Unity, UnityServer, start_unity, start_unity_server


@pytest.fixture(params=["ours", *(["real"] if REAL else [])])
def unity(request: pytest.FixtureRequest) -> Iterator[Unity]:
    """A new catalog of the server of the tests, and of a real server."""
    with start_unity(request.param) as unity:
        yield unity


@pytest.fixture
def server() -> Iterator[UnityServer]:
    """The server of the tests, with the catalog `lake`."""
    with start_unity_server() as server:
        yield server
