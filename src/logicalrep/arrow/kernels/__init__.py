"""The compiled loops. Each module is imported when it is first needed, since numba takes a while to import."""
