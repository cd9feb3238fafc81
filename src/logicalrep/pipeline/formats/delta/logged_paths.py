"""The paths of data files in a Delta table's log, which are percent-encoded and may be absolute.

Source: "Add File and Remove File" in the Delta Transaction Log Protocol.
"""

from __future__ import annotations

import re
from contextlib import suppress
from urllib.parse import unquote

from logicalrep.pipeline.storage.storage import MalformedFileError, below

_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")
_LOCAL = re.compile(r"file:(//)?(?=/)")


def stored_path(logged: str, uri: str) -> str:
    """Return the path of a logged file within its table's folder.

    Args:
        logged: the path in the log.
        uri: the URI or the local path of the table's folder.

    Raises MalformedFileError if the file is outside of the folder.

    Example:
        >>> stored_path("city=New%2520York/part-1.parquet", "/lake/public/orders")
        'city=New%20York/part-1.parquet'
        >>> stored_path("file:///lake/public/orders/part-1.parquet", "/lake/public/orders")
        'part-1.parquet'
    """
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
