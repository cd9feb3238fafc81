"""Iceberg tables: their metadata, manifests and position deletes, the commits of other programs, and their upkeep."""
