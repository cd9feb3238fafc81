"""A query's figures: in the log, in Spark's progress reports, and as metrics."""
