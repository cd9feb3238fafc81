"""Replication slots: their state, creation, use and copies. Needs psycopg 3."""
