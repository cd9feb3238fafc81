"""Settings of a role or a database that would end sessions, or change what their queries return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from logicalrep.postgres.connection import ConnectionSettings
from tests.postgres.servers import Database

HOSTILE = {
    "DateStyle": "SQL, DMY",
    "IntervalStyle": "sql_standard",
    "TimeZone": "Asia/Kathmandu",
    "extra_float_digits": "-15",
    "bytea_output": "escape",
    "quote_all_identifiers": "on",
    "standard_conforming_strings": "off",
    "array_nulls": "off",
    "transform_null_equals": "on",
    "search_path": "hidden, public",
    "row_security": "on",
    "constraint_exclusion": "on",
    "default_transaction_read_only": "on",
    "default_transaction_deferrable": "on",
    "default_transaction_isolation": "serializable",
    "statement_timeout": "1",
    "lock_timeout": "1",
    "idle_in_transaction_session_timeout": "1",
    "exit_on_error": "on",
    "client_encoding": "LATIN1",
    "idle_session_timeout": "10s",
    "transaction_timeout": "10s",
    "tcp_user_timeout": "1",
    "restrict_nonsystem_relation_kind": "",
    "role": "nobody_at_all",
}
"""A value of each pinned setting that would end a session, or change what its queries return."""


ODD = {
    "client_min_messages": "debug3",
    "cursor_tuple_fraction": "0.000001",
    "debug_logical_replication_streaming": "immediate",
    "debug_parallel_query": "on",
    "enable_hashjoin": "off",
    "enable_nestloop": "off",
    "enable_seqscan": "off",
    "geqo_threshold": "2",
    "gin_fuzzy_search_limit": "1",
    "jit_above_cost": "0",
    "lc_numeric": "C.UTF-8",
    "logical_decoding_work_mem": "64kB",
    "max_parallel_workers_per_gather": "0",
    "plan_cache_mode": "force_generic_plan",
    "session_replication_role": "replica",
    "stats_fetch_consistency": "none",
    "synchronous_commit": "off",
    "temp_buffers": "100",
    "wal_sender_timeout": "5s",
    "work_mem": "64kB",
    "xmlbinary": "hex",
    "xmloption": "document",
}
"""A rare value of settings that are not pinned."""


@contextmanager
def with_settings(
    db: Database, of: Literal["ROLE", "DATABASE"], values: Mapping[str, str]
) -> Iterator[ConnectionSettings]:
    """Give a new superuser, or the database, settings; yield the settings of connections of the superuser.

    Settings that the server does not have are passed over. `role` gets a role without rights.
    """
    role, without_rights = f"role_of_{db.name}", f"nobody_of_{db.name}"
    db.execute(f"CREATE ROLE {role} SUPERUSER LOGIN", f"CREATE ROLE {without_rights}")
    names = {str(name) for (name,) in db.rows("SELECT lower(name) FROM pg_settings")} | {"role"}
    for name, value in values.items():
        text = without_rights if name == "role" else value if name == "search_path" else f"'{value}'"
        if name.lower() in names:
            db.execute(f"ALTER {of} {role if of == 'ROLE' else db.name} SET {name} = {text}")
    yield ConnectionSettings(db.dsn, user=role)
    db.execute(f"ALTER DATABASE {db.name} RESET ALL", f"DROP OWNED BY {role}", f"DROP ROLE {role}, {without_rights}")


__all__ = ["HOSTILE", "ODD", "with_settings"]
