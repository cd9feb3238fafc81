"""Each error that wakes a person is one line: what happened, what replicate does now, what the person should do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from logicalrep.observe.counts import Observed
from logicalrep.observe.events import RunEvent
from logicalrep.observe.observer import Observer, Observers
from logicalrep.observe.page import page
from logicalrep.pipeline.limits import Limits
from logicalrep.postgres.local_server import LocalServer
from logicalrep.postgres.slots.errors import SlotError
from tests.pipeline.comparison import find_differences
from tests.pipeline.replicating import replicate_meanwhile, replicate_once
from tests.pipeline.storage.disks import fill, small_disk
from tests.postgres.servers import Database, connect_writer, installation
from tests.waiting import eventually

pytestmark = pytest.mark.postgres

LINES = {
    "wrong password": ("the server refuses the connection", "trying again", "correct the role's password"),
    "password corrected": ("the server answers again", "reading resumes", "no action needed"),
    "server away": ("the server cannot be reached", "trying again", "start the server"),
    "server restarted": ("the server answers again", "reading resumes", "no action needed"),
    "disk full": ("No space left", "replicate retries", "free space at the destination"),
    "room again": ("the destination can be written again", "replication resumes", ""),
    "type widened": ("public.typed: ", "replication continues", "no action needed"),
    "type rewritten": ("public.rewritten: ", "replicate loads the rows", "no action needed"),
    "rights revoked": ("public.revoked is stopped", "its changes are not buffered", "GRANT SELECT"),
    "slot gone": ("is missing", "replicate cannot continue", "run logicalrep resync --all"),
}
"""What happened, what replicate does about it now, and what a person should do, by cause."""

END_SESSIONS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'night'"
DROP_SLOT = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"


class AtNight(Database):
    """The same database, as a role with a password that owns nothing sees it."""

    @property
    def dsn(self) -> str:
        return f"{self.server.dsn_as('night')} password=secret"


class LinePrinter(Observer):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def on_event(self, event: RunEvent) -> None:
        if (line := event.line()) is not None:
            self.lines.append(line)

    def wait_for(self, cause: str) -> None:
        """Wait for a line with all parts, and forget the lines before."""
        try:
            eventually(
                lambda: any(all(part in line for part in LINES[cause]) for line in list(self.lines)), seconds=120
            )
        except AssertionError:
            pytest.fail(f"no line about {cause}, but {self.lines}")
        self.lines.clear()


def needed_actions(observed: Observed) -> str:
    """Return what the page lists first, before the figures; empty if nobody is needed."""
    head, _, _ = page(observed, "/lake").partition('<div class="tiles">')
    return re.sub("<[^>]*>", " ", head.partition("<h2>Action needed</h2>")[2])


@pytest.fixture
def reader() -> Iterator[AtNight]:
    with LocalServer(installation(18), fsync="off") as server:
        hba = server.data / "pg_hba.conf"
        hba.write_text(f"local all,replication night scram-sha-256\n{hba.read_text()}")
        db = AtNight(server, "postgres", 18, connect_writer(server.dsn))
        db.execute(
            "SELECT pg_reload_conf()",
            "CREATE ROLE night LOGIN REPLICATION PASSWORD 'secret'",
            *(
                f"CREATE TABLE {name} (id int PRIMARY KEY, v {type_}); INSERT INTO {name} VALUES (1, '1')"
                for name, type_ in [("typed", "numeric(6,2)"), ("rewritten", "int"), ("revoked", "int")]
            ),
            "GRANT SELECT ON ALL TABLES IN SCHEMA public TO night",
            "CREATE PUBLICATION night FOR TABLE typed, rewritten, revoked WITH (publish_via_partition_root)",
        )
        yield db
        db.connection.close()


def test_each_line_says_what_happened_what_follows_and_what_to_do(reader: AtNight, tmp_path: Path) -> None:
    lines, observed, server = LinePrinter(), Observed(), reader.server
    with small_disk(tmp_path / "disk") as disk:
        lake = disk / "lake"
        with replicate_meanwhile(
            reader, lake, Observers(lines, observed), publication="night", limits=Limits(failing_seconds=0.0)
        ) as caught_up:
            caught_up()
            reader.execute("ALTER ROLE night PASSWORD 'other'", END_SESSIONS)
            lines.wait_for("wrong password")
            assert "the server refuses the connection" in needed_actions(observed)
            reader.execute("ALTER ROLE night PASSWORD 'secret'")
            lines.wait_for("password corrected")
            caught_up()
            assert needed_actions(observed) == ""

            reader.connection.close()
            server.stop()
            lines.wait_for("server away")
            # A server that restarts needs nobody, and is listed behind.
            assert needed_actions(observed) == ""
            assert "the server cannot be reached" in page(observed, "/lake")
            server.start()
            reader.connection = connect_writer(server.dsn)
            lines.wait_for("server restarted")
            caught_up()

            filling = fill(disk)
            reader.execute("UPDATE typed SET v = '2'")
            lines.wait_for("disk full")
            assert "the destination cannot be written" in needed_actions(observed)
            filling.unlink()
            lines.wait_for("room again")
            caught_up()

            reader.execute("ALTER TABLE typed ALTER v TYPE numeric(9,2)", "UPDATE typed SET v = '3'")
            lines.wait_for("type widened")
            reader.execute("ALTER TABLE rewritten ALTER v TYPE bigint USING -v")
            lines.wait_for("type rewritten")
            eventually(lambda: find_differences(server.dsn, str(lake), ["public.typed", "public.rewritten"]) == {})

            reader.execute("REVOKE SELECT ON revoked FROM night", "ALTER TABLE revoked ALTER v TYPE bigint USING -v")
            lines.wait_for("rights revoked")
            eventually(lambda: "public.revoked is stopped" in needed_actions(observed))
        reader.execute(DROP_SLOT)
        with pytest.raises(SlotError) as lost:
            replicate_once(reader, lake, publication="night")
        assert all(part in str(lost.value) for part in LINES["slot gone"]), lost.value
