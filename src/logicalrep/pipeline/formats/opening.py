"""The format of a destination's tables: the one module that knows which formats there are."""

from __future__ import annotations

from logicalrep.options.extras import find_missing, installing
from logicalrep.pipeline.formats.catalog_settings import CatalogSettings
from logicalrep.pipeline.formats.stored_table import TableFormat
from logicalrep.pipeline.schema.table_formats import DEFAULT_FORMAT, FormatName
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.errors import LogicalRepError


class FormatError(LogicalRepError, RuntimeError):
    """A format of tables whose library is not installed."""

    code = "FORMAT_MISSING"


def refuse_missing_format(name: FormatName) -> None:
    """Raise FormatError if a format's library is not installed; to be called before anything is made."""
    if name == "iceberg" and find_missing(["pyiceberg"]) is not None:
        raise FormatError(f"pyiceberg is not installed, which --format iceberg needs: {installing('iceberg')}")


def table_format(
    storage: Storage,
    name: FormatName = DEFAULT_FORMAT,
    catalog: CatalogSettings | None = None,
    *,
    creates: bool = False,
) -> TableFormat:
    """Return the tables of a destination in a format, and in a catalog if there is one.

    Args:
        storage: the destination.
        name: the format.
        catalog: the catalog; None without one.
        creates: whether an SQL catalog that is empty gets its own tables, for a command that writes.

    Raises:
        FormatError: the format's library is not installed.
        StorageError: the catalog does not answer, or does not let us in.
    """
    # Each format has a large library, of which a run needs one.
    if name == "iceberg":
        refuse_missing_format(name)
        from logicalrep.pipeline.formats.iceberg.iceberg_tables import IcebergTables

        if catalog is None:
            return IcebergTables.in_folders(storage)
        return IcebergTables.in_catalog(storage, catalog, creates=creates)
    from logicalrep.pipeline.formats.delta.delta_tables import DeltaTables

    return DeltaTables(storage)
