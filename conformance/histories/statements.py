"""The statements of many histories, interleaved on one server."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from conformance.histories.generating import History
from conformance.histories.subjects import Statement

Part = tuple[str, list[Statement]]
"""A history's name, and the statements of one of its transactions or actions."""


def setup_statements(history: History) -> list[str]:
    """Return the statements that create a history's schemas and tables."""
    texts = [f"CREATE SCHEMA {history.name}", f"CREATE SCHEMA {history.name}_b", f"SET search_path = {history.name}"]
    return [text.replace("{schema}", history.name) for text in (*texts, *history.setup)]


def interleaved(histories: Sequence[History], phase: int, chance: random.Random) -> list[Part]:
    """Return the parts of all histories in a phase, in a random order that keeps the order of each history."""
    queues = [
        [(history.name, list(part)) for _, part in groupby(history.phases[phase], lambda statement: statement.step)]
        for history in histories
    ]
    order = [number for number, queue in enumerate(queues) for _ in queue]
    chance.shuffle(order)
    steps = [iter(queue) for queue in queues]
    return [next(steps[number]) for number in order]


class Players:
    """The two sessions of histories."""

    def __init__(self, connections: Sequence[psycopg.Connection[Any]]) -> None:
        self._connections = connections
        self.statements = 0
        self.refused = 0
        """The statements that the server refused."""

    def play(self, part: Part) -> None:
        """Run the statements of a part, and roll back the transactions that it leaves open."""
        schema, statements = part
        has_second = any(statement.session for statement in statements)
        for connection in self._connections if has_second else self._connections[:1]:
            connection.execute(f"SET search_path = {schema}".encode())
        for text, session, _ in statements:
            self.statements += 1
            try:
                self._connections[session].execute(text.replace("{schema}", schema).encode())
            except psycopg.Error:
                self.refused += 1
        for connection in self._connections:
            if connection.info.transaction_status != TransactionStatus.IDLE:
                connection.execute("ROLLBACK")


__all__ = ["Part", "Players", "interleaved", "setup_statements"]
