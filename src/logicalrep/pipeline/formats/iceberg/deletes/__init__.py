"""The deleted rows of an Iceberg table: position deletes of version 2, and deletion vectors of version 3."""
