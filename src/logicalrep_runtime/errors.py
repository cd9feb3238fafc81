"""The base of all errors, and those of the codecs: bytes that are no message, messages without bytes, encodings."""

from __future__ import annotations

import codecs
from collections.abc import Iterable


class LogicalRepError(Exception):
    """The base of every error of this project.

    Its text begins with its code, as in `[SLOT_LOST] replication slot 'x' is lost …`: of an error that crosses
    processes, as in Spark, often nothing but the text arrives. `docs/errors.md` lists the codes.
    """

    code = "LOGICALREP"
    """A stable name of the error in capitals: the class's own, or that of one case of it."""

    def __init__(self, *args: object, code: str | None = None) -> None:
        super().__init__(*args)
        if code is not None:
            self.code = code

    @property
    def description(self) -> str:
        """The error in words, without the code."""
        return super().__str__()

    def __str__(self) -> str:
        return f"[{self.code}] {self.description}"


class DecodeError(LogicalRepError, ValueError):
    """Bytes that are no message of the protocol version, in the session's state.

    Says in which message and field the first fault lies, at which offset, what was expected and what was found. Its
    text has no code, which is an attribute only.
    """

    code = "DECODE_ERROR"

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

    @property
    def description(self) -> str:
        """The error in words."""
        return f"{self.message}: {self.field} at offset {self.offset}: expected {self.expected}, found {self.found}"

    def __str__(self) -> str:
        return self.description


class EncodeError(LogicalRepError, ValueError):
    """A message that cannot be written: says which attribute does not fit its field, what fits, and what it holds."""

    code = "ENCODE_ERROR"

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

    @property
    def description(self) -> str:
        """The error in words."""
        return f"{self.message}: {self.field}: expected {self.expected}, found {self.found}"

    def __str__(self) -> str:
        return self.description


class EncodingError(LogicalRepError, ValueError):
    """An encoding that Python cannot read texts in."""

    code = "ENCODING_UNKNOWN"


def codec_name(encoding: str) -> str:
    """The name that all spellings of a Python codec share; EncodingError where it is none of texts."""
    try:
        "".encode(encoding)
    except (LookupError, ValueError):
        raise EncodingError(
            f"encoding {shown(encoding)} is none of Python's for text; give that of the session's client_encoding"
        ) from None
    return codecs.lookup(encoding).name


def unknown_argument(owner: type, name: str, known: Iterable[str]) -> TypeError:
    """The error for an argument that a class does not take; it names those that there are."""
    return TypeError(f"{owner.__name__} has no argument {name!r}; there are {', '.join(known)}")


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
