"""From the messages of a replication slot to committed changes of rows."""
