"""The settings that each session sets for itself, whatever the role, the database or the server have."""

from __future__ import annotations

PINNED = {
    # Values come in the forms that the types' parsers expect.
    "client_encoding": "UTF8",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "quote_all_identifiers": "off",
    # Literals and conditions of queries mean what they say.
    "standard_conforming_strings": "on",
    "array_nulls": "on",
    "transform_null_equals": "off",
    # Nobody's code runs with the rights of the session: a user's function in a schema of the search path must not
    # shadow a function of the server, a policy makes a query fail, and CHECK constraints are not evaluated to exclude
    # partitions.
    "search_path": "",
    "row_security": "off",
    "constraint_exclusion": "off",
    # Statements may write, begin at once, and see what was committed before them.
    "default_transaction_read_only": "off",
    "default_transaction_deferrable": "off",
    "default_transaction_isolation": "read committed",
    # No timeout ends a statement, and no error that a statement expects ends the session.
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "exit_on_error": "off",
}
"""The settings that all servers have."""

PINNED_WHERE_THERE = {
    "idle_session_timeout": "0",
    "transaction_timeout": "0",
    # A session that does not read for a minute is not ended.
    "tcp_user_timeout": "0",
    # Refuses a view, or a foreign table, that takes a table's name: its functions would run with the rights of the
    # session (CVE-2024-7348).
    "restrict_nonsystem_relation_kind": "view, foreign-table",
}
"""The settings that only newer servers have."""

# The server finds out that this side is gone, and lets go of what the session holds.
_KEEPALIVES = {"tcp_keepalives_idle": "30", "tcp_keepalives_interval": "10", "tcp_keepalives_count": "3"}
# The role of the DSN has REPLICATION and the rights, not the role that ALTER ROLE … SET role names.
_UNLESS_ASKED_FOR = {"role": "none"}


def session_options(own: str) -> str:
    """Return libpq's `options` of a session.

    `own` has the user's options. The last setting of a name applies: the user may name a role, and cannot replace what
    is pinned.
    """
    return " ".join([_options(_KEEPALIVES | _UNLESS_ASKED_FOR), own, _options(PINNED)])


def _options(settings: dict[str, str]) -> str:
    return " ".join("-c {}={}".format(name, value.replace(" ", "\\ ")) for name, value in settings.items())


PIN_WHERE_THERE = """
SELECT pg_catalog.set_config(setting.name, wanted.value, false)
FROM pg_catalog.pg_settings AS setting JOIN (VALUES {}) AS wanted(name, value) ON wanted.name = setting.name
""".format(", ".join(f"('{name}', '{value}')" for name, value in PINNED_WHERE_THERE.items()))
"""The query that sets what only newer servers have."""
