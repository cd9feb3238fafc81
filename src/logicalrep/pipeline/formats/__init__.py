"""The table formats: Delta Lake and Iceberg."""
