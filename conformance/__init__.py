"""A conformance kit for tools that replicate PostgreSQL tables: README.md has the contract that a tool meets."""
