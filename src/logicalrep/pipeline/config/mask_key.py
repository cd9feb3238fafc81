"""The key that hashes masked values."""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

import pyarrow as pa

from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep_runtime.errors import LogicalRepError

VARIABLE = "LOGICALREP_MASK_KEY"
"""The environment variable of the key, which is stored nowhere."""
_LEAST = 16
_CHECKED = b"\0logicalrep"
"""The text whose hash is a key's check value; no PostgreSQL value contains a byte 0."""


class MaskKeyError(LogicalRepError, ValueError):
    """A key that is missing, too short, or different from the key of the hashed values."""

    code = "MASK_KEY"


@dataclass(frozen=True, slots=True)
class MaskKey:
    """A key for HMAC-SHA256."""

    secret: bytes = field(repr=False)

    @classmethod
    def from_environment(cls) -> Self:
        """Return the environment's key. Raises MaskKeyError if it is missing or too short."""
        text = os.environ.get(VARIABLE, "")
        if len(text) < _LEAST:
            raise MaskKeyError(
                f"{'no key' if not text else 'too short a key'} is in the environment variable {VARIABLE}: hashed "
                f"columns need a key of at least {_LEAST} characters that nobody can guess, the same for every run"
            )
        return cls(text.encode())

    @classmethod
    def wanted(cls, settings: Iterable[TableSettings]) -> Self | None:
        """Return the environment's key if settings hash columns. Raises MaskKeyError without it, or if it changed."""
        checks = {table_settings.mask_key for table_settings in settings} - {None}
        if not checks:
            return None
        key = cls.from_environment()
        if checks != {key.check}:
            raise MaskKeyError(f"the key in {VARIABLE} differs from the key of the hashed values: set that key")
        return key

    @property
    def check(self) -> str:
        """A value that differs for another key, and does not reveal the key."""
        return hmac.digest(self.secret, _CHECKED, "sha256").hex()[:16]

    def hashed(self, texts: pa.Array) -> pa.Array:
        """Return the hash of each text, 64 hexadecimal digits; null for null."""
        encoded = texts.dictionary_encode()
        digests = [hmac.digest(self.secret, text.encode(), "sha256").hex() for text in encoded.dictionary.to_pylist()]
        return pa.array(digests, pa.string()).take(encoded.indices)
