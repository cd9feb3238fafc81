"""Settings by table and databases, read from a file, with the line of each mistake."""
