"""The row-by-row comparison of a destination's tables with the server's tables."""
