"""The codes of errors of `logicalrep replicate`: of its settings, its destination, and its tables."""

from __future__ import annotations

OF_REPLICATING: dict[str, tuple[str, str]] = {
    "CATALOG_INVALID": (
        "A catalog of Iceberg tables cannot be used: it refuses the credentials, or a library for it is missing.",
        "The line quotes the reason. Correct `--catalog`, `--catalog-option` and the credentials, or install the "
        "extra that it names.",
    ),
    "CATALOG_NAME": (
        "Two tables would have one name in the catalog, as it has small letters, digits and `_` alone; or a name is "
        "too long for it.",
        "Rename a table, leave one out with `--exclude-tables`, or replicate it to another destination with another "
        "catalog, or another `--catalog-option name=NAME`.",
    ),
    "CATALOG_NOT_NAMED": (
        "The tables of a destination are in an Iceberg catalog, and the reader was given none: it never connects to a "
        "catalog because a file of the destination names it.",
        "Give `read` or `at` the `catalog` that `replicate` has as `--catalog`, if you trust it.",
    ),
    "CATALOG_NOT_REACHED": (
        "A catalog of Iceberg tables does not answer, or did not accept a commit; the command waits and tries again.",
        "The line quotes the reason. Nothing is lost, and nothing is committed twice.",
    ),
    "COLUMN_OF_NAMES": (
        "A column has values that are names of other objects, as `regclass` and `aclitem` have: a rename of these "
        "objects changes the values on the server, and no change is sent.",
        "Leave the column out or mask it as nulled in the settings by table, or change its type to `text` or `oid`. "
        "Then run `logicalrep resync` for the table.",
    ),
    "COLUMN_PROTECTED": (
        "A column to be masked or left out is not there, is another one than before, or belongs to the key.",
        "Name in the settings by table what is to be masked now, restart, and run `logicalrep resync` for the table.",
    ),
    "COLUMN_RESERVED": (
        "A table has a column with a name that `--deletes soft`, `--history` or `--append` needs for a column of its "
        "own.",
        "Rename the column, or leave out the option for this table, and run `logicalrep resync` for it.",
    ),
    "CONFIG_INVALID": (
        "The file of `--config` has mistakes, or names a table that is not replicated, or a column that is not there.",
        "Correct the lines in the text; a table that may come later needs `optional: true`.",
    ),
    "CONFIG_MISSING": (
        "Columns of tables at the destination are masked or left out, and the command got no settings by table.",
        "Give `--config` with the settings as before. Leaving a table out of the file does not unmask it.",
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
        "Nothing has been replicated to the destination yet.",
        "Correct `--to`, or run `logicalrep replicate` first.",
    ),
    "DESTINATION_FORMAT": (
        "A destination has a format that this version does not read, or lacks `_logicalrep/destination.json`.",
        "Use the version that wrote it, restore the file if somebody deleted it, or replicate to another destination; "
        "then drop the slot of the first, which retains WAL.",
    ),
    "DESTINATION_HAS_WRITER": (
        "Another process writes to the same destination, or has written there while this one was suspended.",
        "Nothing, if the other process is the one to go on. Otherwise stop one of the two.",
    ),
    "DESTINATION_INVALID": (
        "The destination cannot be used for tables.",
        "Name a folder, or the URI of an object store that can refuse to replace a file.",
    ),
    "DESTINATION_NOT_REACHED": (
        "A task of Spark cannot read and write the destination, for example because its machine lacks the store's "
        "credentials, or the rights on the folder.",
        "The line quotes the reason. The environment variables of S3 and the values of `--storage-option` are passed "
        "on; set those of other stores in the executors' environment.",
    ),
    "DESTINATION_NOT_SHARED": (
        "The destination is a folder, but Spark's executors run on other machines. Or, with `--shared-folder`, a task "
        "does not see the command's files, or two processes made the same file.",
        "Name the URI of an object store; or, with `--shared-folder`, a folder that all machines mount, on a file "
        "system that never lets two processes make the same file.",
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
        "The Java that `replicate` started for Spark has ended several times within an hour.",
        "See whether the machine has enough memory, as its kernel ends large processes. Then start the command again.",
    ),
    "KEY_NOT_SENT": (
        "The server sends updates or deletes of a table without one of its key's columns, as that is a generated "
        "column.",
        "Run `ALTER TABLE … REPLICA IDENTITY FULL`, then `logicalrep resync` for the table.",
    ),
    "KEY_NOT_UNIQUE": (
        "The settings by table give a table a key that cannot tell its rows apart.",
        "Name the columns of a unique index, all `NOT NULL`, of a table with `REPLICA IDENTITY FULL`.",
    ),
    "LOADED_TOO_OFTEN": (
        "A replicated table has to be loaded again and again for the same reason. The third load waits for about a "
        "minute, and each later one for twice as long, up to an hour. Its changes are buffered meanwhile.",
        "None needed: the table is loaded at the time that the text names. The text has the reason: find what changes "
        "the table so often. `logicalrep resync` loads the table at once and counts anew.",
    ),
    "MASK_KEY": (
        "The key that hashes columns is missing in `LOGICALREP_MASK_KEY`, is too short, or is not the one before.",
        "Set it for every command that reads or writes the tables: the same one, of at least 16 characters.",
    ),
    "NAME_UNCONFIRMED": (
        "A destination names a slot or a publication that was not made for its location: the name was given to "
        "`replicate`; the destination was moved, copied or mounted at another path; or somebody changed its files.",
        "If the slot and the publication belong to this destination alone, add `--slot` and `--publication` with the "
        "names in the text.",
    ),
    "OTHER_SERVER": (
        "A destination has the tables of another server, or of one that was upgraded or made anew.",
        "Replicate to another destination. If the server has taken the place of the one before, as after "
        "`pg_upgrade`, run `logicalrep resync --all --new-server`.",
    ),
    "OLD_ROWS_INCOMPLETE": (
        "PostgreSQL 15.0 to 15.5, 16.0 and 16.1 send old rows of a table with `REPLICA IDENTITY FULL` without the "
        "default that `ADD COLUMN … DEFAULT` gave to earlier rows. The table has no key that finds these rows, or it "
        "has a row filter.",
        "Upgrade to 15.6, 16.2 or later; or give the table a primary key without this column; or run `VACUUM FULL` on "
        "it, which stores the default in each row. Then run `logicalrep resync` for the table.",
    ),
    "PART_NOT_LOADED": (
        "A part of a table that `resync` was to load again could not be: its condition failed on the server, or the "
        "table is stopped, or not replicated any more. The table is as it was, and goes on.",
        "Correct what the text names and run the command again; or load all of the table with `logicalrep resync`.",
    ),
    "PARTITION_COLUMN": (
        "A table cannot be partitioned as its `partition_by` says: by that column, or by so many values.",
        "Correct `partition_by` of the table in the settings by table, and restart.",
    ),
    "PARTITION_VALUE": (
        "A row has a value that no partition of a Delta table can have: an empty text, `__HIVE_DEFAULT_PARTITION__`, "
        "or a day before the year 1 or after 9999.",
        "Partition by `bucket(16, COLUMN)`, or by another column, and restart; or skip the commit that the text names.",
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
        "The destination cannot be read or written, for example because its disk is full or its store is away.",
        "The text quotes the reason. Once it is gone, the work goes on by itself.",
    ),
    "TABLES_STOPPED": (
        "Some tables are stopped, or their next load waits for a later time; the others are up to date.",
        "The text has the reason for each, and the command that loads the table again once the reason is gone. A load "
        "that waits needs none: a later run begins it.",
    ),
    "TABLE_DAMAGED": (
        "A data file of a replicated table is missing or damaged, or another program has changed rows.",
        "Nothing: the table is loaded again by itself. Other programs may run VACUUM and OPTIMIZE, and nothing else.",
    ),
    "TABLE_DIFFERS": (
        "A change does not fit the replicated table, for example because the row that it changes is not there.",
        "Nothing: the table is loaded again by itself.",
    ),
    "TABLE_FAILED": (
        "The server could not read a table, for example because of a damaged page; or an error that was not foreseen "
        "ended the work on it. The other tables go on.",
        "Mend what the text quotes; a traceback is in the log (`-v`). Then run `logicalrep resync` for the table.",
    ),
    "TABLE_LOG_DAMAGED": (
        "The log of a Delta table or the metadata of an Iceberg table is damaged: a file of `_delta_log` or `metadata` "
        "that is needed is missing or cannot be read.",
        "Restore it, or remove the table's folder, and its entry in the catalog. Then run `logicalrep resync` for the "
        "table.",
    ),
    "TABLE_NOT_CURRENT": (
        "At the time that is asked for, a table was being loaded or was stopped; or it has no rows yet.",
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
        "The destination has no table of that name.",
        "The text has the nearest name, or all names. Write a table's name as in SQL.",
    ),
    "TASKS_FAILED": (
        "The engine of `replicate` could not run a task, for example because its processes end again and again.",
        "The text quotes the engine. See whether the machine has enough memory and disk. Then start the command "
        "again; it goes on where it ended.",
    ),
    "TIME_NOT_STORED": (
        "The destination does not know its versions at that time: it is longer ago than `--keep`, or before the first "
        "batch.",
        "Give a later time; the text has the earliest. A longer `--keep` holds from now on.",
    ),
    "VERIFY_IMPOSSIBLE": (
        "The destination has none of these tables.",
        "Give `logicalrep verify` the same `--to` as `logicalrep replicate`, and tables that it replicates.",
    ),
    "VERSION_GONE": (
        "The files of an old version of a table were removed: it is older than `--keep`, or old versions took more "
        "than twenty times as much as the table.",
        "Read a later version.",
    ),
}
"""The cause and the remedy of each code."""
