"""The codes of all errors: what happened, and what to do.

`python -m logicalrep.error_codes docs/errors.md` writes the page that lists them.
"""

from __future__ import annotations

import pathlib
import sys

CODES: dict[str, tuple[str, str]] = {
    "CAPTURE_DAMAGED": (
        "A file is no capture, or is damaged.",
        "The text names the place. Record the capture again, or read what comes before.",
    ),
    "CHANGES_NOT_TYPED": (
        "`merged` or `changed_rows` is given rows that are none of a typed table.",
        "Read the table with the option `table`, or by `typed_table`.",
    ),
    "CHECKPOINT_FOREIGN": (
        "The query's checkpoint is of another source.",
        "Start the query with a checkpoint of its own.",
    ),
    "COLUMNS_AMBIGUOUS": (
        "Columns of a table have names that Spark takes for one, or that `changed_rows` has for a column of its own.",
        "Set `spark.sql.caseSensitive` to true where they differ in case, else rename the column in the database.",
    ),
    "COLUMN_VALUE": (
        "A value does not parse as its column's type, or the target type cannot hold it.",
        "Read the column as text with the option `text_columns`; leave out `binary` if the value came so.",
    ),
    "CONNECTION_REFUSED": (
        "The server answers, and refuses the connection.",
        "The text has the server's words: correct the database, the role, the password, or the server's pg_hba.conf.",
    ),
    "CONNECTION_SETTINGS": (
        "The connection string, or a parameter beside it, is none of libpq's.",
        "Correct `dsn`, or the parameter that is named.",
    ),
    "COPY_DIFFERS": (
        "A copy of a table has columns that its changes lack, lacks a column of the key, or has one of another type.",
        "Leave out such columns, or cast the one that is named; where that loses something, make the copy anew.",
    ),
    "DECODE_ERROR": (
        "Bytes are no message of the protocol version, in the session's state.",
        "Check the version, `streaming` and `parallel`; the text names the field and the offset.",
    ),
    "ENCODE_ERROR": (
        "A message cannot be written, as an attribute does not fit its field.",
        "Correct the attribute that is named.",
    ),
    "ENCODING_UNKNOWN": (
        "A client_encoding has no codec in Python.",
        "Use UTF8 for the session.",
    ),
    "JAVA_MISSING": (
        "Spark finds no Java.",
        "Install Java 17 or later, or `pip install 'logicalrep[java]'`.",
    ),
    "KEYS_INVALID": (
        "The keys that `merged` or `changed_rows` is given are none, or no columns of the table.",
        "Name the columns of the replica identity, or of a unique index where that is FULL.",
    ),
    "KEY_NULL": (
        "A row of a change, or of a copy that is truncated, has no value for a column of `keys`.",
        "Name the columns of the replica identity; delete such rows of the copy where its table was truncated.",
    ),
    "LOGICALREP": (
        "The base of all errors; none has this code itself.",
        "Catch `LogicalRepError` to catch them all.",
    ),
    "MESSAGE_OUT_OF_PLACE": (
        "A message came where it cannot come, such as a commit without its beginning.",
        "Read the stream from a position at which no transaction is open, with all of its messages.",
    ),
    "NO_FREE_SLOT": (
        "The server has as many replication slots as it may have.",
        "Raise `max_replication_slots`, or drop a slot that nobody uses.",
    ),
    "NO_WALSENDERS": (
        "The server has no walsenders.",
        "Run `ALTER SYSTEM SET max_wal_senders = 10` and restart the server, or use `mode = peek`.",
    ),
    "OPTION_INVALID": (
        "An option is unknown, is missing, has a value that it does not take, or does nothing beside the others.",
        "Correct the option that is named.",
    ),
    "PACKAGE_MISSING": (
        "The Python worker of an executor cannot import logicalrep, or a package that it needs.",
        "Install logicalrep with its extra `spark` for the Python of all executors, or name one that has it in "
        "`PYSPARK_PYTHON`.",
    ),
    "PASSWORD_MISSING": (
        "The server wants a password, and there is none.",
        "Set the option `password`, or have it in `~/.pgpass` or the file that `PGPASSFILE` names, for Spark's "
        "executors as well as for its driver.",
    ),
    "POSITION_PASSED": (
        "The slot is past the reader's position: somebody else has acknowledged what lies between.",
        "Give each reader a slot of its own, copy the tables anew, and start with a new checkpoint.",
    ),
    "PUBLICATION_GONE": (
        "The publication did not exist when a change was made that is to be read.",
        "Make a new slot after the publication, copy the tables anew, and start with a new checkpoint.",
    ),
    "PUBLICATION_MISSING": (
        "The publication does not exist in this database.",
        "Make it with `CREATE PUBLICATION`, before the slot.",
    ),
    "QUERY_NOT_FINISHED": (
        "A query is acknowledged while it runs, or after it has failed.",
        "Stop it or wait for its end; restart one that failed.",
    ),
    "QUERY_NOT_OF_SLOT": (
        "A query is acknowledged for a slot that none of its sources reads, or several of them.",
        "Give the options of the source whose slot is to move.",
    ),
    "RECEIVER_ENDED": (
        "The thread that receives from the server has ended without an error of its own.",
        "Start the query again, and report it with the log.",
    ),
    "ROLE_CANNOT_REPLICATE": (
        "The role has no right to replicate.",
        "Run `ALTER ROLE … REPLICATION`, or what the managed service has for it.",
    ),
    "SCHEMA_CHANGED": (
        "A table has other columns than the stream's schema.",
        "The text names the column, and the option that reads it.",
    ),
    "SEGMENT_DAMAGED": (
        "A file of the spool is damaged, or has other rows than are asked for.",
        "Remove it if no query uses it; a running query receives its rows again after a restart.",
    ),
    "SEGMENT_GONE": (
        "A file of the spool is gone, as Spark has committed its rows.",
        "Read the rows from where the query wrote them.",
    ),
    "SERVER_AWAY": (
        "Nobody answers where the server is to be, or it starts or stops.",
        "Start it, or correct `host` and `port`; the option `retry_timeout` says for how long it is tried.",
    ),
    "SERVER_LACKS_OPTION": (
        "An option needs a newer PostgreSQL.",
        "Leave the option out.",
    ),
    "SERVER_NOT_STARTED": (
        "A local server for tests or demonstrations was not found, or did not start.",
        "The text has what it said.",
    ),
    "SERVER_SILENT": (
        "The server sends nothing, although it has more.",
        "Look into the server's log for the walsender's process; raise `retry_timeout` where it is busy.",
    ),
    "SERVER_TOO_OLD": (
        "The server is older than PostgreSQL 10, which has no pgoutput.",
        "Upgrade the server.",
    ),
    "SLOT_EXISTS": (
        "A snapshot is to be made with a slot that exists already.",
        "Name another slot, or drop it first if no query goes on from it.",
    ),
    "SLOT_IN_USE": (
        "Another process reads from the slot.",
        "Stop that reader, which is named, or give this one a slot of its own.",
    ),
    "SLOT_LOST": (
        "The server has removed WAL that the slot needs.",
        "Drop the slot, make a new one, copy the tables anew, and start with a new checkpoint; a larger "
        "`max_slot_wal_keep_size` keeps slots longer.",
    ),
    "SLOT_MISSING": (
        "The slot does not exist.",
        "Make it, or set `create_slot = true`; if it was dropped, copy the tables anew and start with a new "
        "checkpoint.",
    ),
    "SLOT_UNUSABLE": (
        "The slot is of another kind, plugin or database, or has two_phase.",
        "Name another slot, as the text says.",
    ),
    "SNAPSHOT_BLOCKED": (
        "Somebody waits to truncate or alter a table that the snapshot holds.",
        "End that session, or make the snapshot again.",
    ),
    "SNAPSHOT_GONE": (
        "The server has no such snapshot any more.",
        "Read it within the context that made it; make it again.",
    ),
    "SNAPSHOT_STALE": (
        "A table was truncated, rewritten, altered or renamed while the snapshot was made.",
        "Make the snapshot again.",
    ),
    "SPOOL_NOT_MADE": (
        "The folder for the spool cannot be made.",
        "Name another in the option `spool`.",
    ),
    "SPOOL_NOT_SEEN": (
        "An executor does not see the folder where the driver spools.",
        "Name a folder that the driver and all executors share in the option `spool`, or take `mode = peek`.",
    ),
    "SPOOL_UNSAFE": (
        "The folder for the spool belongs to another user, can be written by others, or is a link.",
        "Remove it or close it to others, or name another in the option `spool`; executors run as the driver's user.",
    ),
    "TABLE_MISSING": (
        "A table does not exist in this database, or none of its columns is published.",
        "Correct its name, or add it to the publication.",
    ),
    "TABLE_NAME": (
        "A table's name is not written as in SQL.",
        'Write `schema.table`, and what is not in small letters in double quotes: `public."Orders"`.',
    ),
    "TABLE_NOT_PUBLISHED": (
        "A table is not in the publications that are read.",
        "Write it as `schema.table`, or run `ALTER PUBLICATION … ADD TABLE`.",
    ),
    "TABLE_NOT_READABLE": (
        "The role may not read a table that a snapshot is to copy.",
        "Run `GRANT SELECT` as the text says.",
    ),
    "TABLE_RENAMED": (
        "The table of a typed stream has another name by now.",
        "Name it so in the option `table`, and go on with the same checkpoint.",
    ),
    "TABLE_REPLACED": (
        "The name of a typed stream's table is another table's by now.",
        "Copy the table anew, with a new slot and checkpoint, or read the changes of both in the change feed.",
    ),
    "TOO_LARGE": (
        "Messages or values of 2 GiB and more cannot be read in columns.",
        "Read smaller batches.",
    ),
    "TRANSACTION_CLOSED": (
        "The changes of a transaction are asked for after it was closed.",
        "Read them before the end of its context.",
    ),
    "USAGE": (
        "A command's arguments make no sense.",
        "Correct them; `--help` lists them.",
    ),
    "VALUE_NOT_SENT": (
        "The server left out a value that is stored out of line and did not change, and the copy lacks it.",
        "Give the row the value in the copy, or make the copy anew; REPLICA IDENTITY FULL has the server send all.",
    ),
    "VALUE_NOT_TEXT": (
        "A value is not valid in the session's encoding.",
        "Look at the row in the database, which holds bytes that are no text.",
    ),
    "WAL_DIVERGED": (
        "The server's WAL did not come by the reader's position: it is another server, or was restored from a backup, "
        "or took over from one that was ahead of it.",
        "Copy the tables anew, and start with a new checkpoint.",
    ),
    "WAL_LEVEL": (
        "The server's WAL has not what logical decoding needs.",
        "Run `ALTER SYSTEM SET wal_level = logical` and restart the server; from PostgreSQL 19 on `replica` is enough.",
    ),
}
"""Of each code what happened, and what to do."""

_HEAD = """# Errors

Every error of logicalrep is a `LogicalRepError` and begins with its code, which is stable: `[SLOT_LOST] replication
slot 'x' is lost …`. In Spark, where often only text arrives, look for the code. The attribute `code` has it as well;
the text of a `DecodeError` or an `EncodeError` goes without. A `PreflightError` has a line for each finding, each with
its code.

| code | what happened | what to do |
| --- | --- | --- |
"""


def page() -> str:
    """Return the page of all codes as Markdown."""
    return _HEAD + "".join(f"| `{code}` | {happened} | {do} |\n" for code, (happened, do) in sorted(CODES.items()))


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(page(), "utf-8")
