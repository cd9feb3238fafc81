"""The checks before a reader starts: server, role, slot and publications. Each finding has its remedy."""

from __future__ import annotations

import re

from psycopg import sql

from logicalrep.postgres.preflight.findings import Findings, Needs, PreflightError
from logicalrep.postgres.preflight.synchronous import SynchronousStandbyError, refuse_synchronous
from logicalrep.postgres.preflight.tables import check_tables
from logicalrep.postgres.publications import query_current_entries
from logicalrep.postgres.server import Connection, newest_protocol, query_scalar, server_major
from logicalrep.postgres.server_faults import loses_new_tables
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.slot import find_slot, lost_slot_error

RESTART = "-- Restart the server now."
_SLOT_NAME = re.compile("[a-z0-9_]{1,63}")
_MAKE_ANOTHER = (
    "name another slot, and give a stream the option create_slot = true, or run "
    "SELECT pg_create_logical_replication_slot('...', 'pgoutput')."
)


def check(connection: Connection, needs: Needs) -> list[str]:
    """Raise PreflightError if a requirement is not met; return the warnings."""
    findings = query_findings(connection, needs)
    if findings.errors:
        raise PreflightError(findings.errors)
    return findings.warnings


def query_findings(connection: Connection, needs: Needs) -> Findings:
    findings = Findings()
    _check_server(connection, needs, findings)
    _check_role(connection, findings)
    _check_standby(connection, needs, findings)
    _check_slot(connection, needs, findings)
    if not needs.makes_publications:
        _check_publications(connection, needs, findings)
    return findings


def check_role(connection: Connection) -> None:
    """Raise PreflightError if the role may not replicate: it can neither create nor drop slots."""
    findings = Findings()
    _check_role(connection, findings)
    if findings.errors:
        raise PreflightError(findings.errors)


def ensure_slot(connection: Connection, needs: Needs) -> None:
    if needs.create_slot and find_slot(connection, needs.slot) is None:
        create_slot(connection, needs.slot, two_phase=needs.two_phase, failover=needs.failover)


def _check_server(connection: Connection, needs: Needs, findings: Findings) -> None:
    major = server_major(connection)
    if major < 10:
        findings.add_error("SERVER_TOO_OLD", f"The server is PostgreSQL {major}; pgoutput exists since 10.")
        return
    if loses_new_tables(connection) and not needs.fills_defaults:
        findings.warnings.append(
            f"This is PostgreSQL {connection.info.parameter_status('server_version')}, from before May 2025: a "
            "reader may get no changes of a table that is added to a publication while a transaction that has written "
            "it is open. Upgrade to 17.5, 16.9, 15.13, 14.18, 13.21 or later."
        )
    wal_level = query_scalar(connection, "SELECT current_setting('wal_level')")
    # Since PostgreSQL 19, a server with wal_level = replica raises its level for a logical slot.
    enough = ("replica", "logical") if major >= 19 else ("logical",)
    if wal_level not in enough:
        findings.add_error(
            "WAL_LEVEL",
            f"wal_level is {wal_level}: run ALTER SYSTEM SET wal_level = {enough[0]} and restart the server.",
            settings=(f"ALTER SYSTEM SET wal_level = {enough[0]}", RESTART),
        )
    timeout = (
        query_scalar(connection, "SELECT current_setting('idle_replication_slot_timeout')") if major >= 18 else "0"
    )
    if timeout != "0":
        findings.warnings.append(
            f"idle_replication_slot_timeout is {timeout}: a slot without a reader for that time is lost"
            + ("" if needs.mode == "walsender" else ", and mode = peek reads the slot only if there are new changes")
            + ". Read it more often, or run ALTER SYSTEM SET idle_replication_slot_timeout = 0 and reload the "
            "configuration."
        )
    newest = newest_protocol(connection)
    if needs.protocol_version is not None and needs.protocol_version > newest:
        findings.add_error(
            "SERVER_LACKS_OPTION",
            f"protocol_version is {needs.protocol_version}, but PostgreSQL {major} speaks at most {newest}: leave the "
            "option out.",
        )
    for option, is_requested, since in (
        ("binary", needs.binary, 14),
        ("messages", needs.messages, 14),
        ("two_phase", needs.two_phase, 15),
        ("origin", needs.origin is not None, 16),
        ("failover", needs.failover, 17),
    ):
        if is_requested and major < since:
            findings.add_error(
                "SERVER_LACKS_OPTION", f"The option {option} needs PostgreSQL {since}, this is {major}: leave it out."
            )
    version = min(needs.protocol_version or newest, newest)
    for setting, is_requested, least in (
        ("streaming = on", needs.streaming == "on", 2),
        ("streaming = parallel", needs.streaming == "parallel", 4),
        ("two_phase", needs.two_phase and major >= 15, 3),
    ):
        if is_requested and version < least and needs.mode != "peek":
            findings.add_error(
                "OPTION_INVALID",
                f"The option {setting} needs protocol version {least}, the reader's is {version}: leave the option out"
                + (", or protocol_version." if newest >= least else "."),
            )
    if needs.mode == "peek" and needs.moves_slot and major < 11:
        findings.add_error(
            "SERVER_LACKS_OPTION", "PostgreSQL 10 cannot move a slot for mode = peek: use mode = walsender."
        )
    takes_walsender = needs.snapshot or needs.mode == "walsender" or (needs.mode == "auto" and needs.two_phase)
    if takes_walsender and query_scalar(connection, "SELECT current_setting('max_wal_senders')::int") == 0:
        findings.add_error(
            "NO_WALSENDERS",
            "max_wal_senders is 0: run ALTER SYSTEM SET max_wal_senders = 10 and restart the server"
            + ("." if needs.snapshot or needs.makes_publications else ", or use mode = peek."),
            settings=("ALTER SYSTEM SET max_wal_senders = 10", RESTART),
        )
    for option, is_requested in (
        ("streaming", needs.streaming in ("on", "parallel") and needs.mode != "walsender"),
        ("two_phase", needs.two_phase and needs.mode == "peek"),
    ):
        if is_requested:
            findings.add_error(
                "OPTION_INVALID", f"The option {option} needs mode = walsender: use that mode, or leave {option} out."
            )


def _check_role(connection: Connection, findings: Findings) -> None:
    allowed = query_scalar(connection, "SELECT rolsuper OR rolreplication FROM pg_roles WHERE rolname = current_user")
    if not allowed:
        # Managed services grant the right through their own roles.
        allowed = query_scalar(
            connection,
            "SELECT bool_or(pg_has_role(current_user, oid, 'member')) FROM pg_roles "
            "WHERE rolname IN ('rds_replication', 'azure_pg_admin', 'cloudsqlsuperuser')",
        )
    if not allowed:
        user = query_scalar(connection, "SELECT quote_ident(current_user)")
        findings.add_error(
            "ROLE_CANNOT_REPLICATE",
            f"Role {user} may not replicate: run ALTER ROLE {user} REPLICATION.",
            f"ALTER ROLE {user} REPLICATION",
        )


def _check_standby(connection: Connection, needs: Needs, findings: Findings) -> None:
    # A walsender without publications only creates a slot, which nobody reads yet.
    if needs.mode == "peek" or not needs.publications:
        return
    try:
        if warning := refuse_synchronous(connection, needs.slot):
            findings.warnings.append(warning)
    except SynchronousStandbyError as error:
        alternative = "" if needs.fills_defaults else ", or use mode = peek"
        text = error.description
        findings.add_error(error.code, f"{text[0].upper()}{text[1:]}{alternative}.", settings=error.settings)


def _check_slot(connection: Connection, needs: Needs, findings: Findings) -> None:
    slot = find_slot(connection, needs.slot)
    if slot is None and not _SLOT_NAME.fullmatch(needs.slot):
        findings.add_error(
            "OPTION_INVALID",
            f"Replication slot {needs.slot!r} cannot exist: a slot's name has at most 63 lower-case letters, digits "
            "and underscores.",
        )
        return
    if slot is None:
        if not needs.create_slot:
            findings.add_error(
                "SLOT_MISSING",
                f"Replication slot {needs.slot!r} does not exist: give a stream the option create_slot = true, or run "
                f"SELECT pg_create_logical_replication_slot({sql.Literal(needs.slot).as_string()}, 'pgoutput').",
            )
            return
        most = query_scalar(connection, "SELECT current_setting('max_replication_slots')::int")
        free = most - query_scalar(connection, "SELECT count(*)::int FROM pg_replication_slots")
        if server_major(connection) >= 19:
            level = query_scalar(connection, "SELECT current_setting('effective_wal_level')")
            if level != "logical":
                findings.warnings.append(
                    f"Creating the first logical slot raises effective_wal_level from {level} to logical, which waits "
                    "for a checkpoint."
                )
        # A second slot provides the snapshot.
        if free < (2 if needs.snapshot else 1):
            findings.add_error(
                "NO_FREE_SLOT",
                f"{'Two replication slots are needed' if needs.snapshot else 'A replication slot is needed'}, and "
                f"{'none' if free <= 0 else 'one'} is free: raise max_replication_slots, or drop an unused slot.",
                settings=(f"ALTER SYSTEM SET max_replication_slots = {most + 10}", RESTART),
            )
        return
    name = repr(slot.name)
    if slot.plugin is None:
        findings.add_error("SLOT_UNUSABLE", f"Replication slot {name} is a physical slot: {_MAKE_ANOTHER}")
        return
    if slot.plugin != "pgoutput":
        findings.add_error("SLOT_UNUSABLE", f"Replication slot {name} has the plugin {slot.plugin}: {_MAKE_ANOTHER}")
    database = query_scalar(connection, "SELECT current_database()")
    if slot.database != database:
        findings.add_error(
            "SLOT_UNUSABLE",
            f"Replication slot {name} belongs to database {slot.database}, the connection is to {database}: connect to "
            "that database, or make a slot in this one.",
        )
    if slot.lost is not None:
        text = lost_slot_error(slot.name, slot.lost).description
        findings.add_error("SLOT_LOST", f"{text[0].upper()}{text[1:]}.")
    if slot.active_pid is not None:
        findings.warnings.append(
            f"Replication slot {name} is in use by process {slot.active_pid}: the start waits a while for the slot. "
            "Each reader needs its own slot."
        )
    if slot.standbys_warning is not None:
        findings.warnings.append(slot.standbys_warning)
    if needs.two_phase and not slot.two_phase:
        findings.warnings.append(
            f"Replication slot {name} has no two_phase: this reader enables it, and mode = peek cannot read the "
            "slot afterwards."
        )
    if needs.failover and not slot.failover:
        findings.warnings.append(
            f"Replication slot {name} was created without failover: it is lost when a standby takes over."
        )
    if slot.two_phase and needs.mode == "peek":
        findings.add_error(
            "SLOT_UNUSABLE",
            f"Replication slot {name} has two_phase, which mode = peek cannot read: use mode = walsender, or a slot "
            "without two_phase, which sends prepared transactions at COMMIT PREPARED.",
        )


def _check_publications(connection: Connection, needs: Needs, findings: Findings) -> None:
    rows = query_current_entries(
        connection,
        "SELECT pubname, count(tablename) FROM pg_publication "
        "LEFT JOIN pg_publication_tables USING (pubname) WHERE pubname = ANY(%s) GROUP BY pubname",
        list(needs.publications),
    )
    tables: dict[str, int] = dict(rows)
    for name in needs.publications:
        if name not in tables:
            quoted = query_scalar(connection, "SELECT quote_ident(%s)", name)
            findings.add_error(
                "PUBLICATION_MISSING",
                f"Publication {name!r} does not exist in this database: run CREATE PUBLICATION {quoted} FOR TABLE ...",
            )
        elif not tables[name]:
            findings.warnings.append(
                f"Publication {name!r} has no tables: run ALTER PUBLICATION ... ADD TABLE ... to see changes."
            )
    if not findings.errors:
        check_tables(connection, needs, findings)
