"""The loaders of each kind of type, for the text and the binary format."""
