"""What people do with a place: look at it, load tables again, end it."""
