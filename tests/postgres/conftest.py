"""Tests on real servers are skipped if psycopg is missing."""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("psycopg") is None:
    collect_ignore_glob = ["*"]
