"""The errors of replication slots."""

from __future__ import annotations

from typing import Self

from logicalrep_runtime.errors import LogicalRepError


class SlotError(LogicalRepError, RuntimeError):
    """The slot cannot be used; the text has the reason and the remedy."""

    code = "SLOT_UNUSABLE"
    reason = ""
    """The reason without the remedy; empty if the text alone has it."""
    is_for_stream = False
    """Whether the text has the remedy of a stream, which differs from the remedy of a destination."""

    @classmethod
    def for_stream(cls, reason: str, first_step: str = "", *, code: str | None = None) -> Self:
        """Return an error with a stream's remedy: the first step, a copy of the tables and a new checkpoint."""
        steps = f"{first_step}, " if first_step else ""
        error = cls(f"{reason}; {steps}copy the tables again and start with a new checkpoint", code=code)
        error.reason, error.is_for_stream = reason, True
        return error

    def for_destination(self) -> Self:
        """Return the error with the remedy of a destination of `replicate`; it needs a stream's error."""
        return type(self)(
            f"{self.reason}: run logicalrep resync --all with the same --dsn and --to, which creates a new slot and "
            "reloads all tables",
            code=self.code,
        )


class UndecodableError(SlotError):
    """The server cannot decode the slot's changes; retries do not help."""

    code = "SLOT_UNDECODABLE"

    @classmethod
    def of(cls, server_text: str) -> Self:
        reason = f"the server cannot decode the changes of the slot ({server_text}), for this or any other reader"
        return cls.for_stream(reason, "drop the slot, make a new one")


class MissingWalError(SlotError):
    """The server lacks a file that the slot needs, although its catalog has the slot; retries do not help."""

    code = "SLOT_LOST"

    @classmethod
    def of(cls, server_text: str) -> Self:
        return cls.for_stream(
            f"the server lacks files that the slot needs ({server_text}), as after WAL was deleted by hand or "
            "pg_resetwal ran",
            "drop the slot, make a new one",
        )


class LostPositionError(SlotError):
    """The slot is past its reader's position: the changes in between are lost, or another reader acknowledged them."""

    code = "POSITION_PASSED"
