"""Changes by table: many small transactions become few batches for each table, in their order."""

from __future__ import annotations

import pyarrow as pa

from logicalrep.arrow.changes.change_batch import NEW, ChangeBatch, joined
from logicalrep.arrow.changes.sent_relation import SentRelation
from logicalrep.arrow.changes.table_changes import TableChanges, by_table, in_parts, together
from tests.pipeline.changes import change_batch, relation

WHOLE = 1 << 40
"""More bytes than all changes have."""


def changes(first: int, count: int, oid: int = 1, *names: str) -> TableChanges:
    """Return inserts of commits one after another."""
    rows = [
        {"op": "insert", "after": {"id": str(position)}, "commit_lsn": position, "xid": position}
        for position in range(count)
    ]
    moved = [row | {"commit_lsn": first + number} for number, row in enumerate(rows)]
    return TableChanges(batches=[change_batch(relation(("id", *names), oid=oid), moved)])


def sent(lsn: int, ordinal: int = 0) -> SentRelation:
    return SentRelation.of(relation(("id",)), commit_lsn=lsn, ordinal=ordinal, xid=lsn)


def first_address(batch: ChangeBatch) -> int:
    return batch.rows.column("ordinal").buffers()[1].address


def test_small_batches_are_joined() -> None:
    changes_by_oid = by_table(changes(10 * number, 3, oid=1 + number % 2) for number in range(1000))
    assert [*changes_by_oid] == [1, 2]
    [[batch]] = in_parts(changes_by_oid[1].batches, WHOLE)
    lsns = [lsn for number in range(0, 1000, 2) for lsn in range(10 * number, 10 * number + 3)]
    assert batch.lsns.tolist() == changes_by_oid[1].lsns.tolist() == lsns


def test_large_batches_are_not_copied() -> None:
    large = [changes(0, 10_000), changes(10_000, 10_000)]
    assert all(table_changes.nbytes >= 256 << 10 for table_changes in large)
    [part] = in_parts(by_table(large)[1].batches, WHOLE)
    assert [first_address(batch) for batch in part] == [
        first_address(table_changes.batches[0]) for table_changes in large
    ]


def test_batches_under_other_relations_stay_apart() -> None:
    parts = [changes(0, 2), changes(2, 2, 1, "v"), changes(4, 2, 1, "v"), changes(6, 2)]
    [part] = in_parts(together(parts).batches, WHOLE)
    assert [batch.num_rows for batch in part] == [2, 4, 2]


def test_no_changes() -> None:
    assert by_table([]) == {}
    assert (TableChanges().num_rows, TableChanges().first_lsn, TableChanges().commit_timestamp) == (0, None, None)


def test_commits_are_cut_out_with_their_messages() -> None:
    whole = together([TableChanges([sent(15), sent(5)]), changes(0, 10), changes(10, 10)])
    assert [relation.commit_lsn for relation in whole.relations] == [5, 15]
    middle = whole.between(8, 12)
    assert (middle.lsns.tolist(), middle.relations, middle.first_lsn) == ([8, 9, 10, 11, 12], [], 8)
    rest = whole.between(first=13)
    assert (rest.num_rows, [relation.xid for relation in rest.relations], 15 in rest.xids) == (7, [15], True)
    assert TableChanges([sent(5)]).between(6).first_lsn is None


def test_changes_of_unreadable_transactions_are_left_out() -> None:
    rows = [{"op": op, "after": {"id": "1"}, "commit_lsn": lsn} for lsn, op in enumerate(["insert", "unreadable"])]
    readable = TableChanges(batches=[change_batch(relation(("id",)), rows)]).readable()
    assert readable.lsns.tolist() == [0]


def test_joined_batches_have_all_rows() -> None:
    parts = [batch for number in range(3) for batch in changes(number, 1).batches]
    whole: ChangeBatch = joined(parts)
    assert pa.Table.from_batches([whole.rows]) == pa.Table.from_batches([part.rows for part in parts]).combine_chunks()
    assert whole.texts(NEW)[0].to_pylist() == ["0", "0", "0"]
