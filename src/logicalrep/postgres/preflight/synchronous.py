"""Checks whether the server's commits wait for a reader, as for a synchronous standby. Needs psycopg 3.

A walsender counts as a standby if `synchronous_standby_names` has its application_name, or `*`. A reader acknowledges
changes when they are stored, seconds later or, while it is paused, much later: each COMMIT would wait.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from logicalrep.postgres.server import Connection, query_scalar
from logicalrep.postgres.slots.errors import SlotError

State = Literal["async", "potential", "sync", "quorum"]
"""`sync_state`: no commit waits for the walsender; commits may come to wait; they wait; they wait for a quorum."""

_TOKENS = re.compile(r'"((?:[^"]|"")*)"|([*(),])|([^\s*(),"]+)')
_SETTING = """
SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE current_setting('synchronous_standby_names') END,
    current_setting('application_name'), pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')
"""
# Only roles with pg_read_all_stats see the state; for others it is NULL.
_STATE = """
SELECT sync_state FROM pg_replication_slots AS slot JOIN pg_stat_replication AS walsender ON pid = slot.active_pid
WHERE slot.slot_name = %s
"""
_RELOAD = "SELECT pg_reload_conf()"
_OTHERS = """
SELECT DISTINCT application_name FROM pg_stat_replication
WHERE lower(application_name) <> lower(%s) AND application_name <> ''
    AND pid NOT IN (SELECT active_pid FROM pg_replication_slots WHERE slot_type = 'logical' AND active_pid IS NOT NULL)
ORDER BY 1
"""


class SynchronousStandbyError(SlotError):
    code = "SYNCHRONOUS_STANDBY"
    settings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StandbyNames:
    method: Literal["FIRST", "ANY"]
    count: int
    """The number of standbys that a commit waits for."""
    names: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> StandbyNames:
        """Parse a valid setting such as `ANY 2 (s1, "s 2", *)`."""
        tokens = [
            ("name", match[1].replace('""', '"')) if match[1] is not None else ("name" if match[3] else "", match[0])
            for match in _TOKENS.finditer(text)
        ]
        head: list[str] = []
        if ("", "(") in tokens:
            at = tokens.index(("", "("))
            head, tokens = [value for _, value in tokens[:at]], tokens[at:]
        names = tuple(value for kind, value in tokens if kind == "name" or value == "*")
        is_any = bool(head) and head[0].upper() == "ANY"
        return cls("ANY" if is_any else "FIRST", int(head[-1]) if head else 1, names)

    def state(self, application: str) -> State:
        """Return a walsender's state by its application_name, assuming that all standbys are connected."""
        for priority, name in enumerate(self.names):
            if name == "*" or name.lower() == application.lower():
                if self.method == "ANY":
                    return "quorum"
                return "sync" if priority < self.count else "potential"
        return "async"

    def without(self, application: str, standbys: tuple[str, ...]) -> str:
        names: list[str] = []
        for name in self.names:
            names += [other for other in standbys if other not in self.names] if name == "*" else [name]
        names = [name for name in dict.fromkeys(names) if name.lower() != application.lower()]
        if not names:
            return ""
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
        return f"{self.method} {min(self.count, len(names))} ({quoted})"


def query_synchronous(connection: Connection, slot: str) -> tuple[State, bool, str, str]:
    """The state of a slot's current or future walsender, whether the role sees it, the cause, and the remedy."""
    row = connection.execute(_SETTING).fetchone()
    assert row is not None
    setting, application, sees = row
    names = StandbyNames.parse(setting)
    state = names.state(application)
    if state == "potential":
        state = query_scalar(connection, _STATE, slot) or state
    if state == "async":
        return state, sees, "", ""
    standbys = tuple(name for (name,) in connection.execute(_OTHERS, (application,)).fetchall())
    remedy = names.without(application, standbys).replace("'", "''")
    return (
        state,
        sees,
        f"synchronous_standby_names is {setting!r}, which includes this reader, {application!r}, as a standby",
        f"ALTER SYSTEM SET synchronous_standby_names = '{remedy}'",
    )


def refuse_synchronous(connection: Connection, slot: str) -> str | None:
    """Return a warning if commits may come to wait. Raises SynchronousStandbyError if they wait or it is unknown."""
    state, sees, cause, remedy = query_synchronous(connection, slot)
    if state == "async":
        return None
    text = f"{cause}: run {remedy} and {_RELOAD}"
    if state == "potential" and sees:
        return f"Each COMMIT waits for this reader if other standbys disconnect: {text}."
    effect = "waits for this reader until its changes are stored"
    if state == "potential":
        effect = "may come to wait for this reader, which the role could not see without pg_read_all_stats"
    error = SynchronousStandbyError(f"each COMMIT {effect}: {text}")
    error.settings = (remedy, _RELOAD)
    raise error
