"""The codes of errors of `logicalrep replicate`: of its settings, its destination, and its tables."""

from __future__ import annotations

OF_REPLICATING: dict[str, tuple[str, str]] = {
    "COLUMN_PROTECTED": (
        "A column that is to be masked or left out is not there, is another one than before, or is one of the key.",
        "Name in the settings by table what is to be masked now, restart, and run `logicalrep resync` for the table.",
    ),
    "COLUMN_RESERVED": (
        "A table has a column of the name that `--deletes soft`, `--history` or `--append` gives to one of its own.",
        "Rename the column, or leave out the option for this table, and run `logicalrep resync` for it.",
    ),
    "CONFIG_INVALID": (
        "The file of `--config` has mistakes, or names a table that is not replicated, or a column that is not there.",
        "Correct the lines in the text; a table that may come later needs `optional: true`.",
    ),
    "CONFIG_MISSING": (
        "Columns of tables at the destination are masked or left out, and the command was given no settings by table.",
        "Give `--config`, as before; a file without these tables does not write them in clear either.",
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
    "DESTINATION_NOT_REACHED": (
        "A task of Spark cannot read and write the destination, as its machine lacks the store's credentials, or the "
        "rights on the folder, for example.",
        "The line quotes the reason. The environment variables of S3 and the values of `--storage-option` are passed "
        "on; set those of other stores in the executors' environment.",
    ),
    "DESTINATION_NOT_SHARED": (
        "The destination is a folder, but Spark's executors run on other machines; or it was said to be shared, and a "
        "task does not see the files of the command, or two processes made the same file.",
        "Name the URI of an object store, or, with `--shared-folder`, a folder that all machines mount, on which a "
        "file can be made only if it is not there.",
    ),
    "DESTINATION_PAUSED": (
        "The destination is paused, and `--once` would bring nothing into the tables.",
        "Run `logicalrep resume` with the same `--dsn` and `--to`.",
    ),
    "ENGINE_MISSING": (
        "The libraries of the engine that `replicate` is to use are not installed.",
        "Run `pip install '.[replicate]'` in a clone for Spark, or name another engine by `--engine local`.",
    ),
    "FORMAT_MISSING": (
        "The library of the format that the tables are to have is not installed.",
        "Run `pip install '.[iceberg]'` in a clone, or leave `--format` out.",
    ),
    "HISTORY_DAMAGED": (
        "A data file of a table's history, or of its changes, is not there any more, or is damaged.",
        "Restore it, or remove the folder that the text names; then run `logicalrep resync` for the table.",
    ),
    "JAVA_ENDED": (
        "The Java of Spark that `replicate` had started has ended, several times within an hour.",
        "Look whether the machine has enough memory, as its kernel ends large processes; then start the command again.",
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
    "LOADED_TOO_OFTEN": (
        "A replicated table had to be loaded again for the same reason three times within an hour.",
        "The text has the reason: find what changes the table so often. Then run `logicalrep resync` for the table, "
        "which loads it and counts anew.",
    ),
    "MASK_KEY": (
        "The key that hashes columns is missing in `LOGICALREP_MASK_KEY`, is too short, or is not the one before.",
        "Set it for every command that reads or writes the tables: the same one, of at least 16 characters.",
    ),
    "OTHER_SERVER": (
        "A destination has the tables of another server, or of one that was upgraded or made anew.",
        "Replicate to another destination. If the server has taken the place of the one before, as after "
        "`pg_upgrade`, run `logicalrep resync --all --new-server`.",
    ),
    "PUBLICATION_INCOMPLETE": (
        "The publication leaves out inserts, updates, deletes or truncates, or one that `replicate` made sends "
        "partitions as tables of their own.",
        "Run the statement in the text. `replicate` then loads the tables again, as it cannot know what was left out.",
    ),
    "PUBLICATION_NEEDED": (
        "The role may not make or change the publication, or a wanted table cannot be in it.",
        "Let a superuser, or the owner of the tables, run the statements in the text, or the script of `logicalrep "
        "check`.",
    ),
    "SKIP_REFUSED": (
        "A commit cannot be skipped: the table is not stopped at it, or its changes are not buffered any more.",
        "Give the table and the LSN that `logicalrep status` shows; or load the table again with `logicalrep resync`.",
    ),
    "STORAGE_NOT_WRITABLE": (
        "A destination cannot be read or written, as its disk is full, or its store is away.",
        "The text quotes the reason. The work goes on by itself once it is gone.",
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
    "TABLE_NOT_CURRENT": (
        "A table was being loaded, or was stopped, at the time of which tables are to be read; or it has no rows yet.",
        "Read it alone, without a time; or give a time at which it followed.",
    ),
    "TABLE_TRANSITION": (
        "A mistake in logicalrep: a table was to enter a phase that cannot follow the one it is in.",
        "Report the text. Run `logicalrep resync` for the table.",
    ),
    "TABLE_UNDECIDED": (
        "`logicalrep verify` cannot tell whether a table is equal; the text has the reason.",
        "Let `logicalrep replicate` catch up, and compare again.",
    ),
    "TABLE_UNKNOWN": (
        "A destination has no table of the name that is to be read.",
        "The text has the name that is nearest, or all; a table's name is written as in SQL.",
    ),
    "TASKS_FAILED": (
        "The engine of `replicate` could not run a task, as its processes end again and again, for example.",
        "The text quotes the engine. Look whether the machine has enough memory and disk. Start the command again; it "
        "goes on where it ended.",
    ),
    "TIME_NOT_STORED": (
        "A destination does not tell the versions of its tables of a time, which is longer ago than `--keep`, or "
        "before the first batch.",
        "Give a later time; the text has the earliest. A longer `--keep` holds from now on.",
    ),
    "VERIFY_IMPOSSIBLE": (
        "The destination has no such tables.",
        "Give `logicalrep verify` the same `--to` as `logicalrep replicate`, and tables that it replicates.",
    ),
    "VERSION_GONE": (
        "The files of an old version of a table were removed: it is older than `--keep`, or old versions took more "
        "than twenty times as much as the table.",
        "Read a later version.",
    ),
}
"""The cause and the remedy of each code."""
