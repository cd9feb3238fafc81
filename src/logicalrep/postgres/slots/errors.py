"""The errors of replication slots."""

from __future__ import annotations

from typing import Self

from logicalrep_runtime.errors import LogicalRepError


class SlotError(LogicalRepError, RuntimeError):
    """A slot that cannot be used; the text says why, and what to do."""

    code = "SLOT_UNUSABLE"


class UndecodableError(SlotError):
    """A slot whose changes the server cannot decode; trying again does not help."""

    code = "SLOT_UNDECODABLE"

    @classmethod
    def of(cls, said: str) -> Self:
        """Return the error for the server's own words."""
        return cls(
            f"the server cannot decode the changes of the slot ({said}), and no other reader can: for a destination of "
            "replicate run logicalrep resync --all with the same --dsn and --to, which makes a new slot; for a stream "
            "drop the slot, make a new one, copy the tables again and start with a new checkpoint"
        )


class LostPositionError(SlotError):
    """A slot that is past its reader's position: the changes in between are gone, or another reader took them."""

    code = "POSITION_PASSED"
    reason = ""
    """The reason why the server's WAL does not contain the position, without what to do; empty for other errors."""
