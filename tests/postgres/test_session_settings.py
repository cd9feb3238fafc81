"""The settings of our sessions: all that could change a value, a query or its end is pinned, whatever a server has."""

from __future__ import annotations

import re
from contextlib import closing
from typing import Literal

import pytest

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.session_settings import PINNED, PINNED_IF_SUPPORTED
from tests.postgres.hostile_settings import HOSTILE, with_settings
from tests.postgres.servers import Database

HARMLESS_GROUPS = {
    r"Query Tuning / .*": "a plan changes no result; constraint_exclusion, which evaluates code, is pinned",
    r"Resource Usage / .*": "a limit that is too low is an error",
    r"Reporting and Logging / .*": "for the server's log and for lists of its processes",
    r"Statistics / .*": "for people",
    r".*: (auto)?vacuum_.*": "a session of ours does not vacuum",
    r"Write-Ahead Log / .*": "a session of ours writes no rows",
    r"Developer Options: .*": "for developers of the server; a superuser who reads damaged pages as empty wants to lose rows",
    r"Lock Management: .*": "the time until the server looks for a deadlock",
}
HARMLESS = {
    # Texts of values.
    "lc_monetary": "a change of it is noticed, and tables with money are reloaded",
    "timezone_abbreviations": "a query has no abbreviation of a time zone",
    "xmlbinary": "for functions that make XML",
    "xmloption": "for text that becomes XML",
    "lc_messages": "errors are told apart by their SQLSTATE",
    "lc_numeric": "for to_char",
    "lc_time": "for to_char",
    "default_text_search_config": "for to_tsvector",
    "icu_validation_level": "for CREATE COLLATION",
    # Queries.
    "backslash_quote": "a query has no backslash before a quote",
    "escape_string_warning": "a warning",
    "synchronize_seqscans": "the order of rows, which no query relies on",
    "gin_fuzzy_search_limit": "for conditions that an index of GIN answers, which no query has",
    "gin_pending_list_limit": "for writes",
    "lo_compat_privileges": "for large objects",
    "client_min_messages": "libpq takes notices at any time",
    "stats_fetch_consistency": "for statistics",
    # Libraries and functions, which only the server's administrators put there.
    "dynamic_library_path": "a superuser's",
    "extension_control_path": "a superuser's",
    "extension_destdir": "a superuser's",
    "local_preload_libraries": "from the server's folder of plugins",
    "session_preload_libraries": "a superuser's",
    # Statements that a session of ours does not run.
    "check_function_bodies": "for CREATE FUNCTION",
    "createrole_self_grant": "for CREATE ROLE",
    "default_table_access_method": "for CREATE TABLE",
    "default_tablespace": "for CREATE TABLE",
    "default_toast_compression": "for CREATE TABLE",
    "default_with_oids": "for CREATE TABLE",
    "temp_tablespaces": "for temporary files; a missing tablespace is passed over",
    "event_triggers": "a publication's DDL runs them, as anybody's",
    "session_replication_role": "for triggers of rows that are written",
    "file_copy_method": "for CREATE DATABASE",
    "md5_password_warnings": "for ALTER ROLE",
    "password_encryption": "for ALTER ROLE",
    "scram_iterations": "for ALTER ROLE",
    # Set anew at the begin of each transaction.
    "transaction_deferrable": "default_transaction_deferrable is pinned",
    "transaction_isolation": "default_transaction_isolation is pinned",
    "transaction_read_only": "default_transaction_read_only is pinned",
    # The end of sessions.
    "client_connection_check_interval": "how soon the server sees that this side is gone",
    "tcp_keepalives_count": "set for the session",
    "tcp_keepalives_idle": "set for the session",
    "tcp_keepalives_interval": "set for the session",
    "wal_sender_timeout": "asked for, and answered in time",
}
"""The settings that are not pinned, each with the reason."""


def test_each_setting_of_a_session_is_pinned_or_harmless(db16_and_18: Database) -> None:
    rows = db16_and_18.rows(
        "SELECT name, category FROM pg_settings "
        "WHERE context IN ('user', 'superuser', 'backend', 'superuser-backend') AND name !~ '[.]'"
    )
    unknown = {
        name: category
        for name, category in rows
        if name not in PINNED.keys() | PINNED_IF_SUPPORTED.keys() | HARMLESS.keys()
        and not any(re.fullmatch(pattern, f"{category}: {name}") for pattern in HARMLESS_GROUPS)
    }
    assert unknown == {}
    assert HOSTILE.keys() == PINNED.keys() | PINNED_IF_SUPPORTED.keys() | {"role"}


@pytest.mark.parametrize("replication", [False, True])
@pytest.mark.parametrize("of", ["ROLE", "DATABASE"])
def test_pinned_settings_replace_those_of_the_role_and_the_database(
    db16_and_18: Database, of: Literal["ROLE", "DATABASE"], replication: bool
) -> None:
    with (
        with_settings(db16_and_18, of, HOSTILE) as settings,
        closing(settings.connect(replication=replication)) as connection,
    ):
        rows = connection.execute("SELECT lower(name), setting, coalesce(unit, '') FROM pg_settings").fetchall()
        values = {name: setting for name, setting, _ in rows}
        wanted = {name.lower(): value for name, value in {**PINNED, **PINNED_IF_SUPPORTED}.items()}
        pinned = {name: values[name].removesuffix(", MDY").removesuffix(", DMY") for name in wanted if name in values}
        assert pinned == {name: wanted[name] for name in pinned}
        assert pinned.keys() >= {name.lower() for name in PINNED}
        assert connection.execute("SELECT current_user = session_user").fetchone() == (True,)


def test_a_role_that_the_user_names_stays(db18: Database) -> None:
    settings = ConnectionSettings(db18.dsn, options="-c role=pg_monitor -c DateStyle=SQL")
    with closing(settings.connect()) as connection:
        query = "SELECT current_user, current_setting('DateStyle')"
        assert connection.execute(query).fetchone() in [("pg_monitor", "ISO, MDY"), ("pg_monitor", "ISO, DMY")]
