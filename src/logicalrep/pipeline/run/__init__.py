"""A run of `replicate`: its setup, the loop over transactions, its checkpoints."""
