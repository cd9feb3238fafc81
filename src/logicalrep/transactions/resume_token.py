"""How far a reader came: what it has to keep so that after a restart nothing is lost and nothing comes twice.

A server sends again what it was not told to be safe, from its beginning: it compares the start of each commit record,
and of each prepare record, with the position that was acknowledged. So

* the end LSN of the last transaction that was handed on, and made safe, may be acknowledged. Streamed transactions that
  are still open do not hold it back: their commit comes later, and the server then streams them again as a whole.
* A prepared transaction that is held here until its decision does hold it back, to where its prepare record starts:
  past that, the server would send the decision alone. What was handed on since comes again then, and is left out
  because it lies before `delivered`.
* A keepalive's LSN may be acknowledged while no transaction is half received; on a slot without changes nothing else
  lets the server remove old WAL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from logicalrep_runtime.scalars import Lsn

_START = Lsn(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeToken:
    """What to keep together with what was handed on, and to give to the Assembler that goes on from there."""

    delivered: Lsn = _START
    """Everything that took effect before it was handed on."""
    acknowledged: Lsn = _START
    """What may be acknowledged to the server, and where to start from; not after `delivered`."""
    prepared: Mapping[str, Lsn] = field(default_factory=dict)
    """The prepared transactions that were handed on as such and are undecided: where each ended (end_lsn), by GID.

    A GID may be used again once it is decided, so it takes both to recognise a transaction.
    """
