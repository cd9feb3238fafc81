"""The stored state of a destination: checkpoints, settings, and requests of people."""
