"""The reference of this project's own spec, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.loader import load
from codegen.model import Protocol
from codegen.reference import site

SPEC = Path(__file__).parents[2] / "spec"


@pytest.fixture(scope="session")
def protocols() -> tuple[Protocol, ...]:
    """Every protocol of the spec."""
    return load(SPEC)


@pytest.fixture(scope="session")
def messages(protocols: tuple[Protocol, ...]) -> Protocol:
    """The protocol with several versions."""
    return next(protocol for protocol in protocols if protocol.name == "logicalrep")


@pytest.fixture(scope="session")
def files(protocols: tuple[Protocol, ...]) -> dict[str, str]:
    """The files of the site by name."""
    return {str(path): text for path, text in site(protocols).items()}
