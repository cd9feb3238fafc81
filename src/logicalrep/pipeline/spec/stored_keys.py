"""The keys of stored JSON objects, apart from the names of the attributes that have their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class StoredKeys:
    """The keys under which an object's attributes are stored, so that a renamed attribute keeps its key.

    Example:
        >>> StoredKeys("rows lsn=position").arguments({"rows": 3, "lsn": "0/10"})
        {'rows': 3, 'position': '0/10'}
    """

    def __init__(self, keys: str) -> None:
        """Take the keys in the order in which they are written, with `=attribute` where its name is another one."""
        pairs = (each.partition("=") for each in keys.split())
        self._attributes = {key: attribute or key for key, _, attribute in pairs}

    def content(self, value: object) -> dict[str, Any]:
        """Return an object's attributes by their keys."""
        return {key: getattr(value, attribute) for key, attribute in self._attributes.items()}

    def arguments(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that make the object again; those without a key are left to their defaults.

        Raises ValueError for an unknown key, which a later version may have written: to drop it could lose something.
        """
        for key in content.keys() - self._attributes.keys():
            raise ValueError(f"it has {key!r}, which is unknown")
        return {self._attributes[key]: value for key, value in content.items()}
