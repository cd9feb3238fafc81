"""Iceberg tables: metadata, manifests, position deletes, commits of other programs, and upkeep."""
