"""The mark of tests that need the native reader."""

from __future__ import annotations

import importlib.util

import pytest

needs_native = pytest.mark.skipif(
    importlib.util.find_spec("logicalrep_native") is None,
    reason="logicalrep-native is not installed; make setup does it where there is a C compiler",
)
