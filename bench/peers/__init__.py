"""Other tools beside ours, by the same tables and statements: what is right in the end, and what it costs."""
