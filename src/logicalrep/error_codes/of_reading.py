"""The codes of errors of what is read: messages, values, captures, Spark's source, and commands."""

from __future__ import annotations

OF_READING: dict[str, tuple[str, str]] = {
    "ASYNC_PROGRESS": (
        "Spark began a batch before the batch before was in its checkpoint, as with `asyncProgressTrackingEnabled`.",
        "Leave that option of the sink out, and start the query again; it goes on from its checkpoint.",
    ),
    "CAPTURE_DAMAGED": (
        "A file is not a capture, is damaged, or has a message of more than 256 MB.",
        "The text names the line or the offset. Record the capture again, or read the part before it.",
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
    "COLUMN_VALUE": (
        "A value does not parse as its column's type, or the target type cannot hold it.",
        "In a destination of `replicate` correct the row and run `logicalrep resync` for the table, or choose another "
        "`--unrepresentable`. In a stream read the column as text with the option `text_columns`; leave out `binary` "
        "if it was sent in binary.",
    ),
    "COPY_DIFFERS": (
        "A copy of a table has columns that its changes lack, lacks a key column, or has a column of another type.",
        "Drop such columns, or cast the column in the text; if that loses information, make the copy again.",
    ),
    "DECODE_ERROR": (
        "The bytes are not a message of the protocol version in the session's state.",
        "Check the version, `streaming` and `parallel`; the text names the field and the offset.",
    ),
    "ENCODE_ERROR": (
        "A message cannot be written because an attribute does not fit its field.",
        "Correct the attribute in the text.",
    ),
    "ENCODING_UNKNOWN": (
        "Python has no codec for a client_encoding.",
        "Use UTF8 for the session.",
    ),
    "JAVA_MISSING": (
        "Spark finds no Java. `replicate --once` starts it only for work of more than 8 MB.",
        "Install Java 17 or later, or run `pip install '.[java]'` in a clone.",
    ),
    "KEYS_INVALID": (
        "The `keys` of `merged` or `changed_rows` are empty, or not columns of the table.",
        "Name the columns of the replica identity, or of a unique index if the identity is FULL.",
    ),
    "KEY_NULL": (
        "A changed row, or a row of a copy whose table was truncated, is NULL in a column of `keys`.",
        "Name the columns of the replica identity; delete such rows from the copy if its table was truncated.",
    ),
    "LISTEN_ADDRESS": (
        "The address for the page of `replicate`, or for metrics, is not valid.",
        "Write HOST:PORT, or a port alone, such as `--listen 8080`; the same for the source's option `listen`.",
    ),
    "LISTEN_REFUSED": (
        "The page of `replicate`, or a stream's metrics, cannot be served, most often because another process has the "
        "port.",
        "Choose another port, or end the other process; port 0 is any free one. Each stream needs a port of its own.",
    ),
    "LOGICALREP": (
        "The base class of all errors; no error has this code itself.",
        "Catch `LogicalRepError` to catch all of them.",
    ),
    "MESSAGE_OUT_OF_PLACE": (
        "A message came where none of its kind can come, such as a commit without its beginning.",
        "Begin to read at a position without an open transaction, and leave out no message.",
    ),
    "PACKAGE_DIFFERS": (
        "The Python worker of an executor has another version of logicalrep than the driver.",
        "Install the version that the line names on all executors, or the executors' on the driver.",
    ),
    "PACKAGE_MISSING": (
        "The Python worker of an executor cannot import logicalrep, or a package that it needs.",
        "Install logicalrep with the extra that the line names, `spark` or `replicate`, for the Python of all "
        "executors, or name such a Python in `PYSPARK_PYTHON`.",
    ),
    "PYTHON_DIFFERS": (
        "The executors' Python has another version than the driver's, 3.11 and 3.12 for example: Spark sends functions "
        "between them.",
        "Name a Python of the driver's version in `PYSPARK_PYTHON` of the executors, or run the driver with theirs.",
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
    "SCHEMA_CHANGED": (
        "A table's columns differ from the stream's schema.",
        "The text names the column, and the option that reads it.",
    ),
    "SEGMENT_GONE": (
        "A file of the spool is gone because its stream has ended.",
        "Start the query again: it receives the rows anew.",
    ),
    "SERVER_ERROR": (
        "The server has refused or ended a statement, for a reason that is not foreseen.",
        "The text quotes the server; its log has more. Start the command again; it goes on where it ended.",
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
    "TABLE_MISSING": (
        "A table does not exist in this database, or none of its columns is published.",
        "Correct its name, or add it to the publication.",
    ),
    "TABLE_NAME": (
        "A table's name is not written as in SQL.",
        'Write `schema.table`, with double quotes around names that are not in lower case: `public."Orders"`.',
    ),
    "TABLE_RENAMED": (
        "The table of a typed stream was renamed.",
        "Set the option `table` to the new name, and continue with the same checkpoint.",
    ),
    "TABLE_REPLACED": (
        "The name of a typed stream's table now belongs to another table.",
        "Copy the table again, with a new slot and checkpoint, or read the changes of both in the change feed.",
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
}
"""The cause and the remedy of each code."""
