"""What a reader needs of a server, checked before it starts."""
