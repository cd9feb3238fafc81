"""The comparison of a destination's tables with those of the server, row by row."""
