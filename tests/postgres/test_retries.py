"""The failures to connect that are retried, and their time limits, in any language of the server."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Iterator

import psycopg
import pytest

from logicalrep.postgres import connection
from logicalrep.postgres.connection import ConnectError, ConnectionSettings
from logicalrep.postgres.retries import TRANSIENT, Ended, Retries, Wait
from tests.postgres.stand_in import StandIn, start_stand_in

_NOTHING_LOST = "no change is lost: start the server if it does not restart by itself"
_WRONG_PASSWORD = "28P01", "Passwort-Authentifizierung für Benutzer »x« fehlgeschlagen"
_NO_DATABASE = "3D000", "Datenbank »d« existiert nicht"
_STARTING = "57P03", "das Datenbanksystem startet"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """Yield a stand-in whose refusals are retried for half a second, and to which no connection was made before."""
    monkeypatch.setattr(connection, "FIRST_CONNECT_PATIENCE", 0.5)
    monkeypatch.setenv("PGPASSFILE", "/nowhere")
    with start_stand_in() as stand_in:
        yield stand_in


def connect(dsn: str, seconds: float, before_try: Callable[[float], None] = lambda lasted: None) -> None:
    """Connect like the retrying loops; `before_try` is called before each try."""
    retries = Retries(seconds)
    while True:
        before_try(retries.lasted)
        try:
            ConnectionSettings(dsn).connect().close()
            return
        except TRANSIENT as error:
            retries.wait_or_raise(error)


def failure(dsn: str, seconds: float) -> tuple[str, float]:
    """Return the text of the final failure, and the seconds until then."""
    began = time.monotonic()
    with pytest.raises(ConnectError) as caught:
        connect(dsn, seconds)
    return str(caught.value), time.monotonic() - began


def test_the_end_of_an_outage_is_reported_once_and_the_next_outage_at_once() -> None:
    lines: list[str] = []
    wait = Wait(say=lines.append, say_end=lines.append)
    of_two_connections = [Retries(wait), Retries(wait)]
    for _ in range(2):
        for retries in of_two_connections:
            retries.wait_or_raise(psycopg.OperationalError("connection refused"))
        for retries in of_two_connections:
            retries.record_success()
    trying = f"the server cannot be reached, trying again: connection refused; {_NOTHING_LOST}"
    assert lines == 2 * [trying, "the server answers again, after 0 s: reading resumes, no action needed"]


def test_a_wrong_password_is_sent_once(server: StandIn) -> None:
    server.want_password()
    server.refuse(*_WRONG_PASSWORD)
    text, _ = failure(f"{server.dsn} password=geheim", 60)
    assert text.startswith("[CONNECTION_REFUSED] ")
    assert text.endswith("Passwort-Authentifizierung für Benutzer »x« fehlgeschlagen")
    assert server.passwords == ["geheim"]


def test_a_password_that_is_missing_is_reported_in_one_sentence(server: StandIn) -> None:
    server.want_password()
    text, seconds = failure(server.dsn, 60)
    assert text.startswith("[PASSWORD_MISSING] the server requires a password: ")
    assert all(
        word in text for word in ("option `password`", ".pgpass", "--dsn-file", "--password-command", "executors")
    )
    assert "\n" not in text
    assert seconds < 10


def test_what_the_server_refuses_is_tried_for_some_seconds(server: StandIn) -> None:
    server.refuse(*_NO_DATABASE)
    text, seconds = failure(server.dsn, 60)
    assert text.startswith("[CONNECTION_REFUSED] ")
    assert "Datenbank »d« existiert nicht; tried for " in text
    assert 0.5 < seconds < 30


@pytest.mark.slow
@pytest.mark.parametrize("chosen", ["", " target_session_attrs=primary", " target_session_attrs=primary password=x"])
def test_a_server_that_starts_or_takes_over_is_waited_for(server: StandIn, chosen: str) -> None:
    if "password" in chosen:
        server.want_password()
    if chosen:
        server.follow()
    else:
        server.refuse(*_STARTING)

    def go_on(lasted: float) -> None:
        if lasted > 1:
            server.let_in()

    connect(server.dsn + chosen, 60, go_on)


def test_nobody_answers(server: StandIn) -> None:
    with start_stand_in() as stand_in:
        pass
    text, seconds = failure(stand_in.dsn, 1)
    assert text.startswith("[SERVER_AWAY] ")
    assert "refused" in text
    assert "; tried for " in text
    assert seconds > 1


def test_parameters_that_were_right_once_are_tried_again(server: StandIn) -> None:
    """The server may be restored, or have another password for a while."""
    dsn = f"{server.dsn} password=geheim"
    ConnectionSettings(dsn).connect().close()
    server.want_password()
    server.refuse(*_WRONG_PASSWORD)
    text, seconds = failure(dsn, 1)
    assert seconds > 1
    assert len(server.passwords) > 2
    assert text.startswith("[CONNECTION_REFUSED] ")


class Passing(threading.Event):
    """An event in whose waits the clock runs ahead."""

    def __init__(self, clock: list[float]) -> None:
        super().__init__()
        self._clock = clock

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self._clock[0] += timeout
        return self.is_set()


def test_without_a_limit_a_day_is_waited_with_one_line_a_minute_of_several_connections(clock: list[float]) -> None:
    lines: list[str] = []
    stop = Passing(clock)
    waiting = Wait(math.inf, stop=stop, say=lines.append)
    retries = Retries(waiting), Retries(waiting)
    error = psycopg.OperationalError("no route\nto host")
    tries = 0
    while clock[0] < 100 + 86_400:
        tries += 1
        for retry in retries:
            retry.wait_or_raise(error)
    assert 1430 <= len(lines) <= 1440
    assert lines[0] == f"the server cannot be reached, trying again: no route to host; {_NOTHING_LOST}"
    assert re.match(r"the server cannot be reached for \d+ s, trying again: no route to host; ", lines[1])
    # Each of them tries every ten seconds.
    assert tries < 5000
    stop.set()
    with pytest.raises(ConnectError, match=r"\[SERVER_AWAY\] no route to host; tried for 86\d{3}\.\d s"):
        retries[0].wait_or_raise(error)


def test_threads_that_wait_for_one_thing_share_its_lines_and_its_end(clock: list[float]) -> None:
    lines: list[str] = []
    stop = threading.Event()
    wait = Wait(stop=stop, say=lines.append, interval=5)
    for second in range(12):
        clock[0] = 100.0 + second
        for name in ("a", "b"):
            wait.check()
            wait.say(lambda name=name, second=second: f"{name} waits, {second}")  # type: ignore[misc]
    assert lines == ["a waits, 0", "a waits, 5", "a waits, 10"]
    stop.set()
    with pytest.raises(Ended):
        wait.check()
    with Wait() as wait:
        wait.check()
    with pytest.raises(Ended):
        wait.check()
