"""Tables in their own columns and types: their schemas, and their rows from the change feed."""
