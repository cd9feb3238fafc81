"""The mark of tests that need the native reader."""

from __future__ import annotations

import os

import pytest

from logicalrep import v4

needs_native = pytest.mark.skipif(
    v4.native_read is None,
    reason="LOGICALREP_NATIVE=0"
    if os.environ.get("LOGICALREP_NATIVE") == "0"
    else "logicalrep-native is not installed; make setup does it where there is a C compiler",
)
