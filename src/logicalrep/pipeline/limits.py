"""The limits of a run: its memory, the sizes of its files, and its intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace

from logicalrep.transactions.frames import GATHERING_SECONDS, ROUND_SECONDS

LEAST_MEMORY = 80_000_000
"""The least bytes of `Limits.within`: with less, even work below a megabyte would go to other processes."""
_SCALED = (
    "received_bytes",
    "waiting_bytes",
    "buffer_bytes",
    "in_process_bytes",
    "key_bytes",
    "batch_bytes",
    "effect_bytes",
    "sent_bytes",
    "sent_at_once_bytes",
)
"""The limits of rows in the memory of a run's process, and of the items that it sends to other processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a run; its storage passes them on, also to the tasks of an engine.

    Names end with their unit: bytes, rows, files, seconds. A name without a unit is a count.

    Example:
        >>> Limits(file_rows=1000).file_rows
        1000
    """

    # Receiving, and the batches of a run

    received_bytes: int = 64 << 20
    """The most bytes of received changes in memory; more are held in temporary files."""
    held_factor: int = 4
    """Total limit of received changes that are not taken (memory and files), as a multiple of `received_bytes`."""
    round_seconds: float = ROUND_SECONDS
    """The least seconds between two rounds of few received messages: decoding a round costs milliseconds."""
    gathering_seconds: float = GATHERING_SECONDS
    """The most seconds that received messages wait to be decoded with later ones, while no batch is due."""
    waiting_bytes: int = 64 << 20
    """The bytes of changes that may wait for the catalog while more are taken."""
    tables_at_once: int = 32
    """The number of tables written at the same time: few jobs have their work, and their commits wait for disks."""
    batch_seconds: float = 0.1
    """The least seconds between the starts of two batches: each costs milliseconds for each table."""
    costly_batch_seconds: float = 0.3
    """The same for batches that cost much processor time, however few changes they have."""
    batch_share: int = 16
    """The share of a core that batches may take before the seconds between them grow, as its divisor."""
    backlog_seconds: float = 60.0
    """The most seconds that a batch gathers a backlog."""
    catalog_seconds: float = 5.0
    """The seconds between two refreshes of the server's catalog."""
    failing_seconds: float = 30.0
    """The seconds of failed writes to the destination after which a person is called."""
    checkpoint_seconds: float = 5.0
    """The seconds between two checkpoints while nothing changes."""
    idle_checkpoint_seconds: float = 60.0
    """The seconds between two checkpoints that only store the time at which the tables were up to date."""

    # Loads

    buffer_bytes: int = 64 << 20
    """The most bytes of a file of buffered changes, and of buffered changes that are applied at once."""
    range_bytes: int = 8 << 20
    """The bytes of a range of a table: the table is locked while one is read."""
    task_bytes: int = 96 << 20
    """The bytes of ranges that one task copies: they fill a file, so that upkeep does not merge the files of a load."""
    statement_keys: int = 20_000
    """The keys in one statement to the server."""
    keys_task_bytes: int = 256 << 20
    """About the bytes of files whose keys one task looks for on the server."""
    matched_bytes: int = 128 << 20
    """The bytes of files of old and new rows for each task that compares a share of them after a reload."""
    load_snapshots: int = 2
    """The most groups of tables that load at the same time: each has a slot and a snapshot."""
    snapshot_tables: int = 8
    """The most tables of one snapshot: it delays the server's vacuum, and a killed load starts over."""
    lock_seconds: float = 5.0
    """The longest wait for a lock on a table of the server."""
    large_table_bytes: int = 1_000_000_000
    """The bytes of a table's files above which its first load suggests merge-on-read."""
    load_tries: int = 8
    """The consecutive equal failures of a table's load that stop the table."""
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
    """The divisor of the size of a batch's parts if their effects are combined: each part is held several times."""
    effect_bytes: int = 48 << 20
    """The most bytes of the effect of several parts: a table may be rewritten for each effect."""
    small_file_bytes: int = 128 << 10
    """The most bytes of a file that is rewritten for new rows, or instead of marking rows.

    Rewriting it costs little more than a new file, or marks. docs/explanation/performance.md has larger files' costs.
    """
    marked_share: int = 2
    """A batch rewrites a file once one of so many rows is marked; upkeep rewrites it earlier, beside batches."""
    returned_bytes: int = 8 << 20
    """The most bytes of rows that a task returns, to be written with the rows of other tasks."""

    key_bytes: int = 32 << 20
    """The most bytes of keys of data files in memory, of 8 bytes each: batches that mark rows find the rows by them."""
    key_seconds: float = 60.0
    """The seconds since its last lookup after which a file's keys give way to the keys of other files."""

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
    """`calls` with local files: nothing waits for a store, and more threads would only compete."""
    alive_seconds: float = 300.0
    """The seconds between two keepalives to Spark Connect, whose server ends idle sessions."""

    # Files

    file_rows: int = 1 << 20
    """The most rows of a data file."""
    file_bytes: int = 128 << 20
    """About the most bytes of a data file's rows in memory."""
    row_read_bytes: int = 64 << 10
    """About the bytes read from a data file for one of few rows."""
    whole_file_bytes: int = 16 << 20
    """The most bytes of a file in a store that is read whole; larger files are read in parts."""
    json_bytes: int = 256 << 20
    """The most bytes of a file of JSON below `_logicalrep/` that is read."""
    request_bytes: int = 4 << 20
    """The most bytes of a file with a request."""
    store_retries: int = 5
    """The retries of a refused request to an object store; the caller waits longer for a store that is away."""
    deleted_files: int = 200
    """The most files of old versions that are deleted in one step."""

    # Versions of tables, and of the destination

    retained_factor: int = 20
    """Files of old versions take at most this multiple of the bytes of the last version, and `retained_bytes`."""
    retained_bytes: int = 256 << 20
    """The bytes of files of old versions that stay beside a table of any size."""
    log_checkpoint_commits: int = 50
    """The commits of a Delta table between two checkpoints of its log."""
    metadata_versions: int = 10
    """The versions of an Iceberg table's metadata that stay."""
    metadata_seconds: float = 60.0
    """The seconds for which an Iceberg table's metadata stays after the next version: a reader may have found it."""
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
    """The least rows of a table with an index: reading fewer keys costs no more than an index lookup."""
    indexed_rows_a_batch: int = 1 << 20
    """The most rows of files that are indexed after one batch, unless one file has more."""
    recent_entries: int = 1 << 16
    """The entries of an index in memory, of 16 bytes each, before they are written to a file."""
    read_entries: int = 1 << 18
    """About the entries that are in memory while files of an index are merged, and the most of a read of a lookup."""
    block_entries: int = 128
    """The entries of a block of an index's file; an index with other blocks is rebuilt."""

    # Catalogs

    catalog_connect_seconds: float = 10.0
    """The longest wait for a connection to a catalog."""
    catalog_answer_seconds: float = 60.0
    """The longest wait for an answer of a catalog, or of its token server."""
    registration_seconds: float = 30.0
    """The seconds after which replicate tries again to register tables in Unity Catalog."""

    # Upkeep

    checked_tables: int = 32
    """The most tables that are checked for upkeep at once: the loop does it many times a second."""
    upkeep_seconds: float = 0.05
    """The seconds from which the loop does no further table's upkeep at once, while it has no changes."""
    merged_files: int = 8
    """The least number of files of a class of sizes that are merged."""
    merged_at_once: int = 16
    """The most files that are merged at once."""
    merged_share: int = 8
    """Upkeep rewrites a file once one of so many rows is marked; docs/explanation/performance.md has the cost."""
    merged_bytes_a_second: int = 32 << 20
    """The most bytes of files merged a second, on average."""
    merge_tries: int = 4
    """The consecutive failed merges after which batches wait for the next merge."""
    merge_pause_seconds: float = 5.0
    """The seconds from a failed merge to the next one."""

    # Comparisons by verify

    compared_rows: int = 1_000_000
    """The most rows of both sides that are held at once, unless a bucket has more."""
    compared_keys: int = 20_000
    """The most keys that are read again at once."""
    hashed_rows: int = 1 << 16
    """The most rows that are hashed at once, which needs several times their memory."""
    peeked_messages: int = 100_000
    """The most messages of a slot that are scanned."""

    @property
    def held_bytes(self) -> int:
        """The bytes of received changes that are not taken, in memory and files, at which the receiver waits."""
        return self.held_factor * self.received_bytes

    def batch_interval(self, processor_seconds: float) -> float:
        """Return the least seconds from the start of a batch to the start of the next, for its processor seconds.

        Example:
            >>> Limits().batch_interval(0.01)
            0.16
        """
        return min(max(self.batch_share * processor_seconds, self.batch_seconds), self.costly_batch_seconds)

    # Limits of rows in memory, in bytes, in addition to Python's objects and Java's heap.

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
        """The work in this process: `calls` calls each of batches, loads and merges."""
        return 3 * self.calls * self.in_process_bytes

    @property
    def key_memory(self) -> int:
        """The keys of data files that batches search."""
        return self.key_bytes

    @property
    def buffer_memory(self) -> int:
        """The buffered changes of one loaded table that are applied at once."""
        return self.buffer_bytes

    @property
    def memory(self) -> int:
        """The sum for a run's process."""
        batches = self.batch_memory + self.calls_memory + self.key_memory
        return self.receiver_memory + self.waiting_memory + batches + self.buffer_memory

    def within(self, nbytes: int) -> Limits:
        """Return limits whose `memory` is at most `nbytes` bytes, from `LEAST_MEMORY` on; no limit grows.

        Limits keep their proportions, so that an item still fits in its part.
        """
        share = min(nbytes, self.memory)
        return replace(self, **{name: getattr(self, name) * share // self.memory for name in _SCALED})

    @property
    def task_memory(self) -> int:
        """The memory of a task in another process: the rows of a data file as read, and as rewritten."""
        return 2 * self.file_bytes
