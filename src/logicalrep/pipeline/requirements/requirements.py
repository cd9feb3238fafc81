"""The requirements of a run: what is not met, what stays out, and the script after which all is met."""

from __future__ import annotations

import re
from dataclasses import dataclass

from logicalrep.pipeline.catalog.publication_plan import PublicationPlan, add_statement
from logicalrep.pipeline.requirements.rights import Rights, publication_findings
from logicalrep.postgres.preflight.checks import RESTART, query_findings
from logicalrep.postgres.preflight.findings import Finding, Needs, PreflightError
from logicalrep.postgres.server import Connection, query_scalar
from logicalrep_runtime.visible import visible

_LOCKS = (
    "BEGIN;",
    "-- Nobody waits longer behind this. Where it fails, nothing is changed, and it can be run again.",
    "SET LOCAL lock_timeout = '10s';",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """A server and a role, as far as they do not meet what a run needs."""

    role: str
    database: str
    findings: tuple[Finding, ...]
    """The reasons why a run cannot begin."""
    warnings: tuple[str, ...]
    """The tables that stay out, and what else a person should know; a run begins all the same."""
    optional: tuple[tuple[str, tuple[str, ...]], ...]
    """A comment for each table that stays out and need not, and the statements after which it takes part."""

    @property
    def script(self) -> str:
        """The SQL after which every requirement is met; empty if nothing is missing that SQL could give."""
        settings = dict.fromkeys(line for finding in self.findings for line in finding.settings)
        statements = [
            f"{line};" for line in dict.fromkeys(line for finding in self.findings for line in finding.statements)
        ]
        for comment, lines in self.optional:
            statements += [f"-- {comment}", *(f"{line};" for line in lines)]
        changes = [f"{line};" for line in settings if line != RESTART]
        if statements:
            changes += [*_LOCKS, *statements, "COMMIT;"]
        changes += [RESTART] if RESTART in settings else []
        head = f"-- What role {self.role} lacks in database {self.database}, for a superuser to run there."
        return "".join(f"{_in_one_line(line)}\n" for line in (head, *changes)) if changes else ""

    def refuse_unmet(self) -> None:
        """Raise UnmetError if a requirement is not met."""
        if self.findings:
            raise UnmetError(self.findings, self.script)


_QUOTED = re.compile(r"""'(?:[^']|'')*'|"((?:[^"]|"")*)\"""")


def _in_one_line(text: str) -> str:
    """Return a statement, or a comment, without line breaks and other characters that are not seen.

    In a statement such a name is written with escapes of SQL, and in a comment, which it must not end, with any.
    """

    def written(match: re.Match[str]) -> str:
        name = match[1]
        if name is None or visible(name) == name:
            return match[0]
        escaped = (
            character if visible(character) == character else f"\\+{ord(character):06X}"
            for character in name.replace("\\", "\\\\")
        )
        return f'U&"{"".join(escaped)}"'

    return visible(text if text.startswith("--") else _QUOTED.sub(written, text))


class UnmetError(PreflightError):
    """All requirements of a run that are not met: a line for each, and the script after which all are met."""

    def __init__(self, findings: tuple[Finding, ...], script: str) -> None:
        """Take the findings, and the script of SQL."""
        super().__init__(findings)
        self.args = findings, script
        self.script = script


def query_requirements(connection: Connection, plan: PublicationPlan, needs: Needs, *, is_first: bool) -> Requirements:
    """Return what a run lacks.

    Args:
        connection: a connection of the role that the run will have.
        plan: the publication.
        needs: the needs of the slot's reader.
        is_first: whether nothing has been loaded yet. Later a table that cannot be read stops alone, and a warning
            says so.
    """
    server = query_findings(connection, needs)
    fixable = [candidate for candidate in plan.candidates.left_out if candidate.statements]
    tables = sorted(
        {*plan.candidates.publishable, *(candidate.table for candidate in fixable)}
        | (plan.tables if plan.is_ours else set())
    )
    rights = Rights.query(connection, tables)
    unreadable = rights.findings()
    findings = [*server.errors, *(unreadable if is_first else ()), *publication_findings(connection, plan, rights)]
    warnings = [*plan.warnings, *server.warnings, *(() if is_first else (candidate.text for candidate in unreadable))]
    # Who makes the publication adds the tables too; ours gets them at the next start, if the role owns them.
    is_made_by_others = any(finding.code == "PUBLICATION_NEEDED" for finding in findings) or plan.exists
    optional = []
    for candidate in fixable:
        lines = candidate.statements
        if candidate.table not in plan.tables and is_made_by_others and candidate.table in rights.not_owned:
            lines = (*lines, add_statement(plan.name, [candidate.table]).as_string(connection))
        counted_lines = "this line" if len(lines) == 1 else f"these {len(lines)} lines, all of them,"
        optional.append((f"Without {counted_lines} {candidate.table} stays out", lines))
    unpublished = [table for table in plan.tables_to_add if plan.exists and table in rights.not_owned]
    if unpublished:
        optional.append(("New tables", (add_statement(plan.name, unpublished).as_string(connection),)))
    return Requirements(
        role=rights.role,
        database=str(query_scalar(connection, "SELECT quote_ident(current_database())")),
        findings=tuple(findings),
        warnings=tuple(dict.fromkeys(warnings)),
        optional=tuple(optional),
    )
