"""The resume token: a reader's position, which it stores so that a restart neither loses nor repeats a transaction.

A server sends unacknowledged transactions again from their start: it compares the start of each commit record, and
of each prepare record, with the acknowledged position. Therefore:

* The end LSN of the last transaction that was delivered and stored may be acknowledged. Open streamed transactions
  do not hold it back: they commit later, and the server then streams them again as a whole.
* A prepared transaction that the assembler holds until its decision holds the position back to the start of its
  prepare record: after that, the server would send only the decision. The server then sends later transactions again;
  the assembler omits them, as they are before `delivered`.
* A keepalive's LSN may be acknowledged while no transaction is partly received; on a slot without changes nothing
  else lets the server remove old WAL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from logicalrep_runtime.scalars import Lsn

_START = Lsn(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeToken:
    """A reader's position: store it together with the delivered changes, and pass it as `after` to resume.

    Example:
        >>> token = assembler.position
        >>> resumed = Assembler(after=token)
    """

    delivered: Lsn = _START
    """The LSN before which every transaction was delivered."""
    acknowledged: Lsn = _START
    """The LSN to acknowledge and to start from; not after `delivered`."""
    prepared: Mapping[str, Lsn] = field(default_factory=dict)
    """The end LSNs of the delivered, undecided prepared transactions by GID.

    A GID may be reused after the decision, so only both together identify a transaction.
    """
