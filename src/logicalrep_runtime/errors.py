"""The base class of all errors, and the codecs' own: invalid bytes, messages that cannot be written, encodings."""

from __future__ import annotations

import codecs
from collections.abc import Iterable

from logicalrep_runtime.visible import visible, without_secrets


class LogicalRepError(Exception):
    """The base of every error of this project.

    Its text begins with its code, as in `[SLOT_LOST] replication slot 'x' is lost …`, since often only the text of an
    error reaches another process, for example in Spark. `docs/reference/errors.md` lists the codes.
    """

    code = "LOGICALREP"
    """A stable name of the error in capitals: the class's own, or that of one case of it."""

    def __init__(self, *args: object, code: str | None = None) -> None:
        super().__init__(*args)
        if code is not None:
            self.code = code

    @property
    def description(self) -> str:
        """The error in words, without the code, and without the secrets of URLs."""
        return without_secrets(super().__str__())

    def __str__(self) -> str:
        return f"[{self.code}] {visible(self.description)}"


class DecodeError(LogicalRepError, ValueError):
    """Bytes that are not a message of the protocol version in the session's state.

    The text names the message and field of the first fault, its offset, what was expected and what was found. It does
    not begin with the code, which is an attribute only.
    """

    code = "DECODE_ERROR"

    def __init__(self, message: str, field: str, offset: int, expected: str, found: str) -> None:
        super().__init__(message, field, offset, expected, found)
        self.message = message
        """The message's name as in the documentation; "message" where the tag is unknown."""
        self.field = field
        """The path of the field, such as `new.cells[2].length`; `end` where bytes are left over."""
        self.offset = offset
        """The fault's offset within the message, in bytes from 0."""
        self.expected = expected
        """The values that are allowed there."""
        self.found = found
        """The value that is there."""

    @property
    def description(self) -> str:
        """The error in words."""
        return f"{self.message}: {self.field} at offset {self.offset}: expected {self.expected}, found {self.found}"

    def __str__(self) -> str:
        return self.description


class EncodeError(LogicalRepError, ValueError):
    """A message that cannot be written. The text names the attribute, the values that would fit, and its value."""

    code = "ENCODE_ERROR"

    def __init__(self, message: str, field: str, expected: str, found: str) -> None:
        super().__init__(message, field, expected, found)
        self.message = message
        """The message's name as in the documentation."""
        self.field = field
        """The path of the field, such as `new.cells[2].value`."""
        self.expected = expected
        """The values that would fit."""
        self.found = found
        """The attribute's value."""

    @property
    def description(self) -> str:
        """The error in words."""
        return f"{self.message}: {self.field}: expected {self.expected}, found {self.found}"

    def __str__(self) -> str:
        return self.description


class EncodingError(LogicalRepError, ValueError):
    """An encoding that Python cannot decode text with."""

    code = "ENCODING_UNKNOWN"


def codec_name(encoding: str) -> str:
    """Return the name that all spellings of a Python codec share. Raises EncodingError if it is not a text encoding."""
    try:
        "".encode(encoding)
    except (LookupError, ValueError):
        raise EncodingError(
            f"encoding {shown(encoding)} is not a Python text encoding; give that of the session's client_encoding"
        ) from None
    return codecs.lookup(encoding).name


def check_version(version: object, versions: Iterable[int]) -> None:
    """Raise TypeError for a protocol version that is no int, ValueError for one that is not known."""
    if not isinstance(version, int) or isinstance(version, bool):
        raise TypeError(f"a protocol version is an int, and {shown(version)} is a {type(version).__name__}")
    if version not in versions:
        raise ValueError(f"protocol version {version} is unknown; known are {', '.join(map(str, versions))}")


def unknown_argument(owner: type, name: str, names: Iterable[str]) -> TypeError:
    """Return the error for an argument that a class does not take; its text lists the known ones."""
    return TypeError(f"{owner.__name__} has no argument {name!r}; there are {', '.join(names)}")


class MalformedError(ValueError):
    """A fault found by the straight-line codecs, which leave it to the layouts to say where it lies."""


def shown(value: object) -> str:
    """Return a value's text for an error message, cut if it is long."""
    try:
        text = repr(value)
    except Exception:
        # For example a number of more digits than Python prints, or an object whose own repr fails.
        text = f"a {type(value).__name__} that cannot be printed"
    return text if len(text) <= 60 else f"{text[:57]}..."
