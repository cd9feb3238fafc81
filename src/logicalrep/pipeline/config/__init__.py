"""The settings by table and the databases, read from a file, with the line of each mistake."""
