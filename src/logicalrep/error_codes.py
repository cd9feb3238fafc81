"""The codes of all errors, each with its cause and remedy.

`python -m logicalrep.error_codes docs/errors.md` writes the page that lists them.
"""

from __future__ import annotations

import pathlib
import sys

CODES: dict[str, tuple[str, str]] = {
    "ASYNC_PROGRESS": (
        "Spark begins a batch before its checkpoint has the one before, as with `asyncProgressTrackingEnabled`.",
        "Leave that option of the sink out; the query goes on from its checkpoint.",
    ),
    "CAPTURE_DAMAGED": (
        "A file is not a capture, or is damaged.",
        "The text names the offset. Record the capture again, or read the part before that offset.",
    ),
    "CHANGES_NOT_TYPED": (
        "The rows given to `merged` or `changed_rows` are not those of a typed table.",
        "Read the table with the option `table`, or with `typed_table`.",
    ),
    "CHECKPOINT_FOREIGN": (
        "The query's checkpoint belongs to another source.",
        "Start the query with a checkpoint of its own.",
    ),
    "COLUMNS_AMBIGUOUS": (
        "Two columns have names that are the same to Spark, or a column has a name that `changed_rows` uses itself.",
        "Set `spark.sql.caseSensitive` to true if the names differ in case, else rename the column in the database.",
    ),
    "COLUMN_PROTECTED": (
        "A column that is to be masked or left out is not there, is another one than before, or is one of the key.",
        "Name in the settings by table what is to be masked now, restart, and run `logicalrep resync` for the table.",
    ),
    "COLUMN_RESERVED": (
        "A table has a column of the name that `--deletes soft`, `--history` or `--append` gives to one of its own.",
        "Rename the column, or leave out the option for this table, and run `logicalrep resync` for it.",
    ),
    "COLUMN_VALUE": (
        "A value does not parse as its column's type, or the target type cannot hold it.",
        "In a destination of `replicate` correct the row and run `logicalrep resync` for the table, or choose another "
        "`--unrepresentable`. In a stream read the column as text with the option `text_columns`; leave out `binary` "
        "if it was sent in binary.",
    ),
    "CONFIG_INVALID": (
        "The file of `--config` has mistakes, or names a table that is not replicated, or a column that is not there.",
        "Correct the lines in the text; a table that may come later needs `optional: true`.",
    ),
    "CONFIG_MISSING": (
        "Columns of tables at the destination are masked or left out, and the command was given no settings by table.",
        "Give `--config`, as before; a file without these tables does not write them in clear either.",
    ),
    "CONNECTION_REFUSED": (
        "The server answers and refuses the connection.",
        "The text quotes the server: correct the database, the role, the password, or the server's pg_hba.conf.",
    ),
    "CONNECTION_SETTINGS": (
        "The connection string, or a parameter, is not valid for libpq.",
        "Correct `dsn`, or the parameter in the text.",
    ),
    "COPY_DIFFERS": (
        "A copy of a table has columns that its changes lack, lacks a key column, or has a column of another type.",
        "Drop such columns, or cast the column in the text; if that loses information, make the copy again.",
    ),
    "DECODE_ERROR": (
        "The bytes are not a message of the protocol version in the session's state.",
        "Check the version, `streaming` and `parallel`; the text names the field and the offset.",
    ),
    "DESTINATION_DAMAGED": (
        "A file at a destination is not what `replicate` wrote there, or names a path outside of the destination.",
        "Restore the file that the text names, or replicate to another destination. A request, "
        "`_logicalrep/requests/….json`, can be deleted and made again.",
    ),
    "DESTINATION_DIFFERS": (
        "A destination belongs to another program, database, slot or publication.",
        "The text names it. Use the same arguments as before, or another destination.",
    ),
    "DESTINATION_EMPTY": (
        "Nothing is replicated to a destination.",
        "Correct `--to`, or run `logicalrep replicate` first.",
    ),
    "DESTINATION_HAS_WRITER": (
        "Another process writes to the same destination, or has written there while this one was stopped.",
        "None, if the other one goes on; else stop one of the two.",
    ),
    "DESTINATION_INVALID": (
        "A destination for tables that cannot be used at all.",
        "Name a folder, or the URI of an object store that can refuse to replace a file.",
    ),
    "DESTINATION_NOT_SHARED": (
        "The destination is a folder, but Spark's executors run on other machines.",
        "Name the URI of an object store.",
    ),
    "DESTINATION_PAUSED": (
        "The destination is paused, and `--once` would bring nothing into the tables.",
        "Run `logicalrep resume` with the same `--dsn` and `--to`.",
    ),
    "ENCODE_ERROR": (
        "A message cannot be written because an attribute does not fit its field.",
        "Correct the attribute in the text.",
    ),
    "ENCODING_UNKNOWN": (
        "Python has no codec for a client_encoding.",
        "Use UTF8 for the session.",
    ),
    "ENGINE_MISSING": (
        "The libraries of the engine that `replicate` is to use are not installed.",
        "Run `pip install 'logicalrep[replicate]'` for Spark, or name another engine by `--engine local`.",
    ),
    "HISTORY_DAMAGED": (
        "A data file of a table's history, or of its changes, is not there any more, or is damaged.",
        "Restore it, or remove the folder that the text names; then run `logicalrep resync` for the table.",
    ),
    "JAVA_ENDED": (
        "The Java of Spark that `replicate` had started has ended, several times within an hour.",
        "Look whether the machine has enough memory, as its kernel ends large processes; then start the command again.",
    ),
    "JAVA_MISSING": (
        "Spark finds no Java.",
        "Install Java 17 or later, or `pip install 'logicalrep[java]'`.",
    ),
    "KEYS_INVALID": (
        "The `keys` of `merged` or `changed_rows` are empty, or not columns of the table.",
        "Name the columns of the replica identity, or of a unique index if the identity is FULL.",
    ),
    "KEY_NOT_SENT": (
        "The server sends updates or deletes of a table without a column of its replica identity, as it is a generated "
        "one.",
        "Run `ALTER TABLE … REPLICA IDENTITY FULL`, then `logicalrep resync` for the table.",
    ),
    "KEY_NOT_UNIQUE": (
        "The settings by table give a table a key that cannot tell its rows apart.",
        "Name the columns of a unique index, all `NOT NULL`, of a table with `REPLICA IDENTITY FULL`.",
    ),
    "KEY_NULL": (
        "A changed row, or a row of a copy whose table was truncated, is NULL in a column of `keys`.",
        "Name the columns of the replica identity; delete such rows from the copy if its table was truncated.",
    ),
    "LISTEN_ADDRESS": (
        "The address for the page of `replicate`, or for metrics, is not one.",
        "Write HOST:PORT, or a port alone, such as `--listen 8080`; the source's option `listen` is alike.",
    ),
    "LISTEN_REFUSED": (
        "The page of `replicate`, or a stream's metrics, cannot be served: most often another process has the port.",
        "Choose another port, or end the other process; port 0 is any free one. Each stream needs a port of its own.",
    ),
    "LOADED_TOO_OFTEN": (
        "A replicated table had to be loaded again for the same reason three times within an hour.",
        "The text has the reason: find what changes the table so often. Then run `logicalrep resync` for the table, "
        "which loads it and counts anew.",
    ),
    "LOGICALREP": (
        "The base class of all errors; no error has this code itself.",
        "Catch `LogicalRepError` to catch all of them.",
    ),
    "MASK_KEY": (
        "The key that hashes columns is missing in `LOGICALREP_MASK_KEY`, is too short, or is not the one before.",
        "Set it for every command that reads or writes the tables: the same one, of at least 16 characters.",
    ),
    "MESSAGE_OUT_OF_PLACE": (
        "A message came where it cannot come, such as a commit without its beginning.",
        "Read the stream from a position without an open transaction, with all of its messages.",
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
    "OTHER_SERVER": (
        "A destination has the tables of another server, or of one that was upgraded or made anew.",
        "Replicate to another destination. If the server has taken the place of the one before, as after `pg_upgrade`, "
        "run "
        "`logicalrep resync --all --new-server`.",
    ),
    "PACKAGE_MISSING": (
        "The Python worker of an executor cannot import logicalrep, or a package that it needs.",
        "Install logicalrep with its extra `spark` for the Python of all executors, or name such a Python in "
        "`PYSPARK_PYTHON`.",
    ),
    "PASSWORD_MISSING": (
        "The server requires a password, and none is given.",
        "Set the option `password`, or put it in `~/.pgpass` or the file in `PGPASSFILE`, for Spark's executors as "
        "well as for its driver.",
    ),
    "POSITION_PASSED": (
        "The slot is past the reader's position: another reader has acknowledged the changes in between.",
        "Give each reader a slot of its own. Then run `logicalrep resync --all` for a destination of `replicate`; for "
        "a "
        "stream copy the tables again, and start with a new checkpoint.",
    ),
    "PUBLICATION_GONE": (
        "The publication did not exist when one of the changes to read was made.",
        "Run `logicalrep resync --all` for a destination of `replicate`. For a stream create a new slot after the "
        "publication, copy the tables again, and start with a new checkpoint.",
    ),
    "PUBLICATION_INCOMPLETE": (
        "The publication leaves out inserts, updates, deletes or truncates, or one that `replicate` made sends "
        "partitions as tables of their own.",
        "Run the statement in the text. `replicate` then loads the tables again, as it cannot know what was left out.",
    ),
    "PUBLICATION_MISSING": (
        "The publication does not exist in this database.",
        "Create it with `CREATE PUBLICATION`, before the slot.",
    ),
    "PUBLICATION_NEEDED": (
        "The role may not make or change the publication, or a wanted table cannot be in it.",
        "Let the owner of the tables run the statements in the text.",
    ),
    "QUERY_NOT_FINISHED": (
        "`acknowledge` was called for a query that is running or has failed.",
        "Stop the query or wait for its end; restart a failed query.",
    ),
    "QUERY_NOT_OF_SLOT": (
        "`acknowledge` was called for a slot that none of the query's sources reads, or several of them.",
        "Pass the options of the source whose slot moves.",
    ),
    "RECEIVER_ENDED": (
        "The thread that receives from the server has ended without an error.",
        "Start the query again, and report the problem with the log.",
    ),
    "ROLE_CANNOT_REPLICATE": (
        "The role has no right to replicate.",
        "Run `ALTER ROLE … REPLICATION`, or the managed service's command for it.",
    ),
    "SCHEMA_CHANGED": (
        "A table's columns differ from the stream's schema.",
        "The text names the column, and the option that reads it.",
    ),
    "SEGMENT_DAMAGED": (
        "A file of the spool is damaged, or has other rows than requested.",
        "Remove it if no query uses it; a running query receives its rows again after a restart.",
    ),
    "SEGMENT_GONE": (
        "A file of the spool is gone because Spark has committed its rows.",
        "Read the rows from the query's output.",
    ),
    "SERVER_AWAY": (
        "No server answers at the address, or the server is starting or stopping.",
        "Start it, or correct `host` and `port`; `retry_timeout`, or `--retry-timeout`, limits the time for retries.",
    ),
    "SERVER_ERROR": (
        "The server has refused or ended a statement, for a reason that is not foreseen.",
        "The text quotes the server; its log has more. Start the command again; it goes on where it ended.",
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
    "SKIP_REFUSED": (
        "A commit cannot be skipped: the table is not stopped at it, or its changes are not buffered any more.",
        "Give the table and the LSN that `logicalrep status` shows; or load the table again with `logicalrep resync`.",
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
        "copy "
        "the tables again, and start with a new checkpoint. A larger `max_slot_wal_keep_size` keeps slots longer.",
    ),
    "SLOT_MISSING": (
        "The slot does not exist.",
        "Create it, or set `create_slot = true`; if it was dropped, copy the tables again and start with a new "
        "checkpoint.",
    ),
    "SLOT_UNDECODABLE": (
        "The server cannot decode the slot's changes, as where the slot was made while a table was altered.",
        "Run `logicalrep resync --all` for a destination of `replicate`, which makes a new slot. For a stream drop the "
        "slot, "
        "create a new one, copy the tables again, and start with a new checkpoint.",
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
    "SPOOL_NOT_MADE": (
        "The folder for the spool cannot be created.",
        "Name another folder in the option `spool`.",
    ),
    "SPOOL_NOT_SEEN": (
        "An executor does not see the driver's spool folder.",
        "Name a folder that the driver and all executors share in the option `spool`, or use `mode = peek`.",
    ),
    "SPOOL_UNSAFE": (
        "The folder for the spool belongs to another user, can be written by others, or is a link.",
        "Remove it, close it to others, or name another in the option `spool`; run executors as the driver's user.",
    ),
    "STORAGE_NOT_WRITABLE": (
        "A destination cannot be read or written, as its disk is full, or its store is away.",
        "The text quotes the reason. The work goes on by itself once it is gone.",
    ),
    "SYNCHRONOUS_STANDBY": (
        "The server takes the reader for a synchronous standby, so that each COMMIT of the application waits for it.",
        "Run the `ALTER SYSTEM` in the text, which names the real standbys alone.",
    ),
    "TABLES_STOPPED": (
        "Some tables are stopped; the others are up to date.",
        "The text has the reason for each, and the line that loads the table again once that is gone.",
    ),
    "TABLE_DAMAGED": (
        "A data file of a replicated table is not there any more, or is damaged; or another program has changed rows.",
        "None: the table is loaded again by itself. Other programs may VACUUM and OPTIMIZE it, and nothing else.",
    ),
    "TABLE_DIFFERS": (
        "Changes do not fit a replicated table.",
        "None: the table is loaded again by itself.",
    ),
    "TABLE_FAILED": (
        "The server could not read a table, such as one with a damaged page, or an error that was not foreseen ended "
        "the work on it. The other tables go on.",
        "Mend what the text quotes; a traceback is in the log (`-v`). Then run `logicalrep resync` for the table.",
    ),
    "TABLE_LOG_DAMAGED": (
        "The log of a Delta table is damaged: a file of `_delta_log` that is needed is gone or cannot be read.",
        "Restore it, or remove the table's folder. Then run `logicalrep resync` for the table.",
    ),
    "TABLE_MISSING": (
        "A table does not exist in this database, or none of its columns is published.",
        "Correct its name, or add it to the publication.",
    ),
    "TABLE_NAME": (
        "A table's name is not written as in SQL.",
        'Write `schema.table`, with double quotes around names that are not in lower case: `public."Orders"`.',
    ),
    "TABLE_NOT_PUBLISHED": (
        "A table is not in the query's publications.",
        "Write it as `schema.table`, or run `ALTER PUBLICATION … ADD TABLE`.",
    ),
    "TABLE_NOT_READABLE": (
        "The role may not read a table, or row-level security hides rows from it.",
        "Run `GRANT SELECT` as the text says; for row-level security give the role `BYPASSRLS`.",
    ),
    "TABLE_RENAMED": (
        "The table of a typed stream was renamed.",
        "Set the option `table` to the new name, and continue with the same checkpoint.",
    ),
    "TABLE_REPLACED": (
        "The name of a typed stream's table now belongs to another table.",
        "Copy the table again, with a new slot and checkpoint, or read the changes of both in the change feed.",
    ),
    "TABLE_TRANSITION": (
        "A mistake in logicalrep: a table was to enter a phase that cannot follow the one it is in.",
        "Report the text. Run `logicalrep resync` for the table.",
    ),
    "TABLE_UNDECIDED": (
        "`logicalrep verify` cannot tell whether a table is equal; the text has the reason.",
        "Let `logicalrep replicate` catch up, and compare again.",
    ),
    "TABLE_UNSAFE": (
        "Reading a table would run code of other roles with the rights of the reader: the planner calls functions in "
        "the expressions of indexes, statistics and partition keys, and a foreign table is read by its server.",
        "Let a superuser own the function that the text names, drop what uses it, or read as the role that owns it; "
        "detach a foreign table.",
    ),
    "TASKS_FAILED": (
        "The engine of `replicate` could not run a task, as its processes end again and again, for example.",
        "The text quotes the engine. Look whether the machine has enough memory and disk. Start the command again; it "
        "goes on where it ended.",
    ),
    "TOO_LARGE": (
        "Messages or values of 2 GiB and more cannot be read as columns.",
        "Read smaller batches.",
    ),
    "TRANSACTION_CLOSED": (
        "The changes of a transaction were requested after it was closed.",
        "Read them before the end of its context.",
    ),
    "USAGE": (
        "A command's arguments are not valid.",
        "Correct them; `--help` lists them.",
    ),
    "VALUE_NOT_SENT": (
        "The server left out an unchanged value that is stored out of line, and the copy lacks it.",
        "Set the value in the copy, or make the copy again; with REPLICA IDENTITY FULL the server sends all values.",
    ),
    "VALUE_NOT_TEXT": (
        "A value is not valid in the session's encoding.",
        "Correct the row in the database, which has bytes that are not text; run `logicalrep resync` for a table of "
        "`replicate`.",
    ),
    "VERIFY_IMPOSSIBLE": (
        "The destination has no such tables.",
        "Give `logicalrep verify` the same `--to` as `logicalrep replicate`, and tables that it replicates.",
    ),
    "WAL_DIVERGED": (
        "The server's WAL does not contain the reader's position: it is another server, was restored from a backup, or "
        "took over from a server that was ahead of it.",
        "Run `logicalrep resync --all` for a destination of `replicate`; for a stream copy the tables again, and start "
        "with "
        "a new checkpoint.",
    ),
    "WAL_LEVEL": (
        "The server's wal_level is too low for logical decoding.",
        "Run `ALTER SYSTEM SET wal_level = logical` and restart the server; from PostgreSQL 19 on `replica` is enough.",
    ),
}
"""The cause and the remedy of each code."""

_HEAD = """# Errors

Every error of logicalrep is a `LogicalRepError`. Its text begins with its code, which is stable: `[SLOT_LOST]
replication slot 'x' is lost …`. In Spark, where often only the text arrives, look for the code. The attribute `code`
has it too; the texts of `DecodeError` and `EncodeError` omit it. A `PreflightError` has a line for each finding, each
with its own code.

| code | cause | remedy |
| --- | --- | --- |
"""


def page() -> str:
    """Return the page of all codes as Markdown."""
    return _HEAD + "".join(f"| `{code}` | {happened} | {do} |\n" for code, (happened, do) in sorted(CODES.items()))


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(page(), "utf-8")
