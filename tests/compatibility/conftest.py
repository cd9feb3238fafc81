"""Tests of earlier releases' files are skipped if a library that they need is missing."""

from __future__ import annotations

import importlib.util

from tests.spark.conftest import pytest_configure

__all__ = ["pytest_configure"]

if any(importlib.util.find_spec(name) is None for name in ("deltalake", "psycopg", "pyspark")):
    collect_ignore_glob = ["*"]
