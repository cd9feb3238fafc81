# Copied from codegen/runtime/errors.py by `python -m codegen regen`; do not edit.
"""The two errors of the codecs: bytes that are no message, and messages that have no bytes."""

from __future__ import annotations


class DecodeError(ValueError):
    """Bytes that are no message of the protocol version, in the session's state.

    Says in which message and field the first fault lies, at which offset, what was expected and what was found.
    """

    def __init__(self, message: str, field: str, offset: int, expected: str, found: str) -> None:
        super().__init__(message, field, offset, expected, found)
        self.message = message
        """The message's name as the documentation has it; "message" where the tag tells none."""
        self.field = field
        """The path of the field, such as `new.cells[2].length`; `end` where bytes are left over."""
        self.offset = offset
        """Where in the message the fault lies, in bytes from 0."""
        self.expected = expected
        """What may stand there."""
        self.found = found
        """What does stand there."""

    def __str__(self) -> str:
        return f"{self.message}: {self.field} at offset {self.offset}: expected {self.expected}, found {self.found}"


class EncodeError(ValueError):
    """A message that cannot be written: says which attribute does not fit its field, what fits, and what it holds."""

    def __init__(self, message: str, field: str, expected: str, found: str) -> None:
        super().__init__(message, field, expected, found)
        self.message = message
        """The message's name as the documentation has it."""
        self.field = field
        """The path of the field, such as `new.cells[2].value`."""
        self.expected = expected
        """What would fit."""
        self.found = found
        """What the attribute holds."""

    def __str__(self) -> str:
        return f"{self.message}: {self.field}: expected {self.expected}, found {self.found}"


class MalformedError(ValueError):
    """Raised inside the straight-line codecs, which detect a fault and leave it to the layouts to say where it lies."""


def shown(value: object) -> str:
    """A value for an error message, cut where it is long."""
    try:
        text = repr(value)
    except Exception:
        # Such as a number of more digits than Python prints, or an object whose own repr fails.
        text = f"a {type(value).__name__} that cannot be printed"
    return text if len(text) <= 60 else f"{text[:57]}..."
