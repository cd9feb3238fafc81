"""How values of each kind of type are read, from text and from the binary format."""
