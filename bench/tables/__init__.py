"""The speed of `logicalrep replicate` beside what bounds it."""
