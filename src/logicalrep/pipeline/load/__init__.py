"""The copies of whole tables under snapshots, and the buffer of changes that arrive meanwhile."""
