"""Tables whose columns, keys or files change on the server: what differs, and copies that follow without a load."""
