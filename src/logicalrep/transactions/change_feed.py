"""The change feed: one row a change, the same names wherever changes are shown or stored.

`(commit_lsn, ordinal)` orders all of it. A row is a JSON object:

* `op`: insert, update, delete, truncate, message;
* `schema`, `table`, `relation_id`: the table; null for a message;
* `before`: the old row, an object by column name: all of it with REPLICA IDENTITY FULL, else the columns of the key
  alone. Null where the server sent none, as for an update that left the key as it was;
* `after`: the new row; of a message an object with its `prefix` and `content`;
* `key`: the names of the columns that identify a row, as the server flags them: with FULL all of them, with NOTHING
  none. So this is the replica identity and not always the primary key;
* `unchanged`: the names of the columns that keep the value they have, which was stored out of line and not sent; they
  are not in `after`;
* `lsn`: the position that came with the change;
* `commit_lsn`, `commit_timestamp`, `xid`, `ordinal`, `origin`, `gid`: the transaction, and the change's number in it.
  `xid` is the top-level transaction's. All are null for a message that belongs to no transaction; the first two for a
  transaction that is prepared and not decided.

An LSN is text as `16/B374D848`, a time ISO 8601 in UTC. A value is text as the server sent it, null for NULL, and
`{"base64": ...}` where it came in binary format or is no text in the session's encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.changes import Change, old_columns, resolved
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.table_names import name_parts
from logicalrep.transactions.tags import BINARY, UNCHANGED
from logicalrep.transactions.transaction import (
    Decision,
    Event,
    NonTransactionalMessage,
    PreparedTransaction,
    Transaction,
)
from logicalrep.values.json_values import json_value
from logicalrep_protocol.decoder import Decoder
from logicalrep_protocol.v1 import TupleData
from logicalrep_protocol.versions import Delete, Insert, Message, Update
from logicalrep_runtime.scalars import Lsn


def events(
    messages: Iterable[tuple[Lsn, bytes]], decoder: Decoder, assembler: Assembler | None = None
) -> Iterator[Event]:
    """What an assembler hands on of a session's messages, each of which comes with its position.

    Without an assembler, prepared transactions are held until they are decided. Raises DecodeError and
    TransactionError.
    """
    if assembler is not None:
        for lsn, data in messages:
            yield from assembler.feed(decoder.decode(data), lsn)
        return
    with Assembler() as own:
        yield from events(messages, decoder, own)


def change_rows(
    messages: Iterable[tuple[Lsn, bytes]],
    decoder: Decoder,
    *,
    table: str | None = None,
    assembler: Assembler | None = None,
    on_decision: Callable[[Decision], None] | None = None,
) -> Iterator[dict[str, Any]]:
    """The committed changes of a session's messages as rows of the change feed, ready for json.dumps.

    `table`: only this one, as `schema.table` or `table`, written as in SQL; then no logical messages either.
    `on_decision`: called where a prepared transaction is decided whose changes are not at hand. Without it, the commit
    of one whose changes came before the reading began is a TransactionError, as rows would be missing.
    """
    wanted = None if table is None else name_parts(table)
    for event in events(messages, decoder, assembler):
        if isinstance(event, Transaction | PreparedTransaction):
            with event:
                for change in event.changes:
                    if wanted is None or (change.relation is not None and is_named(change.relation, wanted)):
                        yield change_row(change, event, encoding=decoder.encoding)
        elif isinstance(event, NonTransactionalMessage):
            if table is None:
                yield message_row(event, encoding=decoder.encoding)
        elif on_decision is not None:
            on_decision(event)
        elif event.error is not None:
            raise event.error


def is_named(relation: TableDescription, parts: tuple[str, ...]) -> bool:
    """Whether a table's name is this, behind its schema's or without."""
    return parts == relation.table[-len(parts) :]


def change_row(change: Change, transaction: Transaction | PreparedTransaction, *, encoding: str) -> dict[str, Any]:
    """A change as a row of the feed; `encoding` is the session's client_encoding as a Python codec."""
    relation = change.relation
    before, after, unchanged = _rows(change, relation, encoding)
    committed = transaction if isinstance(transaction, Transaction) else None
    return {
        "op": change.op,
        "schema": None if relation is None else relation.schema,
        "table": None if relation is None else relation.name,
        "relation_id": None if relation is None else relation.relation_id,
        "before": before,
        "after": after,
        "key": list(change.key),
        "unchanged": unchanged,
        "lsn": str(change.lsn),
        "commit_lsn": None if committed is None else str(committed.commit_lsn),
        "commit_timestamp": None if committed is None else str(committed.commit_timestamp),
        "xid": transaction.xid,
        "ordinal": change.ordinal,
        "origin": transaction.origin,
        "gid": transaction.gid,
    }


def message_row(event: NonTransactionalMessage, *, encoding: str) -> dict[str, Any]:
    """A message that belongs to no transaction as a row of the feed."""
    nothing = ("schema", "table", "relation_id", "before")
    of_no_transaction = ("commit_lsn", "commit_timestamp", "xid", "ordinal", "origin", "gid")
    return {
        "op": "message",
        **dict.fromkeys(nothing),
        "after": _message(event.message, encoding),
        "key": [],
        "unchanged": [],
        "lsn": str(event.lsn),
        **dict.fromkeys(of_no_transaction),
    }


def _rows(
    change: Change, relation: TableDescription | None, encoding: str
) -> tuple[dict[str, Any] | None, dict[str, Any] | None, list[str]]:
    message = change.message
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    unchanged: list[str] = []
    if isinstance(message, Message):
        return None, _message(message, encoding), unchanged
    assert relation is not None
    names = relation.names
    if isinstance(message, Update | Delete) and message.old is not None:
        old = message.old
        before = {
            names[at]: json_value(old.values[at], encoding, binary=old.kinds[at] == BINARY)
            for at in old_columns(relation, message)
        }
    if isinstance(message, Insert | Update):
        new: TupleData = resolved(message)
        after = {}
        for name, kind, value in zip(names, new.kinds, new.values, strict=True):
            if kind == UNCHANGED:
                unchanged.append(name)
            else:
                after[name] = json_value(value, encoding, binary=kind == BINARY)
    return before, after, unchanged


def _message(message: Message, encoding: str) -> dict[str, Any]:
    return {"prefix": message.prefix, "content": json_value(message.content, encoding)}
