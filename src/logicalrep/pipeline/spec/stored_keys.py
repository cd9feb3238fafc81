"""The keys of stored JSON objects, apart from the names of the attributes that have their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class StoredKeys:
    """The keys under which an object's attributes are stored, so that a renamed attribute keeps its key.

    Example:
        >>> keys = StoredKeys({"lsn": "position", "rows": "row_count"})
    """

    attributes: Mapping[str, str]
    """The attributes by their keys, in the order in which they are written."""

    def content(self, value: object) -> dict[str, Any]:
        """Return an object's attributes by their keys."""
        return {key: getattr(value, attribute) for key, attribute in self.attributes.items()}

    def arguments(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that make the object again; those without a key are left to their defaults.

        Raises ValueError for an unknown key, which a later version may have written: to drop it could lose something.
        """
        for key in content.keys() - self.attributes.keys():
            raise ValueError(f"it has {key!r}, which is unknown")
        return {self.attributes[key]: value for key, value in content.items()}
