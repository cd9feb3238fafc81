"""A history that fails, made short: statements are left out as long as it still fails.

Many candidates are played at once: a history among fifty costs a fraction of a history that is played alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from conformance.histories.generating import History
from conformance.histories.subjects import Statement

_AT_ONCE = 40


def shrunk(history: History, fails: Callable[[Sequence[History]], set[str]]) -> History:
    """Return the shortest history that was found and still fails.

    Args:
        history: a history that fails.
        fails: plays histories, and returns the names of those that fail.
    """
    size = max(1, _length(history) // 2)
    while True:
        shorter = _shorter(history, size)
        failed: set[str] = set()
        for at in range(0, len(shorter), _AT_ONCE):
            failed = fails(shorter[at : at + _AT_ONCE])
            if failed:
                break
        if failed:
            shortest = min((candidate for candidate in shorter if candidate.name in failed), key=_length)
            history = replace(shortest, name=history.name)
            size = max(1, min(size, _length(history) // 2))
        elif size == 1:
            return history
        else:
            size //= 2


def _length(history: History) -> int:
    return sum(map(len, history.phases))


def _shorter(history: History, size: int) -> list[History]:
    """Return histories that lack some statements one after another each, or a pair of a beginning and an end."""
    places = [(phase, at) for phase, statements in enumerate(history.phases) for at in range(len(statements))]
    parts = [set(places[at : at + size]) for at in range(0, len(places), size)]
    if size == 1:
        parts += [{(phase, begin), (phase, end)} for phase, begin, end in _transactions(history)]
    return [_without(history, part, number) for number, part in enumerate(parts)]


def _transactions(history: History) -> list[tuple[int, int, int]]:
    """Return the phase, the beginning and the end of each transaction and savepoint."""
    places = []
    for phase, statements in enumerate(history.phases):
        for begin, statement in enumerate(statements):
            verbs = {"BEGIN": ("COMMIT", "ROLLBACK", "PREPARE"), "SAVEP": ("RELEASE", "ROLLBACK TO")}.get(
                statement[0][:5]
            )
            for end in range(begin + 1, len(statements)) if verbs else ():
                if statements[end].text.startswith(verbs) and statements[end].session == statement.session:
                    places.append((phase, begin, end))
                    break
    return places


def _without(history: History, places: set[tuple[int, int]], number: int) -> History:
    def rest(phase: int, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        statements_left = [statement for at, statement in enumerate(statements) if (phase, at) not in places]
        ended = {statement.text.split()[-1] for statement in statements_left if " PREPARED " in statement.text}
        # A load would wait for the end of a transaction that stays prepared.
        return tuple(
            statement
            for statement in statements_left
            if not statement.text.startswith("PREPARE ") or statement.text.split()[-1] in ended
        )

    phases = tuple(rest(phase, statements) for phase, statements in enumerate(history.phases))
    return replace(history, name=f"{history.name}_{number}", phases=phases)


__all__ = ["shrunk"]
