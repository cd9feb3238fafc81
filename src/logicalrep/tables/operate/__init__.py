"""Commands for a place: look at it, load tables again, end it."""
