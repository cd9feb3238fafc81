"""The server's tables: what is published, what differs from the specs, and whether a copy can follow."""
