"""Sessions that several reads share."""

from __future__ import annotations

import pickle

import psycopg
import pytest

from logicalrep.postgres.sessions.reused_sessions import ReusedSessions
from tests.postgres.servers import Database


def pids(sessions: ReusedSessions) -> list[int]:
    with sessions.pair() as pair:
        return [connection.info.backend_pid for connection in pair]


def test_a_read_finds_nothing_of_an_earlier_one(db18: Database) -> None:
    with ReusedSessions(db18.settings) as sessions:
        with sessions.pair() as (first, second):
            settings = first.execute("SELECT name, setting FROM pg_settings").fetchall()
            for connection in (first, second):
                connection.execute("SET search_path = public")
                connection.execute("SET idle_session_timeout = '1s'")
                connection.execute("CREATE TEMP TABLE t (id int)")
                connection.execute("SELECT pg_advisory_lock(1)") if connection is first else None
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        with sessions.pair() as later_pair:
            assert later_pair == (first, second)
            for connection in later_pair:
                assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
                assert connection.execute("SELECT name, setting FROM pg_settings").fetchall() == settings
                assert connection.execute("SELECT to_regclass('pg_temp.t')").fetchone() == (None,)
            assert db18.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0


def test_two_reads_at_a_time_have_different_sessions(db18: Database) -> None:
    with ReusedSessions(db18.settings) as sessions, sessions.pair() as (first, second):
        assert not {first.info.backend_pid, second.info.backend_pid} & set(pids(sessions))


def test_sessions_of_a_failed_read_end(db18: Database) -> None:
    with ReusedSessions(db18.settings) as sessions:
        with pytest.raises(psycopg.errors.DivisionByZero), sessions.pair() as pair:
            pair[0].execute("SELECT 1 / 0")
        assert all(connection.closed for connection in pair)
        assert all(pids(sessions))
        with pytest.raises(psycopg.OperationalError), sessions.pair() as (first, second):
            db18.execute(f"SELECT pg_terminate_backend({first.info.backend_pid})")
        assert first.closed
        assert second.closed
        assert all(pids(sessions))


def test_no_session_outlives_the_close(db18: Database) -> None:
    with ReusedSessions(db18.settings) as sessions:
        with sessions.pair() as idle_pair:
            pass
        unshared = pickle.loads(pickle.dumps(sessions))
        with unshared.pair() as other:
            pass
        assert all(connection.closed for connection in other)
        with sessions.pair() as (first, second):
            sessions.close()
            assert not first.closed
        assert first.closed
        assert second.closed
    assert all(connection.closed for connection in idle_pair)
