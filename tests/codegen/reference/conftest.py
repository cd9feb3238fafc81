"""The reference of this project's own spec, built once."""

from __future__ import annotations

import pytest

from codegen.model.model import Protocol
from codegen.model.reader import load
from codegen.reference.site import site
from tests.conftest import ROOT

SPEC = ROOT / "spec"


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
