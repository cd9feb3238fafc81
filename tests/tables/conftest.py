"""Fixtures for tests of replicated tables: those of real servers, and a local Spark."""

from __future__ import annotations

import importlib.util

if any(importlib.util.find_spec(name) is None for name in ("deltalake", "psycopg", "pyspark")):
    collect_ignore_glob = ["*"]
else:
    from tests.postgres.conftest import _servers, db, db18
    from tests.spark.conftest import spark

    __all__ = ["_servers", "db", "db18", "spark"]
