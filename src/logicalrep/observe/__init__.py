"""The events and figures of replication, and the ways to show them."""
