"""Masking and omission of columns before anything is written, and the guard that keeps them masked."""
