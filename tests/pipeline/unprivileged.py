"""A role that owns nothing, and the script that helps it."""

from __future__ import annotations

import subprocess

from tests.postgres.servers import Database

ROLE = '"the reader"'


class DatabaseAsReader(Database):
    """The same database, as the role that owns nothing sees it."""

    @property
    def dsn(self) -> str:
        return self.server.dsn_as("'the reader'")


def run_script(db: Database, script: str) -> None:
    """Run a script as a person does: in psql, as a superuser, and with the restart that it asks for."""
    psql = db.server.installation.bin / "psql"
    done = subprocess.run(
        [psql, "-X", "-q", "-v", "ON_ERROR_STOP=1", db.dsn], input=script, text=True, capture_output=True, check=False,
        env={"LD_LIBRARY_PATH": str(db.server.installation.folder / "lib")},
    )  # fmt: skip
    # CREATE PUBLICATION warns of a wal_level that is to be another one.
    assert (done.returncode, "ERROR" in done.stderr) == (0, False), done.stderr
    if "-- Restart the server now.\n" in script:
        db.server.stop()
        db.server.start()
        db.reconnect()
