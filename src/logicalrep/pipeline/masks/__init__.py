"""Columns that are masked or left out before anything is written, and the guard of that."""
