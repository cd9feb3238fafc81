"""The tables that are followed: what becomes of each, and what is written into its Delta tables."""
