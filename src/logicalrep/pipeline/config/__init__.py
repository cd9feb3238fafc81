"""The settings by table, read from a file, with the line of each mistake."""
