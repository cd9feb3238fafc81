"""The comparison of a destination's tables with the server's, row by row."""
