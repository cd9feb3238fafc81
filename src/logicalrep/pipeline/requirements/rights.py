"""The missing rights of a role to create the publication."""

from __future__ import annotations

from logicalrep.observe.events import listed
from logicalrep.pipeline.catalog.publication_plan import PublicationPlan
from logicalrep.pipeline.catalog.rights import Rights
from logicalrep.postgres.preflight.findings import Finding
from logicalrep.postgres.server import Connection, server_major

_MAY_CREATE = "SELECT pg_is_in_recovery(), has_database_privilege(current_database(), 'CREATE')"


def publication_findings(connection: Connection, plan: PublicationPlan, rights: Rights) -> list[Finding]:
    """Return why the role cannot create the publication; empty if it can, or the publication exists."""
    errors = [*plan.refusals, *([] if plan.incomplete is None else [plan.incomplete])]
    findings = [Finding(error.code, _sentence(error.description), error.statements) for error in errors]
    if plan.exists:
        return findings
    row = connection.execute(_MAY_CREATE).fetchone()
    assert row is not None
    is_standby, may_create = row
    not_owned = [table for table in plan.candidates.publishable if table in rights.not_owned]
    reasons = [f"does not own {listed(not_owned)}"] if not_owned else []
    reasons += [] if may_create else ["may not create in the database"]
    statements = tuple(
        statement.as_string(connection) for statement in plan.create_statements(server_major(connection))
    )
    if is_standby:
        text = f"A standby cannot create the publication {plan.name}: run on its primary {'; '.join(statements)}."
        findings.append(Finding("PUBLICATION_NEEDED", text, statements))
    elif reasons:
        text = (
            f"Role {rights.role} may not create the publication {plan.name}, as it {' and '.join(reasons)}: let a "
            "superuser, or the tables' owner, run CREATE PUBLICATION from the script."
        )
        findings.append(Finding("PUBLICATION_NEEDED", text, statements))
    return findings


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
