"""The changes of tables in batches, each for one table under one Relation message, as the pipeline passes them."""
