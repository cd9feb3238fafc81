"""Tests of the Spark source are skipped if a library that they need is missing."""

from __future__ import annotations

import importlib.util

import pytest

if any(importlib.util.find_spec(name) is None for name in ("pyspark", "psycopg", "pyarrow", "pandas")):
    collect_ignore_glob = ["*"]


def pytest_configure(config: pytest.Config) -> None:
    """Ignore warnings from PySpark, which leaves sockets and files to the garbage collector and calls old functions."""
    config.addinivalue_line("filterwarnings", "ignore::ResourceWarning")
    config.addinivalue_line("filterwarnings", "ignore::pytest.PytestUnraisableExceptionWarning")
    config.addinivalue_line("filterwarnings", "ignore::DeprecationWarning:pyspark.*")
    config.addinivalue_line("filterwarnings", "ignore::FutureWarning:pyspark.*")
    config.addinivalue_line("filterwarnings", "ignore::UserWarning:pyspark.*")
