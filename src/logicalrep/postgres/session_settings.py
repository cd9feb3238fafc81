"""The settings of each session, independent of the role, the database and the server's configuration."""

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
    # Literals and conditions of queries have standard semantics.
    "standard_conforming_strings": "on",
    "array_nulls": "on",
    "transform_null_equals": "off",
    # No user's code runs with the session's rights: user functions cannot shadow built-in functions, policies make a
    # query fail, and CHECK constraints are not evaluated to exclude partitions.
    "search_path": "",
    "row_security": "off",
    "constraint_exclusion": "off",
    # Statements may write, start at once, and see all earlier commits.
    "default_transaction_read_only": "off",
    "default_transaction_deferrable": "off",
    "default_transaction_isolation": "read committed",
    # No timeout ends a statement, and no expected error ends the session.
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "exit_on_error": "off",
}

PINNED_IF_SUPPORTED = {
    "idle_session_timeout": "0",
    "transaction_timeout": "0",
    # A session that does not read for a minute is not ended.
    "tcp_user_timeout": "0",
    # A view or foreign table that replaces a table is refused: its functions would run with the session's rights
    # (CVE-2024-7348).
    "restrict_nonsystem_relation_kind": "view, foreign-table",
}

# The server detects a lost client and releases the session's locks and slots.
_KEEPALIVES = {"tcp_keepalives_idle": "30", "tcp_keepalives_interval": "10", "tcp_keepalives_count": "3"}
# The role of the DSN has REPLICATION and the rights, not the role that ALTER ROLE … SET role names.
_UNLESS_ASKED_FOR = {"role": "none"}


def session_options(own: str) -> str:
    """Return libpq's `options` of a session: the user's options `own`, and the settings of logicalrep.

    The last setting of a name applies, so PINNED follows `own`; `own` may set a role.
    """
    return " ".join([_options(_KEEPALIVES | _UNLESS_ASKED_FOR), own, _options(PINNED)])


def _options(settings: dict[str, str]) -> str:
    return " ".join("-c {}={}".format(name, value.replace(" ", "\\ ")) for name, value in settings.items())


PIN_IF_SUPPORTED = """
SELECT pg_catalog.set_config(setting.name, wanted.value, false)
FROM pg_catalog.pg_settings AS setting JOIN (VALUES {}) AS wanted(name, value) ON wanted.name = setting.name
""".format(", ".join(f"('{name}', '{value}')" for name, value in PINNED_IF_SUPPORTED.items()))
