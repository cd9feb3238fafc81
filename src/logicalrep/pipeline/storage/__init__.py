"""Folders and object stores: files read and written whole, Parquet files, and their statistics."""
