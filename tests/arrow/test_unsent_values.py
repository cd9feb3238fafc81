"""Values that the server did not send: the feed in columns and the rows of `change_rows` name the same ones."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from logicalrep import Decoder, Lsn
from logicalrep.arrow import feed_form
from logicalrep.arrow.committing import Committing
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.change_feed import change_rows
from logicalrep_protocol import v1
from logicalrep_protocol.versions import AnyMessage
from tests.transactions.wire import TABLE, U, begin, commit, insert, relation, row

WITHOUT_OLD = v1.Update(relation_id=TABLE, old_kind=None, old=None, new=row("2", U))
WITH_KEY = v1.Update(relation_id=TABLE, old_kind="K", old=row("2", None), new=row("3", U))
WITH_OLD = v1.Update(relation_id=TABLE, old_kind="O", old=row("2", "whole"), new=row("3", U))
CASES: dict[str, Sequence[AnyMessage]] = {
    "an insert alone, as a row filter makes it of an update": [insert("1", U)],
    "inserts with and without the value": [insert("1", "sent"), insert("2", U), insert("3", None)],
    "an update alone": [WITHOUT_OLD],
    "an insert between updates": [WITHOUT_OLD, insert("1", U), WITH_KEY],
    "an insert and a whole old row": [insert("1", U), WITH_OLD],
}


@pytest.mark.parametrize("changes", CASES.values(), ids=CASES)
def test_a_value_that_was_not_sent_is_named_and_never_null(changes: Sequence[AnyMessage]) -> None:
    messages = [m.build() for m in (begin(7, 100), relation("id", "big"), *changes, commit(100))]
    with Assembler() as assembler:
        committing = Committing(feed_form(), assembler)
        committing.intake.connect(Decoder(1))
        [event] = committing.intake.take([(5, data) for data in messages])
        feed = [row for batch in committing.committed(event).batches for row in batch.to_pylist()]
    rows = list(change_rows([(Lsn(5), data) for data in messages], Decoder(1)))
    in_columns = [(row["op"], dict(row["after"]), row["unchanged"]) for row in feed]
    assert in_columns == [(row["op"], row["after"], row["unchanged"]) for row in rows]
    assert any(unchanged for _, _, unchanged in in_columns)
