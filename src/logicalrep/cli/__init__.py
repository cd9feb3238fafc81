"""The command line, `logicalrep`."""
