"""Paths in a Delta log, percent-encoded or absolute. Source: "Add File and Remove File" in Delta's protocol."""

from __future__ import annotations

import re
from contextlib import suppress
from urllib.parse import unquote

from logicalrep.pipeline.storage.storage import MalformedFileError, below

_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")
_LOCAL = re.compile(r"file:(//)?(?=/)")


def stored_path(logged: str, uri: str) -> str:
    """Return a logged file's path in its table's folder. Raises MalformedFileError for a file outside of the folder."""
    if not _ABSOLUTE.match(logged):
        return below(unquote(logged))
    path, folder = _plain(unquote(logged)), _plain(unquote(uri) if "://" in uri else uri)
    if not path.startswith(f"{folder}/"):
        raise MalformedFileError(f"the file {logged!r} is outside of the table's folder {uri}")
    return below(path.removeprefix(f"{folder}/"))


def removed_path(logged: str, uri: str) -> str | None:
    """Return the result of `stored_path`; None for a file outside of the folder, which no longer is the table's."""
    with suppress(MalformedFileError):
        return stored_path(logged, uri)
    return None


def _plain(uri: str) -> str:
    # Hadoop's clients of S3 call the same store s3a.
    return re.sub("^s3a:", "s3:", _LOCAL.sub("", uri))
