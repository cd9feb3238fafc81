"""Compile the loops of `logicalrep replicate` for an image: load a table, and apply a change."""

import tempfile
from pathlib import Path

import psycopg

import logicalrep
from logicalrep.postgres.local_server import LocalServer, find_installation

with LocalServer(find_installation(18)) as server, psycopg.connect(server.dsn, autocommit=True) as connection:
    lake = Path(tempfile.mkdtemp()) / "lake"
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, n numeric(12, 2), note text, at timestamptz)")
    connection.execute("INSERT INTO t SELECT n, n, repeat('x', 200), now() FROM generate_series(1, 20000) n")
    for _ in range(2):
        logicalrep.replicate(server.dsn, str(lake), once=True)
        connection.execute("UPDATE t SET n = n + 1 WHERE id < 10000")
