"""The unmet requirements of a run, the tables that are not replicated, and the script that changes both."""

from __future__ import annotations

import re
from dataclasses import dataclass

from logicalrep.observe.events import listed
from logicalrep.pipeline.catalog.publication_plan import PublicationPlan, add_statement
from logicalrep.pipeline.catalog.rights import Rights
from logicalrep.pipeline.requirements.rights import publication_findings
from logicalrep.postgres.preflight.checks import RESTART, query_findings
from logicalrep.postgres.preflight.findings import Finding, Needs, PreflightError
from logicalrep.postgres.server import Connection, query_scalar
from logicalrep_runtime.visible import visible

_LOCKS = (
    "BEGIN;",
    "-- Other sessions wait at most this long for these locks. If it fails, nothing has changed: run it again.",
    "SET LOCAL lock_timeout = '10s';",
)


_CHOICES = "-- Your choice, table by table: replicate starts without the statements from here on."


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    role: str
    database: str
    findings: tuple[Finding, ...]
    """The reasons why a run does not start."""
    stopping: tuple[Finding, ...]
    """The reasons why a run would start, and tables would be stopped."""
    warnings: tuple[str, ...]
    """Sentences about tables that are not replicated, and other warnings; a run starts nevertheless."""
    optional: tuple[tuple[str, tuple[str, ...]], ...]
    """A comment for each table that statements could make replicable, and the statements."""

    @property
    def unmet(self) -> tuple[Finding, ...]:
        return (*self.findings, *self.stopping)

    @property
    def script(self) -> str:
        settings = dict.fromkeys(line for finding in self.unmet for line in finding.settings)
        statements = [
            f"{line};" for line in dict.fromkeys(line for finding in self.unmet for line in finding.statements)
        ]
        changes = [f"{line};" for line in settings if line != RESTART]
        if statements:
            changes += [*_LOCKS, *statements, "COMMIT;"]
        if self.optional:
            changes += [_CHOICES, *_LOCKS]
            for comment, lines in self.optional:
                changes += [f"-- {comment}", *(f"{line};" for line in lines)]
            changes.append("COMMIT;")
        changes += [RESTART] if RESTART in settings else []
        head = f"-- What role {self.role} needs in database {self.database}: run this there as a superuser."
        return "".join(f"{_folded(_in_one_line(line))}\n" for line in (head, *changes)) if changes else ""

    def refuse_unmet(self) -> None:
        if self.findings:
            raise UnmetError(self.findings, self.script)


_WIDTH = 120
"""The characters after which a statement continues in another line."""
_LIST_ITEM = re.compile(r"""(?:'(?:[^']|'')*'|"(?:[^"]|"")*"|[^'",]|,(?! ))+(?:, )?""")
"""A part of a statement up to its next comma outside quotes."""


def _folded(line: str) -> str:
    """Return a line; a statement with a long list of tables continues in indented lines, so that people can read it."""
    if line.startswith("--") or len(line) <= _WIDTH:
        return line
    lines = [""]
    for item in _LIST_ITEM.findall(line):
        if lines[-1] and len(lines[-1]) + len(item) > _WIDTH:
            lines.append("    ")
        lines[-1] += item
    return "\n".join(text.rstrip() for text in lines)


_QUOTED = re.compile(r"""'(?:[^']|'')*'|"((?:[^"]|"")*)\"""")


def _in_one_line(text: str) -> str:
    """A line break in a comment would end it; names in a statement get SQL escapes."""

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
    """All unmet requirements of a run, a line for each, and the script that meets them."""

    def __init__(self, findings: tuple[Finding, ...], script: str) -> None:
        super().__init__(findings)
        self.args = findings, script
        self.script = script


def query_requirements(connection: Connection, plan: PublicationPlan, needs: Needs, *, is_first: bool) -> Requirements:
    """Once rows were loaded (`is_first` is false), a run starts without the right to read a table, and stops it."""
    server = query_findings(connection, needs)
    fixable = [candidate for candidate in plan.candidates.left_out if candidate.statements]
    choices = {candidate.table for candidate in fixable}
    publishable = {*plan.candidates.publishable}
    tables = (publishable | plan.tables if plan.is_ours else publishable & plan.tables) - choices
    rights = Rights.query(connection, sorted(tables))
    # Nobody reads a table that only its owner can publish.
    unpublished = [table for table in plan.tables_to_add if plan.exists and table in rights.not_owned]
    if unpublished:
        rights = Rights.query(connection, sorted(tables.difference(unpublished)))
    unreadable = rights.findings()
    findings = [*server.errors, *(unreadable if is_first else ()), *publication_findings(connection, plan, rights)]
    warnings = [*plan.warnings, *server.warnings]
    # Whoever creates the publication adds the tables too. replicate adds tables that its role owns at the next start.
    is_made_by_others = any(finding.code == "PUBLICATION_NEEDED" for finding in findings) or plan.exists
    optional = []
    for candidate in fixable:
        rights_of_table = Rights.query(connection, [candidate.table])
        lines = (*candidate.statements, *rights_of_table.statements_beyond(rights))
        if candidate.table not in plan.tables and is_made_by_others and candidate.table in rights_of_table.not_owned:
            lines = (*lines, add_statement(plan.name, [candidate.table]).as_string(connection))
        optional.append((f"{_unless_run(lines)} {candidate.table} is not replicated", lines))
    if unpublished:
        rights_of_tables = Rights.query(connection, unpublished).statements_beyond(rights)
        lines = (*rights_of_tables, add_statement(plan.name, unpublished).as_string(connection))
        optional.append((f"{_unless_run(lines)} the new tables {listed(unpublished)} are not replicated", lines))
    return Requirements(
        role=rights.role,
        database=str(query_scalar(connection, "SELECT quote_ident(current_database())")),
        findings=tuple(findings),
        stopping=() if is_first else tuple(unreadable),
        warnings=tuple(dict.fromkeys(warnings)),
        optional=tuple(optional),
    )


def _unless_run(lines: tuple[str, ...]) -> str:
    counted_lines = "this statement," if len(lines) == 1 else f"all of these {len(lines)} statements,"
    return f"If you do not run {counted_lines}"
