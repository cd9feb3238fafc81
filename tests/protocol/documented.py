"""The tables of the documentation's pages, written down from the pages themselves and not from the YAML.

A line is a row: the type as the page prints it, the field's name in Python, and what else is known of it. `since` is the
protocol version that the page names. The rest is what the page says in words ("only present for streamed transactions"),
or what servers are known to do where the page says less: zero LSNs are refused, the replica identity is a character, and
length and value, printed beneath 'b' alone, follow 't' too. Rows of the same name are alternatives to each other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

LOGICALREP = """
Begin
    Byte1('B')              tag
    Int64 (XLogRecPtr)      final_lsn               not zero
    Int64 (TimestampTz)     commit_timestamp
    Int32 (TransactionId)   xid

Message
    Byte1('M')              tag
    Int32 (TransactionId)   xid                     since 2, if streaming
    Int8                    flags
    Int64 (XLogRecPtr)      message_lsn
    String                  prefix
    Int32                   content_length          length of content
    Byten                   content                 size content_length

Commit
    Byte1('C')              tag
    Int8(0)                 flags
    Int64 (XLogRecPtr)      commit_lsn
    Int64 (XLogRecPtr)      end_lsn
    Int64 (TimestampTz)     commit_timestamp

Origin
    Byte1('O')              tag
    Int64 (XLogRecPtr)      origin_lsn
    String                  name

Relation
    Byte1('R')              tag
    Int32 (TransactionId)   xid                     since 2, if streaming
    Int32 (Oid)             relation_id
    String                  namespace
    String                  name
    Int8                    replica_identity        one of dnfi
    Int16                   column_count            length of columns
    Column                  columns                 times column_count

Column
    Int8                    flags
    String                  name
    Int32 (Oid)             type_id
    Int32                   type_modifier

Type
    Byte1('Y')              tag
    Int32 (TransactionId)   xid                     since 2, if streaming
    Int32 (Oid)             type_id
    String                  namespace
    String                  name

Insert
    Byte1('I')              tag
    Int32 (TransactionId)   xid                     since 2, if streaming
    Int32 (Oid)             relation_id
    Byte1('N')              new_kind
    TupleData               new

Update
    Byte1('U')              tag
    Int32 (TransactionId)   xid                     since 2, if streaming
    Int32 (Oid)             relation_id
    Byte1('K')              old_kind                optional
    Byte1('O')              old_kind                optional
    TupleData               old                     if old_kind
    Byte1('N')              new_kind
    TupleData               new

Delete
    Byte1('D')              tag
    Int32 (TransactionId)   xid                     since 2, if streaming
    Int32 (Oid)             relation_id
    Byte1('K')              old_kind
    Byte1('O')              old_kind
    TupleData               old

Truncate
    Byte1('T')              tag
    Int32 (TransactionId)   xid                     since 2, if streaming
    Int32                   relation_count          length of relation_ids
    Int8                    options
    Int32 (Oid)             relation_ids            times relation_count

StreamStart since 2
    Byte1('S')              tag
    Int32 (TransactionId)   xid
    Int8                    first_segment           0 or 1

StreamStop since 2
    Byte1('E')              tag

StreamCommit since 2
    Byte1('c')              tag
    Int32 (TransactionId)   xid
    Int8(0)                 flags
    Int64 (XLogRecPtr)      commit_lsn
    Int64 (XLogRecPtr)      end_lsn
    Int64 (TimestampTz)     commit_timestamp

StreamAbort since 2
    Byte1('A')              tag
    Int32 (TransactionId)   xid
    Int32 (TransactionId)   subxid
    Int64 (XLogRecPtr)      abort_lsn               since 4, if parallel
    Int64 (TimestampTz)     abort_timestamp         since 4, if parallel

BeginPrepare since 3
    Byte1('b')              tag
    Int64 (XLogRecPtr)      prepare_lsn             not zero
    Int64 (XLogRecPtr)      end_lsn                 not zero
    Int64 (TimestampTz)     prepare_timestamp
    Int32 (TransactionId)   xid
    String                  gid

Prepare since 3
    Byte1('P')              tag
    Int8(0)                 flags
    Int64 (XLogRecPtr)      prepare_lsn             not zero
    Int64 (XLogRecPtr)      end_lsn                 not zero
    Int64 (TimestampTz)     prepare_timestamp
    Int32 (TransactionId)   xid
    String                  gid

CommitPrepared since 3
    Byte1('K')              tag
    Int8(0)                 flags
    Int64 (XLogRecPtr)      commit_lsn              not zero
    Int64 (XLogRecPtr)      end_lsn                 not zero
    Int64 (TimestampTz)     commit_timestamp
    Int32 (TransactionId)   xid
    String                  gid

RollbackPrepared since 3
    Byte1('r')              tag
    Int8(0)                 flags
    Int64 (XLogRecPtr)      prepare_end_lsn         not zero
    Int64 (XLogRecPtr)      rollback_end_lsn        not zero
    Int64 (TimestampTz)     prepare_timestamp
    Int64 (TimestampTz)     rollback_timestamp
    Int32 (TransactionId)   xid
    String                  gid

StreamPrepare since 3
    Byte1('p')              tag
    Int8(0)                 flags
    Int64 (XLogRecPtr)      prepare_lsn             not zero
    Int64 (XLogRecPtr)      end_lsn                 not zero
    Int64 (TimestampTz)     prepare_timestamp
    Int32 (TransactionId)   xid
    String                  gid

TupleData
    Int16                   column_count            length of cells
    Cell                    cells                   times column_count

NullValue
    Byte1('n')              kind

UnchangedToast
    Byte1('u')              kind

Text
    Byte1('t')              kind
    Int32                   length                  length of value
    Byten                   value                   size length

Binary
    Byte1('b')              kind
    Int32                   length                  length of value
    Byten                   value                   size length
"""

# The page of the replication protocol names no types in parentheses: positions, transaction ids and epochs are unsigned.
WALSENDER = """
XLogData
    Byte1('w')              tag
    Int64                   start_lsn               unsigned
    Int64                   end_lsn                 unsigned
    Int64                   send_timestamp
    Byten                   payload                 size rest

PrimaryKeepaliveMessage
    Byte1('k')              tag
    Int64                   end_lsn                 unsigned
    Int64                   send_timestamp
    Byte1                   reply_requested         0 or 1

PrimaryStatusUpdate
    Byte1('s')              tag
    Int64                   end_lsn                 unsigned
    Int64                   oldest_committing_xid   unsigned
    Int64                   next_xid                unsigned
    Int64                   send_timestamp

StandbyStatusUpdate
    Byte1('r')              tag
    Int64                   written_lsn             unsigned
    Int64                   flushed_lsn             unsigned
    Int64                   applied_lsn             unsigned
    Int64                   send_timestamp
    Byte1                   reply_requested         0 or 1

HotStandbyFeedbackMessage
    Byte1('h')              tag
    Int64                   send_timestamp
    Int32                   xmin                    unsigned
    Int32                   xmin_epoch              unsigned
    Int32                   catalog_xmin            unsigned
    Int32                   catalog_xmin_epoch      unsigned

RequestPrimaryStatusUpdate
    Byte1('p')              tag
    Int64                   send_timestamp
"""

PAGES = {
    "v1": (LOGICALREP, 1),
    "v2": (LOGICALREP, 2),
    "v3": (LOGICALREP, 3),
    "v4": (LOGICALREP, 4),
    "walsender": (WALSENDER, 1),
}
"""The modules whose tables are written down here: the page, and the version that it has them for."""

# Flags, bit sets and characters are unsigned bytes, the rest of the integers without a name signed.
_INTEGERS = {
    "Byte1": "uint8",
    "Int8": "uint8",
    "Int16": "int16",
    "Int32": "int32",
    "Int64": "int64",
    "Int64 (XLogRecPtr)": "uint64",
    "Int64 (TimestampTz)": "int64",
    "Int32 (TransactionId)": "uint32",
    "Int32 (Oid)": "uint32",
}
_OTHERS = {"String": "text", "Byten": "bytes", "Cell": "NullValue | UnchangedToast | Text | Binary"}
_ROW = re.compile(r"    (?P<type>\S+(?: \(\w+\))?) +(?P<name>\w+)(?: +(?P<remarks>\S.*))?")


@dataclass
class Row:
    """One row of a table."""

    name: str
    printed: str
    """The type as the page prints it; alternatives joined by "|"."""
    holds: str
    """What is in the bytes: uint32, text, 'B', 0 as uint8, the name of a part."""
    since: int = 1
    remarks: set[str] = field(default_factory=set)


@dataclass
class Table:
    """A message, or a part of messages."""

    name: str
    since: int
    rows: list[Row] = field(default_factory=list)


def tables(text: str) -> list[Table]:
    """The tables of a page, in its order."""
    documented_tables: list[Table] = []
    for line in filter(None, text.splitlines()):
        if not line.startswith(" "):
            name, _, since = line.partition(" since ")
            documented_tables.append(Table(name, int(since or 1)))
            continue
        match = _ROW.fullmatch(line)
        assert match is not None, line
        row = _row(match["name"], match["type"], set(filter(None, (match["remarks"] or "").split(", "))))
        rows = documented_tables[-1].rows
        if rows and rows[-1].name == row.name:
            rows[-1].printed += f" | {row.printed}"
            rows[-1].holds = f"{rows[-1].holds} | {row.holds}"
        else:
            rows.append(row)
    return documented_tables


def _row(name: str, printed: str, remarks: set[str]) -> Row:
    since = 1
    for remark in list(remarks):
        if remark.startswith("since "):
            since = int(remark.removeprefix("since "))
            remarks.remove(remark)
    if constant := re.fullmatch(r"Byte1\('(.)'\)", printed):
        holds = f"'{constant[1]}'"
    elif constant := re.fullmatch(r"(Int\d+)\((\d+)\)", printed):
        holds = f"{constant[2]} as {_INTEGERS[constant[1]]}"
    else:
        holds = _INTEGERS.get(printed) or _OTHERS.get(printed, printed)
    for remark in list(remarks):
        if remark == "unsigned":
            holds = f"u{holds}"
            remarks.remove(remark)
        elif remark.startswith("one of "):
            holds = " | ".join(f"'{character}'" for character in remark.removeprefix("one of "))
            remarks.remove(remark)
    return Row(name, printed, holds, since, remarks)
