"""The errors of replication slots."""

from __future__ import annotations

from typing import Self

from logicalrep_runtime.errors import LogicalRepError


class SlotError(LogicalRepError, RuntimeError):
    """The slot cannot be used; the text has the reason and the remedy."""

    code = "SLOT_UNUSABLE"


class UndecodableError(SlotError):
    """The server cannot decode the slot's changes; retries do not help."""

    code = "SLOT_UNDECODABLE"

    @classmethod
    def of(cls, server_text: str) -> Self:
        return cls(
            f"the server cannot decode the changes of the slot ({server_text}), for this or any other reader: for a "
            "destination of replicate run logicalrep resync --all with the same --dsn and --to, which makes a new "
            "slot; for a stream drop the slot, make a new one, copy the tables again and start with a new checkpoint"
        )


class MissingWalError(SlotError):
    """The server lacks a file that the slot needs, although its catalog has the slot; retries do not help."""

    code = "SLOT_LOST"
    reason = ""
    """The server's text."""

    @classmethod
    def of(cls, server_text: str) -> Self:
        error = cls(
            f"the server lacks files that the slot needs ({server_text}), as after WAL was deleted by hand or "
            "pg_resetwal ran: for a destination of replicate run logicalrep resync --all with the same --dsn and --to, "
            "which makes a new slot; for a stream drop the slot, make a new one, copy the tables again and start with "
            "a new checkpoint"
        )
        error.reason = server_text
        return error


class LostPositionError(SlotError):
    """The slot is past its reader's position: the changes in between are lost, or another reader acknowledged them."""

    code = "POSITION_PASSED"
    reason = ""
    """Why the server's WAL does not contain the position, without the remedy; empty for other errors."""
