"""Companion tables: marked rows, versions, and changes."""
