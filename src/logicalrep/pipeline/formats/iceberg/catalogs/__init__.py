"""Catalogs of Iceberg tables: SQL databases, REST services and AWS Glue, through pyiceberg."""
