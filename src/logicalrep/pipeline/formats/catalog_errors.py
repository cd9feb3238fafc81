"""The errors of catalogs, which need no catalog's library."""

from __future__ import annotations

from logicalrep.pipeline.storage.storage import StorageError


class CatalogError(StorageError):
    """A catalog that does not answer, or refuses a request; the text quotes the reason."""

    code = "CATALOG_NOT_REACHED"


class InvalidCatalogError(CatalogError):
    """A catalog that can never be used."""

    code = "CATALOG_INVALID"
    may_pass = False
