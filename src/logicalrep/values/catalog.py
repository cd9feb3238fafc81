"""Types as the server's catalog has them: more than Type messages say, which have their names alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["CatalogType", "TypeCatalog", "TypeName"]


class TypeName(Protocol):
    """What a Type message says of a type: its schema (empty for pg_catalog) and its name.

    For a domain these are the schema and the name of its base type.
    """

    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class CatalogType:
    """A type as pg_type has it; of a domain its base type.

    Attributes:
        namespace: its schema, empty for pg_catalog.
        name: its name.
        is_base: whether it has functions of its own to read and write it, as the types of extensions have, and is no
            enum, composite type, range or domain.
        delimiter: between the elements of an array of it, and for an array between its own.
        element: the type of an array's elements; None for what is no array.
    """

    namespace: str
    name: str
    is_base: bool = True
    delimiter: str = ","
    element: CatalogType | None = None


@dataclass(frozen=True)
class TypeCatalog:
    """The types that columns have, or had when they were looked up. Get one from `published.type_catalog()`."""

    by_oid: Mapping[int, CatalogType] = field(default_factory=dict)

    def find(self, oid: int, announced: TypeName | None) -> CatalogType | None:
        """A type by its OID, or one that has the name now that a Type message gives; None for one not known.

        A type that was renamed keeps its OID, one that was made anew its name.
        """
        known = self.by_oid.get(oid)
        if known is None and announced is not None:
            same_name = (
                each
                for each in self.by_oid.values()
                if (each.namespace, each.name) == (announced.namespace, announced.name)
            )
            known = next(same_name, None)
        return known
