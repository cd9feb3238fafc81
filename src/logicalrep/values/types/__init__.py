"""The loaders of each kind of type, for text and for the binary format."""
