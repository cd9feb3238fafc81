"""Commands for a destination: look at it, load tables again, end it."""
