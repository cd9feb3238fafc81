"""The engine of Spark: its session, and its jobs in a driver of this process or by Spark Connect."""
