"""The rows of layouts -> operations on bytes: the last place that knows the modifiers of the notation."""
