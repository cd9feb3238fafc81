"""replicate for several databases of one file: a process for each, one page, one set of metrics, one Spark."""
