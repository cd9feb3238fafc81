"""mode = walsender: a receiver in the driver, whose segments the executors read."""
