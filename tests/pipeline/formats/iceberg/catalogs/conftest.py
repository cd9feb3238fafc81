"""Tests of catalogs are skipped if a library that they need is missing."""

from __future__ import annotations

import importlib.util

if any(importlib.util.find_spec(name) is None for name in ("moto", "pyiceberg", "sqlalchemy")):
    collect_ignore_glob = ["*"]
