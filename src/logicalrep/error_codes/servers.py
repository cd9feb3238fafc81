"""Codes of errors of servers, connections, slots and publications."""

from __future__ import annotations

SERVERS: dict[str, tuple[str, str]] = {
    "CONDITION_REFUSED": (
        "The condition of `resync --where` does not consist of comparisons of key columns with literals. Or the table "
        "has no key, a key column is hashed or is an array, or a compared column has a type that is neither built in "
        "nor an enum.",
        "The error lists the accepted conditions, or quotes the server. Compare only key columns, without the table's "
        "name, with literals. If such a condition cannot select the rows, reload the whole table with "
        "`logicalrep resync`.",
    ),
    "CONNECTION_REFUSED": (
        "The server answers but refuses the connection.",
        "The error quotes the server: correct the database, the role, the password, or the server's pg_hba.conf.",
    ),
    "CONNECTION_SETTINGS": (
        "The connection string or a parameter is invalid for libpq.",
        "Correct `dsn`, or the parameter that the error names.",
    ),
    "NO_FREE_SLOT": (
        "The server has no free replication slot.",
        "Raise `max_replication_slots`, or drop an unused slot.",
    ),
    "NO_WALSENDERS": (
        "The server is configured without walsenders.",
        "Run `ALTER SYSTEM SET max_wal_senders = 10` and restart the server, or use `mode = peek`.",
    ),
    "OPTION_INVALID": (
        "An option is unknown, is missing, has an invalid value, or has no effect together with the others.",
        "Correct the option that the error names.",
    ),
    "PASSWORD_COMMAND": (
        "The command of `--password-command` failed or printed nothing.",
        "Run the command as the same user on the same machine, and on the machines of Spark's executors. It must "
        "print only the password.",
    ),
    "PASSWORD_MISSING": (
        "The server requires a password, but none was provided.",
        "Put the password into `~/.pgpass`, `PGPASSWORD` or the file of `--dsn-file`, or pass `--password-command`. "
        "In Spark's source set the option `password`; the executors need it as well as the driver.",
    ),
    "POSITION_PASSED": (
        "The slot is ahead of the reader's position: another reader acknowledged the changes in between.",
        "Give each reader its own slot. Then run `logicalrep resync --all` for a destination of `replicate`; for a "
        "stream copy the tables again, and start with a new checkpoint.",
    ),
    "PUBLICATION_GONE": (
        "The publication did not exist when a session made a change that the reader needs.",
        "Run `logicalrep resync --all` for a destination of `replicate`. For a stream create a new slot after the "
        "publication, copy the tables again, and start with a new checkpoint.",
    ),
    "PUBLICATION_MISSING": (
        "The publication does not exist in this database.",
        "Create it with `CREATE PUBLICATION`, before the slot.",
    ),
    "ROLE_CANNOT_REPLICATE": (
        "The role has no right to replicate.",
        "Run `ALTER ROLE … REPLICATION`, or the managed service's command for it.",
    ),
    "SERVER_AWAY": (
        "No server answers at the address, or the server is starting or stopping.",
        "Start the server, or correct `host` and `port`. `retry_timeout` or `--retry-timeout` limits the time for "
        "retries.",
    ),
    "SERVER_LACKS_OPTION": (
        "An option needs a newer version of PostgreSQL.",
        "Remove the option.",
    ),
    "SERVER_NOT_STARTED": (
        "A local server for tests or demonstrations was not found or did not start.",
        "The error quotes the server's output.",
    ),
    "SERVER_SILENT": (
        "The server has more changes but sends nothing, or does not answer a request.",
        "Look for a stuck proxy or server, and for the walsender process in the server's log. Raise `retry_timeout` "
        "if the server is busy.",
    ),
    "SERVER_TOO_OLD": (
        "The server is older than PostgreSQL 10, which has no pgoutput.",
        "Upgrade the server.",
    ),
    "SLOT_EXISTS": (
        "The slot for a new snapshot already exists.",
        "Choose another slot name; or drop the slot if no query needs it.",
    ),
    "SLOT_IN_USE": (
        "Another process reads from the slot.",
        "Stop the reader that the error names, or give this reader its own slot.",
    ),
    "SLOT_LOST": (
        "The server or somebody removed WAL that the slot needs, or a destination's slot no longer exists.",
        "Run `logicalrep resync --all` for a destination of `replicate`. For a stream drop the slot, create a new "
        "slot, copy the tables again, and start with a new checkpoint. A larger `max_slot_wal_keep_size` keeps slots "
        "longer.",
    ),
    "SLOT_MISSING": (
        "The slot does not exist.",
        "For a stream create the slot, or set `create_slot = true`. If the slot was dropped, copy the tables again "
        "and start with a new checkpoint. For a destination of `replicate` run `logicalrep resync --all`.",
    ),
    "SLOT_UNDECODABLE": (
        "The server cannot decode the slot's changes, for example because the slot was created while a table was "
        "altered.",
        "Run `logicalrep resync --all` for a destination of `replicate`, which creates a new slot. For a stream drop "
        "the slot, create a new slot, copy the tables again, and start with a new checkpoint.",
    ),
    "SLOT_UNUSABLE": (
        "The slot has the wrong kind, plugin or database, or has two_phase.",
        "Choose another slot; the error names the reason.",
    ),
    "SNAPSHOT_BLOCKED": (
        "Another session waits to truncate or alter a table that the snapshot has locked.",
        "End the other session, or create the snapshot again.",
    ),
    "SNAPSHOT_GONE": (
        "The snapshot has ended.",
        "Create the snapshot again, and read it within its context.",
    ),
    "SNAPSHOT_STALE": (
        "A table was truncated, rewritten, altered, dropped or renamed while the snapshot was created.",
        "Create the snapshot again.",
    ),
    "SYNCHRONOUS_STANDBY": (
        "The server treats the reader as a synchronous standby, so every COMMIT of your application waits for the "
        "reader.",
        "Run the `ALTER SYSTEM` statement in the error, which lists only the real standbys.",
    ),
    "TABLE_NOT_PUBLISHED": (
        "A table is not in the query's publications.",
        "Write the name as `schema.table`, or run `ALTER PUBLICATION … ADD TABLE`.",
    ),
    "TABLE_NOT_READABLE": (
        "The role may not read a table, or row-level security hides rows from the role.",
        "Run the statements in the error, or the script of `logicalrep check --print-sql`.",
    ),
    "TABLE_UNSAFE": (
        "Reading the table would run other roles' code with the reader's privileges: the planner calls functions in "
        "expressions of indexes, statistics and partition keys, and a foreign table is read by its server.",
        "Let a superuser own the function that the error names, drop the object that uses it, or read as the role "
        "that owns it. Detach a foreign table.",
    ),
    "WAL_DIVERGED": (
        "The server's WAL does not contain the changes that the reader has read: the server is another server, was "
        "restored to an earlier state, or replaced a server that was ahead.",
        "Run `logicalrep resync --all` for a destination of `replicate`; for a stream copy the tables again, and "
        "start with a new checkpoint.",
    ),
    "SERVER_SENDS_UNLISTED": (
        "PostgreSQL 15.0 and 15.1 send old rows with columns that the publication does not list, so no reader can "
        "assign the values to columns.",
        "Upgrade to 15.2 or later, or publish all columns of the tables.",
    ),
    "WAL_LEVEL": (
        "The server's wal_level is too low for logical decoding.",
        "Run `ALTER SYSTEM SET wal_level = logical` and restart the server; from PostgreSQL 19 on `replica` is enough.",
    ),
}
