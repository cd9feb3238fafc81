"""The engines that do the work: this process, or tasks of Spark's executors."""
