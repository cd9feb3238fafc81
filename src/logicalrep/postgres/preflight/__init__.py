"""A reader's requirements of a server, checked before it starts."""
