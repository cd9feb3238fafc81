"""The engines that do the work: an interface, Spark's executors, and processes of this machine."""
