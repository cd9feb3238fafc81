"""The application of one table's changes: reduced to each row's last state, then written into the table's files."""
