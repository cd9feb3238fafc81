"""The comparison of a place's tables with those of the server, row by row."""
