"""Types from the server's catalog, with more facts than Type messages, which have only names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["CatalogType", "TypeCatalog", "TypeName"]


class TypeName(Protocol):
    """The facts of a Type message: the type's schema (empty for pg_catalog) and its name.

    For a domain these are the schema and the name of its base type.
    """

    @property
    def namespace(self) -> str:
        """The schema's name; empty for pg_catalog."""

    @property
    def name(self) -> str:
        """The type's name, without quotes."""


@dataclass(frozen=True, slots=True)
class CatalogType:
    """A type in pg_type; for a domain, its base type.

    Attributes:
        namespace: its schema, empty for pg_catalog.
        name: its name.
        is_base: whether it has input and output functions of its own, as extensions' types have: it is no enum,
            composite type, range or domain.
        delimiter: the delimiter between elements of its arrays, or, for an array, between its own elements.
        element: the type of an array's elements; None for other types.
    """

    namespace: str
    name: str
    is_base: bool = True
    delimiter: str = ","
    element: CatalogType | None = None


@dataclass(frozen=True)
class TypeCatalog:
    """The types of columns, from a query. Get a catalog from `publications.query_type_catalog()`.

    Example:
        >>> TypeCatalog({16385: CatalogType("public", "mood", "e")}).find(16385, None).name
        'mood'
    """

    by_oid: Mapping[int, CatalogType] = field(default_factory=dict)

    def find(self, oid: int, announced: TypeName | None) -> CatalogType | None:
        """Return a type by its OID, or by the name in its Type message; None if it is unknown.

        A renamed type keeps its OID; a recreated type keeps its name.
        """
        type_ = self.by_oid.get(oid)
        if type_ is None and announced is not None:
            same_name = (
                candidate
                for candidate in self.by_oid.values()
                if (candidate.namespace, candidate.name) == (announced.namespace, announced.name)
            )
            type_ = next(same_name, None)
        return type_
