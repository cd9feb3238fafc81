"""The commands for people: status, pause, resync, skip, drop."""
