"""Rows of layouts -> operations on bytes. No later stage knows the notation's modifiers."""
