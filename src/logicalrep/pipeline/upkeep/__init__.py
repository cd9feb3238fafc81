"""Upkeep: what makes a table's files fewer, and rids them of marked rows, beside batches."""
