"""Codes of errors in reading: messages, values, captures, Spark's source, and commands."""

from __future__ import annotations

READ: dict[str, tuple[str, str]] = {
    "ASYNC_PROGRESS": (
        "Spark began a batch before the checkpoint had the previous batch, as with `asyncProgressTrackingEnabled`.",
        "Remove that option from the sink and restart the query: it resumes from its checkpoint.",
    ),
    "CAPTURE_DAMAGED": (
        "A file is not a capture, is damaged, or contains a message of more than 256 MB.",
        "The error names the line or the offset. Record the capture again, or read the part before the damage.",
    ),
    "CHANGES_NOT_TYPED": (
        "The rows passed to `merged` or `changed_rows` do not come from a typed table.",
        "Read the table with the option `table`, or with `typed_table`.",
    ),
    "CHECKPOINT_FOREIGN": (
        "The query's checkpoint belongs to another source.",
        "Start the query with its own checkpoint.",
    ),
    "COLUMNS_AMBIGUOUS": (
        "Spark cannot distinguish two column names, or a column has a name that `changed_rows` reserves.",
        "If the names differ in case, set `spark.sql.caseSensitive` to true. Otherwise rename the column in the "
        "database.",
    ),
    "COLUMN_VALUE": (
        "A value does not parse as its column's type, or the target type cannot hold it.",
        "In a destination of `replicate`, correct the row and run `logicalrep resync` for the table, or choose "
        "another `--unrepresentable`. In a stream, read the column as text with the option `text_columns`; remove "
        "`binary` if the value was sent in binary.",
    ),
    "COPY_DIFFERS": (
        "A copy of a table has columns that the table's changes lack, lacks a key column, or has a column of another "
        "type.",
        "Drop the extra columns, or cast the column that the error names; if the cast loses information, copy the "
        "table again.",
    ),
    "DECODE_ERROR": (
        "The bytes are not a message of the session's protocol version and state.",
        "Check the version, `streaming` and `parallel`. The error names the field and the offset.",
    ),
    "ENCODE_ERROR": (
        "A message cannot be encoded because an attribute does not fit its field, or a dictionary is not a message.",
        "Correct the attribute that the error names.",
    ),
    "ENCODING_UNKNOWN": (
        "Python has no codec for a client_encoding.",
        "Use UTF8 as the session's client_encoding.",
    ),
    "JAVA_MISSING": (
        "Spark cannot find Java. `replicate --once` needs Spark only for more than 8 MB of work.",
        "Install Java 17 or later, or run `pip install 'logicalrep[java]'`.",
    ),
    "KEYS_INVALID": (
        "The `keys` of `merged` or `changed_rows` are empty, or are not columns of the table.",
        "Pass the columns of the replica identity, or, if the identity is FULL, the columns of a unique index.",
    ),
    "KEY_NULL": (
        "A column of `keys` is NULL in a changed row, or in a row of a copy whose table was truncated.",
        "Pass the columns of the replica identity. If the table was truncated, delete such rows from the copy.",
    ),
    "LISTEN_ADDRESS": (
        "The address for the page of `replicate` or for metrics is invalid.",
        "Pass HOST:PORT or a port, such as `--listen 8080` or the source's option `listen`.",
    ),
    "LISTEN_REFUSED": (
        "The page of `replicate` or a stream's metrics cannot be served, usually because another process uses the "
        "port.",
        "Choose another port, or stop the other process. Port 0 is any free port. Each stream needs its own port.",
    ),
    "LOGICALREP": (
        "The base class of all errors; no error has this code itself.",
        "Catch `LogicalRepError` to catch all errors.",
    ),
    "MESSAGE_OUT_OF_PLACE": (
        "A message arrived where its kind is not allowed, such as a commit without a begin.",
        "Start reading at a position without an open transaction, and do not skip messages.",
    ),
    "PACKAGE_DIFFERS": (
        "The Python worker of an executor has another version of logicalrep than the driver.",
        "Install the version that the error names on all executors, or the executors' version on the driver.",
    ),
    "PACKAGE_MISSING": (
        "The Python worker of an executor cannot import logicalrep or a package that logicalrep needs.",
        "Install logicalrep with the extra that the error names (`spark` or `replicate`) into the Python of all "
        "executors, or set `PYSPARK_PYTHON` to a Python with that installation.",
    ),
    "PYTHON_DIFFERS": (
        "The executors' Python has another minor version than the driver's Python, such as 3.11 and 3.12. Spark sends "
        "functions between them.",
        "Set `PYSPARK_PYTHON` of the executors to a Python of the driver's version, or run the driver with the "
        "executors' version.",
    ),
    "QUERY_NOT_FINISHED": (
        "`acknowledge` was called for a query that is running or has failed.",
        "Stop the query or wait until it ends; restart a failed query.",
    ),
    "QUERY_NOT_OF_SLOT": (
        "`acknowledge` was called for a slot that no source of the query reads, or several sources read.",
        "Pass the options of the source whose slot should advance.",
    ),
    "RECEIVER_ENDED": (
        "The thread that receives from the server ended without an error.",
        "Restart the query, and report the problem with the log.",
    ),
    "SCHEMA_CHANGED": (
        "A table's columns differ from the stream's schema.",
        "The error names the column and the option that reads it.",
    ),
    "SEGMENT_GONE": (
        "A spool file no longer exists because its stream has ended.",
        "Restart the query: it receives the rows again.",
    ),
    "SERVER_ERROR": (
        "The server refused or cancelled a statement for a reason that logicalrep does not handle.",
        "The error quotes the server; the server's log has more. Restart the command: it resumes where it stopped.",
    ),
    "SPOOL_NOT_MADE": (
        "The spool folder cannot be created.",
        "Set the option `spool` to another folder.",
    ),
    "SPOOL_NOT_SEEN": (
        "An executor cannot see the driver's spool folder.",
        "Set the option `spool` to a folder that the driver and all executors share, or use `mode = peek`.",
    ),
    "SPOOL_UNSAFE": (
        "The spool folder belongs to another user, is writable for other users, or is a link.",
        "Remove the folder, remove other users' permissions, or set the option `spool` to another folder. Run "
        "executors as the driver's user.",
    ),
    "TABLE_MISSING": (
        "A table does not exist in this database, or none of its columns is published.",
        "Correct the table's name, or add the table to the publication.",
    ),
    "TABLE_NAME": (
        "A table's name is not valid SQL.",
        'Write `schema.table`, with double quotes around names that are not in lower case: `public."Orders"`.',
    ),
    "TABLE_RENAMED": (
        "The table of a typed stream was renamed.",
        "Set the option `table` to the new name, and resume with the same checkpoint.",
    ),
    "TABLE_REPLACED": (
        "The name of a typed stream's table now belongs to another table.",
        "Copy the table again with a new slot and checkpoint, or read the changes of both tables in the change feed.",
    ),
    "TOO_LARGE": (
        "Messages or values of 2 GiB or more cannot be read as columns.",
        "Read smaller batches.",
    ),
    "TRANSACTION_CLOSED": (
        "A transaction's changes were requested after the transaction was closed.",
        "Read the changes before its context ends.",
    ),
    "USAGE": (
        "A command's arguments are invalid.",
        "Correct the arguments; `--help` lists them.",
    ),
    "VALUE_NOT_SENT": (
        "The server did not send an unchanged TOASTed value, and the copy lacks the value.",
        "Set the value in the copy, or copy the table again. With REPLICA IDENTITY FULL the server sends all values.",
    ),
    "VALUE_NOT_TEXT": (
        "A value is invalid in the session's encoding.",
        "Correct the row in the database, as its bytes are not text. In a destination of `replicate`, then run "
        "`logicalrep resync` for the table.",
    ),
}
