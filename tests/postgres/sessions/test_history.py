"""What refutes a reader's history, without a server; tests/pipeline/test_server_history.py has servers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.server import query_wal_head
from logicalrep.postgres.sessions.commit_log import CommitId, CommitLog
from logicalrep.postgres.sessions.history_check import ResentCommits
from logicalrep.postgres.sessions.replication import Replication
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.errors import LostPositionError
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.intake import Intake
from logicalrep.transactions.resume_token import ResumeToken
from logicalrep.transactions.transaction import CommitColumns
from logicalrep_protocol import v1
from logicalrep_runtime.scalars import UNIX_EPOCH, Lsn, Oid, TimestampTz, TransactionId
from tests.postgres.servers import Database

LAST = CommitId(Lsn(200), 7, UNIX_EPOCH + 70)
NONE = CommitId.none_since(Lsn(200))
POSITION = Lsn(300)


def sent(*commits: tuple[int, int, int], empty: Sequence[int] = ()) -> list[tuple[int, bytes]]:
    """Return the messages of commits: the LSN, the transaction and the time of each; `empty` have no changes."""
    truncate = v1.Truncate(options=0, relation_ids=(Oid(1),)).build()
    messages = []
    for lsn, xid, time in commits:
        begin = v1.Begin(final_lsn=Lsn(lsn), commit_timestamp=TimestampTz(time), xid=TransactionId(xid))
        end = v1.Commit(commit_lsn=Lsn(lsn), end_lsn=Lsn(lsn + 8), commit_timestamp=TimestampTz(time))
        messages += [begin.build(), *([] if lsn in empty else [truncate]), end.build()]
    return [(0, message) for message in messages]


@pytest.mark.parametrize(
    ("last", "start", "commits", "refuted"),
    [
        # The same history: the last commit comes again, or the slot is past it, and none comes behind it.
        (LAST, 100, [(200, 7, 70)], ""),
        (LAST, 100, [(120, 3, 30), (200, 7, 70), (300, 9, 90)], ""),
        (LAST, 201, [(400, 9, 90)], ""),
        (NONE, 100, [], ""),
        (NONE, 100, [(120, 3, 30)], ""),
        # Another one.
        (LAST, 100, [], "does not have that commit"),
        (LAST, 200, [(300, 9, 90)], "does not have that commit"),
        (LAST, 100, [(192, 7, 70)], "does not have that commit"),
        (LAST, 100, [(200, 8, 70)], "has not received"),
        (LAST, 100, [(200, 7, 71)], "has not received"),
        (LAST, 100, [(200, 7, 70), (240, 8, 80)], "has not received"),
        (LAST, 201, [(240, 8, 80)], "has not received"),
        (NONE, 100, [(200, 7, 70)], "has not received"),
    ],
)
def test_commits_that_are_sent_again(
    last: CommitId, start: int, commits: list[tuple[int, int, int]], refuted: str
) -> None:
    check = ResentCommits(last, position=POSITION, start=Lsn(start), judges_unknown=True)

    def take() -> None:
        is_past = [check.take([message]) for message in sent(*commits)]
        assert any(is_past) == any(lsn >= POSITION for lsn, _, _ in commits)
        check.finish()

    if not refuted:
        take()
        return
    with pytest.raises(LostPositionError, match=rf"\[WAL_DIVERGED\].*{refuted}.*restored to an earlier state"):
        take()


def test_transactions_without_changes_are_not_compared() -> None:
    """Servers before PostgreSQL 15 send them, and a reader does not keep them as evidence."""
    check = ResentCommits(LAST, position=POSITION, start=Lsn(100), judges_unknown=True)
    assert not check.take(sent((200, 7, 70), (240, 8, 80), empty=[240]))
    check.finish()


def test_a_session_that_left_out_commits_refutes_nothing() -> None:
    check = ResentCommits(LAST, position=POSITION, start=Lsn(100), judges_unknown=False)
    check.take(sent((200, 7, 70), (240, 8, 80)))
    check.finish()
    with pytest.raises(LostPositionError):
        ResentCommits(LAST, position=POSITION, start=Lsn(100), judges_unknown=False).take(sent((200, 9, 70)))


def test_the_last_commit_before_a_position() -> None:
    log = CommitLog()
    assert (log.last, log.last_before(Lsn(50))) == (None, None)
    log.begin(Lsn(50))
    log.begin(Lsn(60))
    assert log.last == CommitId.none_since(Lsn(50))
    log.add(CommitColumns())
    log.add(CommitColumns([100, 200], [5, 7], [1, 2]))
    high = Lsn((1 << 64) - 8)
    log.add(CommitColumns([high], [9], [3]))
    last = [CommitId.none_since(Lsn(50)), CommitId(Lsn(100), 5, 1), CommitId(Lsn(200), 7, 2), CommitId(high, 9, 3)]
    expected = {Lsn(100): last[0], Lsn(101): last[1], Lsn(200): last[1], Lsn(201): last[2], high: last[2]}
    assert {lsn: log.last_before(lsn) for lsn in expected} == expected
    assert log.last == last[3]
    log.forget_before(Lsn(200))
    assert log.last_before(Lsn(200)) == last[1]
    log.forget_before(Lsn(201))
    assert log.last_before(Lsn(201)) == last[2]
    assert log.last == last[3]


def test_commits_before_the_position_of_another_process_are_not_judged(db18: Database) -> None:
    """The slot is behind that position, which an earlier process has stored."""
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)", "CREATE PUBLICATION p FOR ALL TABLES")
    create_slot(db18.connection, "s")
    db18.execute("INSERT INTO t VALUES (1)")
    stored = query_wal_head(db18.connection)
    options = PluginOptions(publication_names=("p",), proto_version=1)
    with Assembler(after=ResumeToken(delivered=stored)) as assembler:
        replication = Replication(db18.settings, "s", options, Intake(assembler))
        for events in replication.rounds(lambda: replication.received >= stored):
            assert list(events) == []
        history = replication.history_before(stored)
        replication.close()
    assert history is not None
    assert history.last == CommitId.none_since(stored)
    assert (history.slot_began, history.origin) == (Lsn(0), None)
