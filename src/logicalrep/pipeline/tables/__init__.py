"""A table's life: its phases, and what moves it from one to the next."""
