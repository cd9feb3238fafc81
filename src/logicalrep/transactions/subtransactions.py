"""The first appearance of each subtransaction of a streamed transaction, at which its abort cuts the transaction.

A transaction may have millions of subtransactions, one for each exception block that a function entered, so each takes
only a few bytes here.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left

from logicalrep_runtime.scalars import TransactionId


class Subtransactions:
    """The subtransactions of one transaction by id, with the number of changes and Relations before each appeared."""

    __slots__ = ("_changes", "_in_order", "_last", "_offsets", "_relations", "_xid")

    def __init__(self, xid: TransactionId) -> None:
        self._xid = xid
        self._last = xid
        # Sorted by the offset of the subtransaction's id from the top-level transaction's, which precedes all of them.
        self._offsets = array("I")
        self._changes = array("Q")
        self._relations = array("I")
        # Whether they appeared in the order of their ids, as nearly always: then those after one lie within it.
        self._in_order = True

    def __len__(self) -> int:
        return len(self._offsets)

    def appear(self, subxid: TransactionId, changes: int, relations: int) -> None:
        """Note a message's xid, with the number of changes and Relations that the transaction had before it."""
        if subxid == self._last:
            return
        self._last = subxid
        if subxid == self._xid:
            return
        offset = self._offset(subxid)
        index = bisect_left(self._offsets, offset)
        if index < len(self._offsets):
            if self._offsets[index] == offset:
                return
            self._in_order = False
        self._offsets.insert(index, offset)
        self._changes.insert(index, changes)
        self._relations.insert(index, relations)

    def abort(self, subxid: TransactionId) -> tuple[int, int] | None:
        """Forget a subtransaction and all that appeared after it.

        Returns the number of changes and Relations before it; None for one that never appeared.
        """
        offset = self._offset(subxid)
        index = bisect_left(self._offsets, offset)
        if index == len(self._offsets) or self._offsets[index] != offset:
            return None
        start = self._changes[index], self._relations[index]
        self._last = self._xid
        if self._in_order:
            del self._offsets[index:], self._changes[index:], self._relations[index:]
            return start
        remaining = [at for at in range(len(self._offsets)) if (self._changes[at], self._relations[at]) < start]
        self._offsets = array("I", (self._offsets[at] for at in remaining))
        self._changes = array("Q", (self._changes[at] for at in remaining))
        self._relations = array("I", (self._relations[at] for at in remaining))
        return start

    def _offset(self, subxid: TransactionId) -> int:
        return (subxid - self._xid) & 0xFFFFFFFF
