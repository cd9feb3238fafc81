"""The changes of tables in batches, each of one table under one Relation message, as the pipeline passes them on."""
