"""What one run may hold in memory, how large its files become, and how often it does things."""

from __future__ import annotations

from dataclasses import dataclass, replace

LEAST_MEMORY = 80_000_000
"""The least bytes of `Limits.within`: with less, work of less than a megabyte would go to other processes."""
_SCALED = (
    "received_bytes",
    "waiting_bytes",
    "buffer_bytes",
    "in_process_bytes",
    "batch_bytes",
    "effect_bytes",
    "sent_bytes",
    "sent_at_once_bytes",
)
"""The limits that hold rows in the memory of a run's process, and the sizes of what it sends to others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a run; its storage carries them, also into the tasks of an engine.

    Names end with their unit: bytes, rows, files, seconds. What no unit ends is a number of what the name says.

    Example:
        >>> Limits(file_rows=1000).file_rows
        1000
    """

    # Receiving, and the batches of a run

    received_bytes: int = 64 << 20
    """The most bytes of received changes in memory; more are held in temporary files."""
    held_factor: int = 4
    """The factor from `received_bytes` to all that is received and not yet taken, in memory and in files."""
    round_seconds: float = 0.0
    """The least seconds between two rounds of few received messages; a run takes it from `every`."""
    waiting_bytes: int = 64 << 20
    """The bytes of changes that may wait for the catalog while more are taken."""
    tables_at_once: int = 32
    """The number of tables written at the same time: few jobs have their work, and their commits wait for disks."""
    batch_seconds: float = 0.1
    """The least seconds between the starts of two batches: each costs milliseconds for each table."""
    backlog_seconds: float = 60.0
    """The most seconds in which a backlog is gathered for one batch."""
    catalog_seconds: float = 5.0
    """The seconds between two refreshes of the server's catalog."""
    checkpoint_seconds: float = 5.0
    """The seconds between two checkpoints while nothing changes."""
    idle_checkpoint_seconds: float = 60.0
    """The seconds between two that are written only for the time at which the tables were up to date."""

    # Loads

    buffer_bytes: int = 64 << 20
    """The most bytes of a file of buffered changes, and of buffered changes that are applied at once."""
    range_bytes: int = 8 << 20
    """The bytes of a range of a table: the table is locked while one is read."""
    task_ranges: int = 8
    """The ranges that one task copies into one file."""
    uncompiled_bytes: int = 1 << 20
    """The most bytes of a table that are copied without compiled loops, while these are not there yet."""
    statement_keys: int = 20_000
    """The keys that one statement asks the server for."""
    keys_task_bytes: int = 256 << 20
    """About the bytes of files whose keys one task looks for on the server."""
    matched_bytes: int = 128 << 20
    """The bytes of files of old and new rows of which one task compares its share, once a table was reloaded."""
    load_snapshots: int = 2
    """The most groups of tables that are loaded at the same time: each has a slot and a snapshot."""
    snapshot_tables: int = 8
    """The most tables of one snapshot: it holds back the server's clean-up, and a load that is killed begins anew."""
    lock_seconds: float = 5.0
    """The longest wait for a lock on a table of the server."""
    large_table_bytes: int = 1_000_000_000
    """The bytes of a table's files above which its first load offers to mark rows."""
    load_tries: int = 8
    """The equal failures of a table's load, one after another, that stop the table."""
    loads_at_once: int = 2
    """The loads of a table for one reason that begin without a pause: a load costs the server too."""
    load_pause_seconds: float = 56.25
    """The seconds before the next load for that reason; each later pause is twice as long, up to an hour."""

    # Applying a batch

    in_process_bytes: int = 8 << 20
    """The most bytes of work for this process: larger work goes to other processes, or to Spark."""
    part_bytes: int = 32 << 20
    """About the bytes of files that one task rewrites, where several tasks rewrite a table's files."""
    marked_weight: int = 8
    """The bytes of files that count as one byte of work where few rows are marked: little of a file is read."""
    batch_bytes: int = 48 << 20
    """The most bytes of changes that a task reduces at once, unless one row has more."""
    combined_parts: int = 3
    """The factor by which parts of a batch are smaller if their effects are combined: each is held several times."""
    effect_bytes: int = 48 << 20
    """The most bytes of the effect of several parts: a table may be written anew for each effect."""
    small_file_bytes: int = 128 << 10
    """The most bytes of a file that is written anew for new rows, or that has no rows marked.

    It costs little more than a new file, or than marks. docs/explanation/performance.md has the cost of a larger one.
    """
    marked_share: int = 2
    """A batch writes a file anew once one row of so many is marked; upkeep does so earlier, beside batches."""
    returned_bytes: int = 8 << 20
    """The most bytes of rows that a task returns, to be written with the rows of other tasks."""

    # Engines

    sent_bytes: int = 96 << 20
    """The most bytes of an item that is sent: a row may have a gigabyte, and Spark sends at most 128 MiB at once."""
    sent_at_once_bytes: int = 128 << 20
    """The most bytes of items of several threads that are sent at the same time: here and elsewhere they are held."""
    jobs: int = 4
    """The most jobs of Spark for items of several threads at the same time."""
    job_items: int = 32
    """The most items of one of these jobs."""
    job_bytes: int = 64 << 20
    """The most bytes of items of one of these jobs, unless one item has more."""
    calls: int = 4
    """The most calls of a kind of work that run in this process at the same time."""
    local_calls: int = 2
    """The same where files are local: nothing is waited for, and more threads take turns more often than they work."""
    alive_seconds: float = 300.0
    """The seconds between two signs of life to Spark Connect, whose server ends a session that was idle for long."""

    # Files

    file_rows: int = 1 << 20
    """The most rows of a data file."""
    file_bytes: int = 128 << 20
    """About the most bytes of a data file's rows in memory."""
    row_read_bytes: int = 64 << 10
    """About the bytes that are read of a data file for one of few rows."""
    whole_file_bytes: int = 16 << 20
    """The most bytes of a file in a store that is read at once; parts of larger files are read one by one."""
    json_bytes: int = 256 << 20
    """The most bytes of a file of JSON below `_logicalrep/` that is read."""
    request_bytes: int = 4 << 20
    """The most bytes of a file with a request."""
    store_retries: int = 5
    """The retries of a request that an object store refuses; the caller waits for a store that is away for longer."""
    deleted_files: int = 200
    """The most files of old versions that are deleted in one step."""

    # Versions of tables, and of the destination

    retained_factor: int = 20
    """Files of old versions take at most this multiple of the bytes of the last version, and `retained_bytes`."""
    retained_bytes: int = 256 << 20
    """The bytes of files of old versions that stay beside a table of any size."""
    log_checkpoint_commits: int = 50
    """The commits of a Delta table between two checkpoints of its log."""
    inline_vector_bytes: int = 4 << 10
    """The most bytes of a vector of marked rows that is in the log of a Delta table itself."""
    metadata_versions: int = 10
    """The versions of an Iceberg table's metadata that stay."""
    upkeep_versions: int = 50
    """The versions of an Iceberg table's metadata after which upkeep is due."""
    snapshots: int = 100
    """The snapshots of an Iceberg table after which half of the older half go."""
    manifest_entries: int = 1000
    """The most entries of a manifest of an Iceberg table."""
    small_manifests: int = 8
    """The number of manifests that are not full which are merged."""
    past_state_seconds: float = 60.0
    """The seconds between two states of the destination that are stored for readers of the past."""

    # Indexes of keys

    indexed_rows: int = 500_000
    """The rows from which on a table has an index: reading fewer keys costs no more than looking them up."""
    indexed_rows_a_batch: int = 1 << 20
    """The most rows of files that get into an index after one batch, unless one file has more."""
    recent_entries: int = 1 << 16
    """The entries of an index in memory, of 16 bytes each, which become a file then."""
    read_entries: int = 1 << 18
    """About the entries that are in memory while files of an index are merged, and the most of a read of a lookup."""
    block_entries: int = 128
    """The entries of a block of an index's file; an index with other blocks is built anew."""

    # Upkeep

    merged_files: int = 8
    """The least number of files of a class of sizes that are merged."""
    merged_at_once: int = 16
    """The most files that are merged at once."""
    merged_share: int = 8
    """Upkeep writes a file anew once one row of so many is marked; docs/explanation/performance.md has the cost."""
    merged_bytes_a_second: int = 32 << 20
    """The most bytes of files that are merged in a second, in the mean."""
    merge_tries: int = 4
    """The merges for nothing, one after another, after which batches wait for the next one."""
    merge_pause_seconds: float = 5.0
    """The seconds from a merge that was for nothing to the next one."""

    # Comparisons by verify

    compared_rows: int = 1_000_000
    """The most rows of both sides that are held at once, unless a bucket has more."""
    compared_keys: int = 20_000
    """The most keys that are read again at once."""
    hashed_rows: int = 1 << 16
    """The most rows that are hashed at once, which needs several times their memory."""
    peeked_messages: int = 100_000
    """The most messages of a slot that are looked through."""

    @property
    def held_bytes(self) -> int:
        """The bytes received and not yet taken, in memory and in files, at which the receiver waits."""
        return self.held_factor * self.received_bytes

    # What a run may hold of rows in memory, in bytes. Python's objects and Java's heap come on top.

    @property
    def receiver_memory(self) -> int:
        """The changes of open transactions, and the received changes that no batch has taken yet."""
        return 2 * self.received_bytes

    @property
    def waiting_memory(self) -> int:
        """The changes that wait for the catalog."""
        return self.waiting_bytes

    @property
    def batch_memory(self) -> int:
        """The items of batches on their way to other processes, and the effect of several parts of one batch."""
        return self.sent_at_once_bytes + 2 * self.effect_bytes

    @property
    def calls_memory(self) -> int:
        """The work that this process does itself: of batches, loads and merges, so many calls of each."""
        return 3 * self.calls * self.in_process_bytes

    @property
    def buffer_memory(self) -> int:
        """The buffered changes of one loaded table that are applied at once."""
        return self.buffer_bytes

    @property
    def memory(self) -> int:
        """All parts of the process of a run."""
        return self.receiver_memory + self.waiting_memory + self.batch_memory + self.calls_memory + self.buffer_memory

    def within(self, nbytes: int) -> Limits:
        """Return limits whose `memory` is at most so many bytes, from `LEAST_MEMORY` on; no limit gets larger.

        Parts keep their proportions, so that an item that fitted in a part still does.
        """
        share = min(nbytes, self.memory)
        return replace(self, **{name: getattr(self, name) * share // self.memory for name in _SCALED})

    @property
    def task_memory(self) -> int:
        """A task in another process: the rows of a data file as they are read, and as they are written anew."""
        return 2 * self.file_bytes
