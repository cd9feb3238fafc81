"""The two kinds of destinations by their URIs, without an import of a store's client, for the options."""

from __future__ import annotations


def is_folder(uri: str) -> bool:
    """Return whether a destination is a folder, and not an object store.

    Example:
        >>> is_folder("file:///lake"), is_folder("s3://bucket/lake")
        (True, False)
    """
    return "://" not in uri.removeprefix("file://")
