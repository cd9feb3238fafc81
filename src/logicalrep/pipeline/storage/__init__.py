"""Metrics of `logicalrep replicate`, and the page that shows them."""
