"""The merging of a table's small files and files with marked rows, concurrently with batches."""
