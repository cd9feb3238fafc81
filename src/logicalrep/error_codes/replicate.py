"""Codes of errors of `logicalrep replicate`: settings, destination and tables."""

from __future__ import annotations

REPLICATE: dict[str, tuple[str, str]] = {
    "CATALOG_INVALID": (
        "A catalog cannot be used: it refuses the credentials or a table's name, or a library for the catalog is "
        "missing.",
        "The error quotes the reason. Correct `--catalog`, `--catalog-option` and the credentials, or install the "
        "extra that the error names.",
    ),
    "CATALOG_NAME": (
        "Two tables would have the same name in the catalog, whose names have only small letters, digits and `_`; or "
        "a name is too long for the catalog.",
        "Rename a table, exclude a table with `--exclude-tables`, or replicate the table to another destination with "
        "another catalog or another `--catalog-option name=NAME`.",
    ),
    "CATALOG_NOT_NAMED": (
        "The destination's tables are in an Iceberg catalog, but the reader has no `catalog` argument. The reader "
        "never connects to a catalog only because a file in the destination names it.",
        "Pass the value of replicate's `--catalog` as `catalog` to `read` or `at`, if you trust the catalog.",
    ),
    "CATALOG_NOT_REACHED": (
        "A catalog does not answer, or did not accept a commit. The command waits and retries.",
        "The error quotes the reason. Nothing is lost, and nothing is committed twice.",
    ),
    "COLUMN_OF_NAMES": (
        "A column's values are names of other objects, as in `regclass` and `aclitem`. Renaming such an object "
        "changes the values on the server, but PostgreSQL sends no change.",
        "Omit the column or mask it as nulled in the settings by table, or change its type to `text` or `oid`. Then "
        "run `logicalrep resync` for the table.",
    ),
    "COLUMN_PROTECTED": (
        "The settings mask or omit a column that does not exist, was replaced by another column of that name, or is "
        "part of the key.",
        "Correct the columns to mask or omit in the settings by table, restart, and run `logicalrep resync` for the "
        "table.",
    ),
    "COLUMN_RESERVED": (
        "A table has a column whose name `--deletes soft`, `--history`, `--append` or `--change-data-feed` reserves.",
        "Rename the column, or remove the option for this table. Then run `logicalrep resync` for the table.",
    ),
    "CONFIG_INVALID": (
        "The file of `--config` has mistakes, or names a table that is not replicated or a column that does not exist.",
        "Correct the lines that the error names. A table that may be created later needs `optional: true`.",
    ),
    "CONFIG_MISSING": (
        "The destination has tables with masked or omitted columns, but the command has no settings by table.",
        "Pass `--config` with the previous settings. Removing a table from the file does not unmask it.",
    ),
    "DESTINATION_DAMAGED": (
        "A file in the destination differs from the file that `replicate` wrote, or contains a path outside of the "
        "destination.",
        "Restore the file that the error names, or replicate to another destination. A request, "
        "`_logicalrep/requests/….json`, can be deleted: then run its command again.",
    ),
    "DESTINATION_DIFFERS": (
        "The destination, or a table's name in the catalog, belongs to another program, database, slot or publication.",
        "The error names the owner. Use the previous arguments, or another destination.",
    ),
    "DESTINATION_EMPTY": (
        "Nothing has been replicated to the destination yet.",
        "Correct `--to`, or run `logicalrep replicate` first.",
    ),
    "DESTINATION_FORMAT": (
        "The destination has a format that this version does not read, or lacks `_logicalrep/destination.json`.",
        "Use the version that wrote it, restore the file if it was deleted, or replicate to another destination; then "
        "drop the first destination's slot, which retains WAL.",
    ),
    "DESTINATION_HAS_WRITER": (
        "Another process writes to the destination, or wrote to it while this process was suspended.",
        "No action needed if the other process should continue. Otherwise stop one of the two.",
    ),
    "DESTINATION_INVALID": (
        "The destination cannot store tables.",
        "Pass a folder, or the URI of an object store that can refuse to replace a file.",
    ),
    "DESTINATION_NOT_REACHED": (
        "A Spark task cannot read and write the destination, for example because its machine lacks the store's "
        "credentials or permissions on the folder.",
        "The error quotes the reason. replicate passes S3's environment variables and the values of "
        "`--storage-option` to executors; set other stores' variables in the executors' environment.",
    ),
    "DESTINATION_NOT_SHARED": (
        "The destination is a folder, but Spark's executors run on other machines. Or, with `--shared-folder`, a task "
        "does not see the command's files, or two processes created the same file.",
        "Pass the URI of an object store; or, with `--shared-folder`, a folder that all machines mount, on a file "
        "system that never lets two processes create the same file.",
    ),
    "DESTINATION_PAUSED": (
        "The destination is paused, so `--once` would not update any table.",
        "Run `logicalrep resume` with the same `--dsn` and `--to`.",
    ),
    "ENGINE_MISSING": (
        "The engine is Spark, by `--engine spark` or because the program has a Spark, and Spark's libraries are not "
        "installed.",
        "Run `pip install 'logicalrep[replicate]'`, or use `--engine local`, which needs no Spark.",
    ),
    "FORMAT_MISSING": (
        "The library of the requested table format is not installed.",
        "Run `pip install 'logicalrep[iceberg]'`, or omit `--format`.",
    ),
    "HISTORY_DAMAGED": (
        "A data file of a table's history or changes is missing or damaged.",
        "Restore the file, or remove the folder that the error names. Then run `logicalrep resync` for the table.",
    ),
    "JAVA_ENDED": (
        "The Java process that `replicate` started for Spark exited several times within an hour.",
        "Check that the machine has enough memory, as the kernel kills large processes. Then restart the command.",
    ),
    "KEY_NOT_SENT": (
        "The server sends a table's updates or deletes without a column of the key, because the column is generated.",
        "Run `ALTER TABLE … REPLICA IDENTITY FULL`, then `logicalrep resync` for the table.",
    ),
    "KEY_NOT_UNIQUE": (
        "The settings by table define a key that does not identify the table's rows.",
        "Name the columns of a unique index, all `NOT NULL`, of a table with `REPLICA IDENTITY FULL`.",
    ),
    "LOADED_TOO_OFTEN": (
        "A table needs repeated reloads for the same reason. The third reload waits for about a minute, and each "
        "later reload twice as long, up to an hour. Meanwhile replicate buffers the table's changes.",
        "No action needed: replicate reloads the table at the time that the error names. The error has the reason: "
        "find what changes the table so often. `logicalrep resync` reloads the table at once and resets the count.",
    ),
    "MASK_KEY": (
        "The key that hashes columns is missing in `LOGICALREP_MASK_KEY`, is too short, or differs from the previous "
        "key.",
        "Set the same key, of at least 16 characters, for every command that reads or writes the tables.",
    ),
    "NAME_UNCONFIRMED": (
        "The destination names a slot or a publication that was not created for its location: you passed the name to "
        "`replicate`; the destination was moved, copied or mounted at another path; or somebody changed its files.",
        "If only this destination uses the slot and the publication, add `--slot` and `--publication` with the names "
        "in the error.",
    ),
    "OTHER_SERVER": (
        "The destination has tables of another server, or of this server before an upgrade or a re-creation.",
        "Replicate to another destination. If the server replaces the previous server, as after `pg_upgrade`, run "
        "`logicalrep resync --all --new-server`.",
    ),
    "OLD_ROWS_INCOMPLETE": (
        "PostgreSQL 15.0 to 15.5, 16.0 and 16.1 send old rows of a table with `REPLICA IDENTITY FULL` without the "
        "default that `ADD COLUMN … DEFAULT` gave to existing rows. The table has no key that finds these rows, or "
        "has a row filter.",
        "Upgrade to 15.6, 16.2 or later; or add a primary key without this column; or run `VACUUM FULL` on the table, "
        "which stores the default in each row. Then run `logicalrep resync` for the table.",
    ),
    "PART_NOT_LOADED": (
        "`resync` could not reload a part of a table: its condition failed on the server, or the table is stopped or "
        "no longer replicated. The table is unchanged, and replication continues.",
        "Correct what the error names and run the command again, or reload the whole table with `logicalrep resync`.",
    ),
    "PARTITION_COLUMN": (
        "A table cannot be partitioned by the column, or the number of values, of its `partition_by`.",
        "Correct the table's `partition_by` in the settings by table, and restart.",
    ),
    "PARTITION_VALUE": (
        "A row has a value that cannot be a partition of a Delta table: an empty text, `__HIVE_DEFAULT_PARTITION__`, "
        "or a day before the year 1 or after 9999.",
        "Partition by `bucket(16, COLUMN)` or by another column, and restart; or skip the commit that the error names.",
    ),
    "PLATFORM_REFUSED": (
        "`replicate` was called on Windows. Its processes need signals, file locks and sockets of Linux or macOS.",
        "Run it in WSL, or in a container. Windows can read the tables of the destination.",
    ),
    "PUBLICATION_INCOMPLETE": (
        "The publication omits inserts, updates, deletes or truncates; or a publication that `replicate` created "
        "sends partitions as separate tables.",
        "Run the statement in the error. `replicate` then reloads the tables, as it cannot know which changes are "
        "missing.",
    ),
    "PUBLICATION_NEEDED": (
        "The role may not create or change the publication, or a requested table cannot be in it.",
        "Let a superuser, or the owner of the tables, run the statements in the error, or the script of `logicalrep "
        "check --print-sql`.",
    ),
    "SKIP_REFUSED": (
        "A commit cannot be skipped: the table is not stopped at the commit, or its changes are no longer buffered.",
        "Pass the table and the LSN that `logicalrep status` shows, or reload the table with `logicalrep resync`.",
    ),
    "STORAGE_NOT_WRITABLE": (
        "The destination cannot be read or written, for example because a disk is full or a store is unreachable.",
        "The error quotes the reason. replicate retries, and resumes once the destination is writable again.",
    ),
    "TABLES_NOT_REGISTERED": (
        "Unity Catalog lacks the entries of some Delta tables, as it does not answer or refuses them. The rows of all "
        "tables are up to date.",
        "The error quotes the reasons. Once you have removed them, the next run registers the tables.",
    ),
    "TABLES_STOPPED": (
        "Some tables are stopped, or their next load is scheduled for later; the other tables are up to date.",
        "The error has each table's reason, and the command that reloads the table once you have removed the reason. "
        "A scheduled load needs no action: a later run performs it.",
    ),
    "TABLE_DAMAGED": (
        "A data file of a replicated table is missing or damaged, or another program changed rows.",
        "No action needed: replicate reloads the table. Other programs may run VACUUM and OPTIMIZE on the table, "
        "nothing else.",
    ),
    "TABLE_DIFFERS": (
        "A change does not fit the replicated table, for example because the row to change does not exist.",
        "No action needed: replicate reloads the table.",
    ),
    "TABLE_FAILED": (
        "The server could not read a table, for example because of a damaged page; or an unexpected error ended the "
        "table's replication. The other tables continue.",
        "Fix what the error quotes; the log has a traceback (`-v`). Then run `logicalrep resync` for the table.",
    ),
    "TABLE_LOG_DAMAGED": (
        "The log of a Delta table or the metadata of an Iceberg table is damaged: a required file in `_delta_log` or "
        "`metadata` is missing or unreadable.",
        "Restore the file; or remove the table's folder and its entry in the catalog. Then run `logicalrep resync` "
        "for the table.",
    ),
    "TABLE_NOT_CURRENT": (
        "At the requested time the table was loading, was stopped, or had no rows yet.",
        "Read this table alone, without a time; or request a time at which the table was up to date.",
    ),
    "TABLE_TRANSITION": (
        "A bug in logicalrep: a table was about to enter a phase that cannot follow its current phase.",
        "Report the error. Run `logicalrep resync` for the table.",
    ),
    "TABLE_UNDECIDED": (
        "`logicalrep verify` cannot decide whether a table is equal; the error has the reason.",
        "Let `logicalrep replicate` catch up, and run `verify` again.",
    ),
    "TABLE_UNKNOWN": (
        "The destination has no table of that name.",
        "The error has the nearest name, or all names. Write the table's name as in SQL.",
    ),
    "TASKS_FAILED": (
        "The engine of `replicate` could not run a task, for example because its processes exit repeatedly.",
        "The error quotes the engine. Check that the machine has enough memory and disk. Then restart the command: it "
        "resumes where it stopped.",
    ),
    "TIME_NOT_STORED": (
        "The destination has no versions for that time: the time is before `--keep` hours, or before the first batch.",
        "Request a later time; the error has the earliest time. A longer `--keep` applies from now on.",
    ),
    "VERIFY_IMPOSSIBLE": (
        "The destination has none of these tables.",
        "Pass the `--to` of `logicalrep replicate` to `logicalrep verify`, and name replicated tables.",
    ),
    "VERSION_GONE": (
        "The files of an old version of a table were removed: the version is older than `--keep`, or old versions "
        "took more than twenty times as much space as the table.",
        "Read a later version.",
    ),
}
