"""The codes of errors of the server, of connections to it, of its slots and publications."""

from __future__ import annotations

OF_SERVERS: dict[str, tuple[str, str]] = {
    "CONDITION_REFUSED": (
        "The condition of `resync --where` is not made of comparisons of columns of the table's key with literals. Or "
        "the table has no key, a column of the key is hashed or is an array, or a compared column has a type that is "
        "neither the server's own nor an enum.",
        "The text has what is accepted, or quotes the server. Compare columns of the key alone, without their table, "
        "with literals. Load the whole table with `logicalrep resync` where that tells no part.",
    ),
    "CONNECTION_REFUSED": (
        "The server answers and refuses the connection.",
        "The text quotes the server: correct the database, the role, the password, or the server's pg_hba.conf.",
    ),
    "CONNECTION_SETTINGS": (
        "The connection string, or a parameter, is not valid for libpq.",
        "Correct `dsn`, or the parameter in the text.",
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
        "Correct the option in the text.",
    ),
    "PASSWORD_COMMAND": (
        "The command of `--password-command` failed, or printed no text.",
        "Run it as the same user on the same machine, also on those of Spark's executors. It prints the password "
        "alone.",
    ),
    "PASSWORD_MISSING": (
        "The server requires a password, and none is given.",
        "Put it into `~/.pgpass`, `PGPASSWORD` or the file of `--dsn-file`, or name a `--password-command`; in Spark's "
        "source set the option `password`. Spark's executors need it as well as its driver.",
    ),
    "POSITION_PASSED": (
        "The slot is past the reader's position: another reader has acknowledged the changes in between.",
        "Give each reader a slot of its own. Then run `logicalrep resync --all` for a destination of `replicate`; for "
        "a stream copy the tables again, and start with a new checkpoint.",
    ),
    "PUBLICATION_GONE": (
        "The publication did not exist when one of the changes to read was made.",
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
        "Start it, or correct `host` and `port`; `retry_timeout`, or `--retry-timeout`, limits the time for retries.",
    ),
    "SERVER_LACKS_OPTION": (
        "An option needs a newer version of PostgreSQL.",
        "Leave the option out.",
    ),
    "SERVER_NOT_STARTED": (
        "A local server for tests or demonstrations was not found, or did not start.",
        "The text quotes its output.",
    ),
    "SERVER_SILENT": (
        "The server sends nothing, although it has more, or does not answer when it is asked.",
        "Look for a proxy, or a server, that is stuck, and for the walsender's process in the server's log; raise "
        "`retry_timeout` if it is busy.",
    ),
    "SERVER_TOO_OLD": (
        "The server is older than PostgreSQL 10, which has no pgoutput.",
        "Upgrade the server.",
    ),
    "SLOT_EXISTS": (
        "The slot for a new snapshot exists already.",
        "Name another slot, or drop it first if no query continues from it.",
    ),
    "SLOT_IN_USE": (
        "Another process reads from the slot.",
        "Stop the reader that the text names, or give this one a slot of its own.",
    ),
    "SLOT_LOST": (
        "The server has removed WAL that the slot needs, or the slot of a destination is gone.",
        "Run `logicalrep resync --all` for a destination of `replicate`. For a stream drop the slot, create a new one, "
        "copy the tables again, and start with a new checkpoint. A larger `max_slot_wal_keep_size` keeps slots longer.",
    ),
    "SLOT_MISSING": (
        "The slot does not exist.",
        "Create it, or set `create_slot = true`; if it was dropped, copy the tables again and start with a new "
        "checkpoint.",
    ),
    "SLOT_UNDECODABLE": (
        "The server cannot decode the slot's changes, as where the slot was made while a table was altered.",
        "Run `logicalrep resync --all` for a destination of `replicate`, which makes a new slot. For a stream drop the "
        "slot, create a new one, copy the tables again, and start with a new checkpoint.",
    ),
    "SLOT_UNUSABLE": (
        "The slot has another kind, plugin or database, or has two_phase.",
        "Name another slot, as the text says.",
    ),
    "SNAPSHOT_BLOCKED": (
        "Another session waits to truncate or alter a table that the snapshot has locked.",
        "End that session, or make the snapshot again.",
    ),
    "SNAPSHOT_GONE": (
        "The snapshot has ended.",
        "Make it again, and read it within the context that made it.",
    ),
    "SNAPSHOT_STALE": (
        "A table was truncated, rewritten, altered, dropped or renamed while the snapshot was made.",
        "Make the snapshot again.",
    ),
    "SYNCHRONOUS_STANDBY": (
        "The server takes the reader for a synchronous standby, so that each COMMIT of the application waits for it.",
        "Run the `ALTER SYSTEM` in the text, which names the real standbys alone.",
    ),
    "TABLE_NOT_PUBLISHED": (
        "A table is not in the query's publications.",
        "Write it as `schema.table`, or run `ALTER PUBLICATION … ADD TABLE`.",
    ),
    "TABLE_NOT_READABLE": (
        "The role may not read a table, or row-level security hides rows from it.",
        "Run `GRANT SELECT` as the text says; for row-level security give the role `BYPASSRLS`.",
    ),
    "TABLE_UNSAFE": (
        "Reading a table would run code of other roles with the rights of the reader: the planner calls functions in "
        "the expressions of indexes, statistics and partition keys, and a foreign table is read by its server.",
        "Let a superuser own the function that the text names, drop what uses it, or read as the role that owns it; "
        "detach a foreign table.",
    ),
    "WAL_DIVERGED": (
        "The server's WAL does not contain what the reader has read: it is another server, was put back to an earlier "
        "state, or took over from a server that was ahead of it.",
        "Run `logicalrep resync --all` for a destination of `replicate`; for a stream copy the tables again, and start "
        "with a new checkpoint.",
    ),
    "SERVER_SENDS_UNLISTED": (
        "PostgreSQL 15.0 and 15.1 send old rows with columns that the publication does not list, so that no reader can "
        "tell which values they are.",
        "Upgrade to 15.2 or later, or publish all columns of the tables.",
    ),
    "WAL_LEVEL": (
        "The server's wal_level is too low for logical decoding.",
        "Run `ALTER SYSTEM SET wal_level = logical` and restart the server; from PostgreSQL 19 on `replica` is enough.",
    ),
}
"""The cause and the remedy of each code."""
