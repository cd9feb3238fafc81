"""Changes on disk equal those in memory, and their files are removed in every outcome."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logicalrep import Lsn, v1
from logicalrep.arrow.message_batch import message_batch_of
from logicalrep.arrow.packed_rows import PackedRows, rows_from
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.changes import Change, ChangeMessage
from logicalrep.transactions.relations import Relations, TableDescription
from logicalrep.transactions.spill import ChangeLog, SpillArea
from logicalrep.transactions.transaction import Transaction
from logicalrep_protocol.columnar import Session
from tests.transactions import wire
from tests.transactions.wire import STOP, begin, commit, feed, insert, message, relation, start, stream_commit

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are counted in /proc/self/fd")


def open_files(folder: Path) -> int:
    """Return the number of files in a folder, existing or deleted, that this process has open."""
    count = 0
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            count += str(folder) in os.readlink(entry)
    return count


@pytest.fixture
def table() -> TableDescription:
    relations = Relations()
    relations.describe(relation("id", "v"), None)
    description = relations.find(wire.TABLE, None)
    assert description is not None
    return description


def change(number: int, table: TableDescription | None) -> Change:
    messages = (
        insert(str(number), ""),
        wire.streamed_insert(7, str(number), None),
        message(b"\0\xff%d" % number, xid=7),
        message(b"%d" % number),
    )
    chosen = messages[number % len(messages)]
    return Change(number, Lsn(number), chosen, table if "insert" in type(chosen).__name__.lower() else None)


def told(log: ChangeLog) -> list[tuple[int, int, object, TableDescription | None]]:
    return [(change.ordinal, change.lsn, change.message, change.relation) for change in log]


def run_of(count: int, first: int, table: TableDescription | None) -> PackedRows:
    """Return rows of a stream, whose LSNs count up from a number."""
    messages = [(number, wire.streamed_insert(7, str(number), "").build()) for number in range(first, first + count)]
    rows = rows_from(message_batch_of(messages), 0, Session(version=2, streaming=True))
    assert rows is not None
    return rows.bound(lambda _: table)


def v1_bytes(message: ChangeMessage) -> bytes:
    """Return a message's bytes outside of streams."""
    data = message.build()
    return data[:1] + data[5:] if getattr(message, "xid", None) is not None else data


Steps = list[tuple[str, int]]


@pytest.mark.slow
@settings(deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["append", "extend", "append", "extend", "spill", "truncate"]), st.integers(0, 60)),
        max_size=30,
    ),
    block=st.sampled_from([1, 100, 1 << 20]),
)
def test_a_log_is_a_list_that_is_cut_and_spilled_at_any_place(steps: Steps, block: int) -> None:
    relations = Relations()
    relations.describe(relation("id", "v"), None)
    table = relations.find(wire.TABLE, None)
    expected: list[Change] = []
    log = ChangeLog()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("logicalrep.transactions.spill.BLOCK", block)
        for kind, number in steps:
            if kind == "append":
                for _ in range(number):
                    expected.append(change(len(expected), table))
                    log.append(expected[-1])
            elif kind == "extend" and number:
                rows = run_of(number, len(expected), table)
                for lsn, data, _ in rows:
                    row = v1.parse(data)
                    assert isinstance(row, v1.Insert)
                    expected.append(Change(len(expected), lsn, row, table))
                log.append(rows)
            elif kind == "spill":
                log.spill()
                assert log.memory == 0
            elif kind == "truncate":
                del expected[number:]
                log.truncate(min(number, len(log)))
            assert len(log) == len(expected)
        entries: list[tuple[Lsn, bytes, TableDescription | None]] = []
        for part in log.messages():
            entries += [part] if isinstance(part, tuple) else part
        assert entries == [(entry.lsn, v1_bytes(entry.message), entry.relation) for entry in expected]
        assert told(log) == [(entry.ordinal, entry.lsn, entry.message, entry.relation) for entry in expected]
        assert told(log) == told(log)
        log.truncate(0)
        assert (len(log), log.memory, log.spilled) == (0, 0, 0)
        log.close()


def test_all_together_stay_under_the_limit_and_the_largest_goes_to_disk(table: TableDescription) -> None:
    area = SpillArea(20_000, None)
    small, large = area.open(), area.open()
    for number in range(1000):
        area.append(large, change(number, table))
        if number % 100 == 0:
            area.append(small, change(number // 100, table))
        assert area.memory <= 20_000
        assert area.memory == small.memory + large.memory
    assert large.spilled
    assert not small.spilled
    assert (len(small), len(large)) == (10, 1000)
    area.discard(large)
    assert area.memory == small.memory
    area.close()
    assert area.memory == 0


def test_a_log_that_is_closed_says_so(table: TableDescription) -> None:
    for spilled in (False, True):
        log = ChangeLog()
        log.append(change(0, table))
        if spilled:
            log.spill()
        log.close()
        log.close()
        with pytest.raises(ValueError, match="the transaction was closed, which dropped its changes"):
            list(log)


def spilled_stream(directory: Path, changes: int = 50) -> Assembler:
    """Return an assembler that holds a streamed transaction on disk."""
    assembler = Assembler(memory_limit=0, directory=directory)
    feed(assembler, start(7, first=True), wire.streamed_relation(7, "id"))
    feed(assembler, *(wire.streamed_insert(7, str(number)) for number in range(changes)), STOP)
    return assembler


def committed(assembler: Assembler) -> Transaction:
    return wire.only_transaction(feed(assembler, stream_commit(7, 100)))


@needs_proc
class TestTheFileGoesAway:
    @pytest.fixture(autouse=True)
    def leaves_nothing(self, tmp_path: Path) -> Iterator[None]:
        yield
        assert open_files(tmp_path) == 0
        assert list(tmp_path.iterdir()) == []

    def test_it_has_no_name_while_it_is_there(self, tmp_path: Path) -> None:
        with spilled_stream(tmp_path):
            assert open_files(tmp_path) == 1
            assert list(tmp_path.iterdir()) == []

    def test_once_the_transaction_is_closed(self, tmp_path: Path) -> None:
        with spilled_stream(tmp_path) as assembler, committed(assembler) as transaction:
            assert wire.ids(transaction) == [str(number) for number in range(50)]
            assert open_files(tmp_path) == 1

    def test_once_nothing_refers_to_the_transaction(self, tmp_path: Path) -> None:
        transaction = committed(spilled_stream(tmp_path))
        assert open_files(tmp_path) == 1
        del transaction

    def test_once_a_reader_stops_in_the_middle(self, tmp_path: Path) -> None:
        changes = iter(committed(spilled_stream(tmp_path)).changes)
        next(changes)
        assert open_files(tmp_path) == 1
        del changes

    def test_when_it_is_rolled_back(self, tmp_path: Path) -> None:
        assembler = spilled_stream(tmp_path)
        feed(assembler, wire.stream_abort(7))
        assert open_files(tmp_path) == 0

    def test_when_it_starts_over(self, tmp_path: Path) -> None:
        with spilled_stream(tmp_path) as assembler:
            feed(assembler, start(7, first=True), wire.streamed_relation(7, "id"), STOP)
            assert open_files(tmp_path) == 0

    def test_when_the_connection_is_lost(self, tmp_path: Path) -> None:
        assembler = spilled_stream(tmp_path)
        feed(assembler, begin(8, 100), relation("id"), insert("1"))
        assert open_files(tmp_path) == 2
        assembler.reconnect()
        assert open_files(tmp_path) == 0
        assert assembler.memory == 0

    def test_when_the_assembler_is_closed(self, tmp_path: Path) -> None:
        assembler = spilled_stream(tmp_path)
        assembler.close()
        assert open_files(tmp_path) == 0

    def test_when_the_assembler_is_garbage(self, tmp_path: Path) -> None:
        gc.disable()
        try:
            assembler = spilled_stream(tmp_path)
            assert open_files(tmp_path) == 1
            del assembler
            assert open_files(tmp_path) == 0
        finally:
            gc.enable()

    def test_when_an_error_is_raised(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="outside"), spilled_stream(tmp_path) as assembler:
            feed(assembler, STOP)

    def test_when_a_held_transaction_is_rolled_back(self, tmp_path: Path) -> None:
        with spilled_stream(tmp_path) as assembler:
            feed(assembler, wire.stream_prepare(7, "gid", 100))
            assert open_files(tmp_path) == 1
            feed(assembler, wire.rollback_prepared(7, "gid", 100, 200))
            assert open_files(tmp_path) == 0

    @pytest.mark.slow
    @pytest.mark.parametrize("end", ["", "os._exit(0)", "os.kill(os.getpid(), 9)"])
    def test_when_the_process_ends(self, tmp_path: Path, end: str) -> None:
        program = (
            "import os, sys\nfrom pathlib import Path\n"
            "from tests.transactions.test_spill import open_files, spilled_stream\n"
            "folder = Path(sys.argv[1])\nassembler = spilled_stream(folder)\nassert open_files(folder) == 1\n" + end
        )
        subprocess.run([sys.executable, "-c", program, str(tmp_path)], cwd=Path(__file__).parents[2], check=False)


def test_a_full_disk_is_an_error_that_loses_nothing(tmp_path: Path) -> None:
    with Assembler(memory_limit=0, directory=tmp_path / "absent") as assembler:
        feed(assembler, begin(7, 100), relation("id"))
        with pytest.raises(FileNotFoundError):
            feed(assembler, insert("1"))
        assert assembler.memory > 0
        assert wire.ids(wire.only_transaction(feed(assembler, commit(100)))) == ["1"]


def test_what_is_cut_off_frees_its_memory_and_its_disk() -> None:
    with Assembler(memory_limit=0) as assembler:
        feed(assembler, start(7, first=True), wire.streamed_relation(7, "id"), wire.streamed_insert(7, "1"))
        log = assembler.streams[next(iter(assembler.streams))].log
        spilled = log.spilled
        feed(assembler, *(wire.streamed_insert(8, "2") for _ in range(100)), STOP)
        assert log.spilled > spilled
        feed(assembler, wire.stream_abort(7, 8))
        assert log.spilled == spilled
        assert log.file is not None
        assert os.fstat(log.file.fileno()).st_size == spilled


@pytest.mark.slow
def test_a_large_transaction_takes_no_more_memory_than_the_limit() -> None:
    value = "v" * 1000
    tracemalloc.start()
    try:
        with Assembler(memory_limit=500_000) as assembler:
            feed(assembler, start(7, first=True), wire.streamed_relation(7, "id", "v"))
            for number in range(10_000):
                assembler.feed(wire.streamed_insert(7, str(number), value + str(number)), Lsn(1))
            feed(assembler, STOP)
            with committed(assembler) as transaction:
                assert sum(1 for _ in transaction.changes) == 10_000
                assert transaction.changes.spilled > 9_000_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The limit, plus the data being written and read at the same time.
    assert peak < 500_000 + 4 * (1 << 20)
