"""The base class of all errors, and the codecs' errors: invalid bytes, invalid messages, unknown encodings."""

from __future__ import annotations

import codecs
from collections.abc import Iterable

from logicalrep_runtime.visible import visible, without_secrets


class LogicalRepError(Exception):
    """The base of every error of this project.

    The text begins with the error's code, as in `[SLOT_LOST] replication slot 'x' is lost …`, as often only an error's
    text reaches another process, for example in Spark. `docs/reference/errors.md` lists the codes. Catch this class and
    compare `code`: most subclasses are in modules that are not public.

    Example:
        >>> from logicalrep import LogicalRepError, v1
        >>> try:
        ...     v1.parse(b"B123")
        ... except LogicalRepError as error:
        ...     print(error.code)
        DECODE_ERROR
    """

    code = "LOGICALREP"
    """The stable code of the error: the class's code, or a code of one case."""

    def __init__(self, *args: object, code: str | None = None) -> None:
        super().__init__(*args)
        if code is not None:
            self.code = code

    @property
    def description(self) -> str:
        """The error's text without the code and without secrets in URLs."""
        return without_secrets(super().__str__())

    def __str__(self) -> str:
        return f"[{self.code}] {visible(self.description)}"


class DecodeError(LogicalRepError, ValueError):
    """Bytes that are not a message of the protocol version in the session's state.

    The text names the message and field of the first fault, its offset, the expected and the actual value. The code is
    not part of the text, only an attribute.

    Example:
        >>> from logicalrep import DecodeError, v1
        >>> try:
        ...     v1.parse(b"B123")
        ... except DecodeError as error:
        ...     print(error.field, error.offset, error.expected)
        final_lsn 1 8 bytes
    """

    code = "DECODE_ERROR"

    def __init__(self, message: str, field: str, offset: int, expected: str, found: str) -> None:
        super().__init__(message, field, offset, expected, found)
        self.message = message
        """The message's name in the documentation; "message" if the tag is unknown."""
        self.field = field
        """The path of the field, such as `new.cells[2].length`; `end` for excess bytes."""
        self.offset = offset
        """The fault's offset in the message, in bytes from 0."""
        self.expected = expected
        """The legal values."""
        self.found = found
        """The actual value."""

    @property
    def description(self) -> str:
        return f"{self.message}: {self.field} at offset {self.offset}: expected {self.expected}, found {self.found}"

    def __str__(self) -> str:
        return self.description


class EncodeError(LogicalRepError, ValueError):
    """A message that cannot be encoded, or a dictionary that is not a message. The text names the attribute, the values
    that fit, and the actual value.

    Example:
        >>> from logicalrep import EncodeError, Lsn, v1
        >>> try:
        ...     v1.Origin(origin_lsn=Lsn(1), name="a\\0b").build()
        ... except EncodeError as error:
        ...     print(error.field)
        name
    """

    code = "ENCODE_ERROR"

    def __init__(self, message: str, field: str, expected: str, found: str) -> None:
        super().__init__(message, field, expected, found)
        self.message = message
        """The message's name in the documentation."""
        self.field = field
        """The path of the field, such as `new.cells[2].value`."""
        self.expected = expected
        """The values that fit."""
        self.found = found
        """The attribute's value."""

    @property
    def description(self) -> str:
        return f"{self.message}: {self.field}: expected {self.expected}, found {self.found}"

    def __str__(self) -> str:
        return self.description


class EncodingError(LogicalRepError, ValueError):
    """An encoding that Python cannot decode text with."""

    code = "ENCODING_UNKNOWN"


def codec_name(encoding: str) -> str:
    """Return the canonical name of a Python codec. Raises EncodingError if the codec is unknown or not for text."""
    try:
        "".encode(encoding)
    except (LookupError, ValueError):
        raise EncodingError(
            f"encoding {shown(encoding)} is not a text codec of Python: pass the codec of the session's client_encoding"
        ) from None
    return codecs.lookup(encoding).name


def check_version(version: object, versions: Iterable[int]) -> None:
    """Check a protocol version. Raises TypeError if it is not an int, ValueError if it is unknown."""
    if not isinstance(version, int) or isinstance(version, bool):
        raise TypeError(f"a protocol version is an int, and {shown(version)} is a {type(version).__name__}")
    if version not in versions:
        raise ValueError(f"protocol version {version} is unknown; the versions are {', '.join(map(str, versions))}")


def unknown_argument(owner: type, name: str, names: Iterable[str]) -> TypeError:
    return TypeError(f"{owner.__name__} has no argument {name!r}: its arguments are {', '.join(names)}")


class MalformedError(ValueError):
    """A fault found by a generated codec; `decode_error` and `encode_error` locate it."""


def shown(value: object) -> str:
    """Return a value's repr for an error message, cut to 60 characters."""
    try:
        text = repr(value)
    except Exception:
        # For example an integer with more digits than Python prints, or an object whose repr fails.
        text = f"a {type(value).__name__} that cannot be printed"
    return text if len(text) <= 60 else f"{text[:57]}..."
