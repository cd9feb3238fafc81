"""The compiled loops. Each module is imported at its first use, since numba takes a while to import."""
