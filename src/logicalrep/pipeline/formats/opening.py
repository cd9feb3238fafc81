"""The choice of a destination's table format; no other module imports all formats."""

from __future__ import annotations

from logicalrep.options.extras import find_missing, installing
from logicalrep.pipeline.formats.catalog_settings import CatalogSettings
from logicalrep.pipeline.formats.stored_table import TableFormat
from logicalrep.pipeline.schema.table_formats import DEFAULT_FORMAT, FormatName
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.errors import LogicalRepError


class FormatError(LogicalRepError, RuntimeError):
    """A table format whose library is not installed."""

    code = "FORMAT_MISSING"


def refuse_missing_format(name: FormatName) -> None:
    """Raise FormatError if a format's library is not installed; called before replicate creates anything."""
    if name == "iceberg" and find_missing(["pyiceberg"]) is not None:
        raise FormatError(f"pyiceberg is not installed, which --format iceberg needs: {installing('iceberg')}")


def table_format(
    storage: Storage,
    name: FormatName = DEFAULT_FORMAT,
    catalog: CatalogSettings | None = None,
    *,
    creates: bool = False,
) -> TableFormat:
    """Return the tables of a destination in a format.

    Args:
        storage: the destination.
        name: the format.
        catalog: the catalog; None for tables without a catalog.
        creates: whether to create the catalog's own tables in an empty SQL catalog, for a command that writes.

    Raises:
        FormatError: the format's library is not installed.
        OptionError: tables in the format cannot be in the catalog.
        StorageError: an Iceberg catalog does not answer, or refuses the connection.
    """
    if catalog is not None:
        catalog.refuse_other_format(name)
    # Each format imports a large library, and a run needs only one of them.
    if name == "iceberg":
        refuse_missing_format(name)
        from logicalrep.pipeline.formats.iceberg.iceberg_tables import IcebergTables

        if catalog is None:
            return IcebergTables.in_folders(storage)
        return IcebergTables.in_catalog(storage, catalog, creates=creates)
    from logicalrep.pipeline.formats.delta.delta_tables import DeltaTables
    from logicalrep.pipeline.formats.delta.unity_catalog import UnityCatalog

    return DeltaTables(storage, None if catalog is None else UnityCatalog(catalog, storage))
