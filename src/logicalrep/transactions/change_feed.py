"""The change feed: one row for each change, with the same names wherever changes are shown or stored.

`(commit_lsn, ordinal)` orders the rows. A row is a JSON object:

* `op`: insert, update, delete, truncate or message;
* `schema`, `table`, `relation_id`: the table; null for a message;
* `before`: the old row as an object by column name: all columns with REPLICA IDENTITY FULL, else the key's columns.
  Null if the server sent no old row, as for an update that left the key unchanged;
* `after`: the new row; for a message an object with its `prefix` and `content`;
* `key`: the names of the columns that identify a row, as the server flags them: all with FULL, none with NOTHING.
  This is the replica identity, which is not always the primary key;
* `unchanged`: the names of the columns whose values are stored out of line, did not change and were not sent; they
  are not in `after`;
* `lsn`: the LSN of the change's message;
* `commit_lsn`, `commit_timestamp`, `xid`, `ordinal`, `origin`, `gid`: the transaction, and the change's number in
  it. `xid` is the top-level transaction's. All are null for a message that belongs to no transaction, the first two
  for a transaction that is prepared and undecided.

An LSN is text such as `16/B374D848`, a time is ISO 8601 in UTC. A value is the server's text, null for NULL, and
`{"base64": ...}` if it was sent in binary format or is not valid in the session's encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from typing import TypedDict

from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.changes import Change, Op, old_columns, resolved
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
from logicalrep_protocol.decoder import Decoder
from logicalrep_protocol.v1 import TupleData
from logicalrep_protocol.versions import Delete, Insert, Message, Update
from logicalrep_runtime.json_values import JsonValue, json_value
from logicalrep_runtime.scalars import Lsn


class ChangeRow(TypedDict):
    op: Op
    schema: str | None
    table: str | None
    relation_id: int | None
    before: dict[str, JsonValue] | None
    after: dict[str, JsonValue] | None
    key: list[str]
    unchanged: list[str]
    lsn: str
    commit_lsn: str | None
    commit_timestamp: str | None
    xid: int | None
    ordinal: int | None
    origin: str | None
    gid: str | None


def events(
    messages: Iterable[tuple[Lsn, bytes]], decoder: Decoder, assembler: Assembler | None = None
) -> Iterator[Event]:
    """Yield the events of a session's messages. Raises DecodeError and TransactionError.

    Without `assembler`, a new assembler holds prepared transactions until their decision.
    """
    with Assembler() if assembler is None else nullcontext(assembler) as used:
        for lsn, data in messages:
            yield from used.feed(decoder.decode(data), lsn)


def change_rows(
    messages: Iterable[tuple[Lsn, bytes]],
    decoder: Decoder,
    *,
    table: str | None = None,
    assembler: Assembler | None = None,
    on_decision: Callable[[Decision], None] | None = None,
) -> Iterator[ChangeRow]:
    """Yield the committed changes of a session's messages as rows of the change feed, ready for json.dumps.

    Args:
        messages: each message with its LSN.
        decoder: the session's decoder.
        table: the only table to read, as `schema.table` or `table`, written as in SQL; it leaves out logical
            messages.
        assembler: the assembler to use; by default a new assembler.
        on_decision: a function for decisions on prepared transactions whose changes are not available. Without it,
            the commit of a transaction that was prepared before the reader started raises TransactionError.

    Raises:
        DecodeError: the bytes are no message.
        TransactionError: a message is out of order, or rows are missing.

    Example:
        >>> for row in change_rows(messages, Decoder(1), table="public.orders"):
        ...     print(json.dumps(row))
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
    return parts == relation.table[-len(parts) :]


def change_row(change: Change, transaction: Transaction | PreparedTransaction, *, encoding: str) -> ChangeRow:
    relation = change.relation
    old_row, new_row, unchanged = _rows(change, relation, encoding)
    committed = transaction if isinstance(transaction, Transaction) else None
    return {
        "op": change.op,
        "schema": None if relation is None else relation.schema,
        "table": None if relation is None else relation.name,
        "relation_id": None if relation is None else relation.relation_id,
        "before": old_row,
        "after": new_row,
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


def message_row(event: NonTransactionalMessage, *, encoding: str) -> ChangeRow:
    return {
        "op": "message",
        "schema": None,
        "table": None,
        "relation_id": None,
        "before": None,
        "after": _message(event.message, encoding),
        "key": [],
        "unchanged": [],
        "lsn": str(event.lsn),
        "commit_lsn": None,
        "commit_timestamp": None,
        "xid": None,
        "ordinal": None,
        "origin": None,
        "gid": None,
    }


def _rows(
    change: Change, relation: TableDescription | None, encoding: str
) -> tuple[dict[str, JsonValue] | None, dict[str, JsonValue] | None, list[str]]:
    message = change.message
    old_row: dict[str, JsonValue] | None = None
    new_row: dict[str, JsonValue] | None = None
    unchanged: list[str] = []
    if isinstance(message, Message):
        return None, _message(message, encoding), unchanged
    assert relation is not None
    names = relation.names
    if isinstance(message, Update | Delete) and message.old is not None:
        old = message.old
        old_row = {
            names[at]: json_value(old.values[at], encoding, binary=old.kinds[at] == BINARY)
            for at in old_columns(relation, message)
        }
    if isinstance(message, Insert | Update):
        new: TupleData = resolved(message)
        new_row = {}
        for name, kind, value in zip(names, new.kinds, new.values, strict=True):
            if kind == UNCHANGED:
                unchanged.append(name)
            else:
                new_row[name] = json_value(value, encoding, binary=kind == BINARY)
    return old_row, new_row, unchanged


def _message(message: Message, encoding: str) -> dict[str, JsonValue]:
    return {"prefix": message.prefix, "content": json_value(message.content, encoding)}
