"""Folders and object stores: whole files, Parquet files and their statistics."""
