"""The figures of a query: in the log, in Spark's progress reports, and as metrics."""
