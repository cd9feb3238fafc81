"""The tables of the documentation's pages, written down from the pages themselves and not from the YAML.

A line is a row: the type as the page prints it, the field's name in Python, and what else is known of it. `since` and
`until` are protocol versions. The rest is what the page says in words ("only present for streamed transactions"), or what
servers are known to do where the page says less: zero LSNs are refused, the replica identity is a character, and length
and value, printed beneath 'b' alone, follow 't' too. `is` names the class in Python; a letter or number with a name is a
legal value. Rows of the same name are alternatives to each other, unless a version separates them.
"""

from __future__ import annotations

import ast
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
    Int8                    replica_identity        d default, n nothing, f full, i index
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
    Int64                   start_lsn               unsigned, is Lsn
    Int64                   end_lsn                 unsigned, is Lsn
    Int64                   send_timestamp          is TimestampTz
    Byten                   payload                 size rest

PrimaryKeepaliveMessage
    Byte1('k')              tag
    Int64                   end_lsn                 unsigned, is Lsn
    Int64                   send_timestamp          is TimestampTz
    Byte1                   reply_requested         0 or 1

PrimaryStatusUpdate
    Byte1('s')              tag
    Int64                   end_lsn                 unsigned, is Lsn
    Int64                   oldest_committing_xid   unsigned
    Int64                   next_xid                unsigned
    Int64                   send_timestamp          is TimestampTz

StandbyStatusUpdate
    Byte1('r')              tag
    Int64                   written_lsn             unsigned, is Lsn
    Int64                   flushed_lsn             unsigned, is Lsn
    Int64                   applied_lsn             unsigned, is Lsn
    Int64                   send_timestamp          is TimestampTz
    Byte1                   reply_requested         0 or 1

HotStandbyFeedbackMessage
    Byte1('h')              tag
    Int64                   send_timestamp          is TimestampTz
    Int32                   xmin                    unsigned, is TransactionId
    Int32                   xmin_epoch              unsigned
    Int32                   catalog_xmin            unsigned, is TransactionId
    Int32                   catalog_xmin_epoch      unsigned

RequestPrimaryStatusUpdate
    Byte1('p')              tag
    Int64                   send_timestamp          is TimestampTz
"""

# The page of the frontend/backend protocol names no types in parentheses. An object ID is an Oid; counts are unsigned, as
# servers send up to 65535 columns and parameters; all other integers are signed. What the page prints below a row, once
# for each item, has a name of its own here. EncryptionResponse is a byte of the page of the message flow.
PGWIRE = """
AuthenticationOk
    Byte1('R')              tag
    Int32(8)                length                  length of message
    Int32(0)                code

AuthenticationKerberosV5
    Byte1('R')              tag
    Int32(8)                length                  length of message
    Int32(2)                code

AuthenticationCleartextPassword
    Byte1('R')              tag
    Int32(8)                length                  length of message
    Int32(3)                code

AuthenticationMD5Password
    Byte1('R')              tag
    Int32(12)               length                  length of message
    Int32(5)                code
    Byte4                   salt

AuthenticationGSS
    Byte1('R')              tag
    Int32(8)                length                  length of message
    Int32(7)                code

AuthenticationGSSContinue
    Byte1('R')              tag
    Int32                   length                  length of message
    Int32(8)                code
    Byten                   data                    size rest

AuthenticationSSPI
    Byte1('R')              tag
    Int32(8)                length                  length of message
    Int32(9)                code

AuthenticationSASL
    Byte1('R')              tag
    Int32                   length                  length of message
    Int32(10)               code
    String                  mechanisms              until zero

AuthenticationSASLContinue
    Byte1('R')              tag
    Int32                   length                  length of message
    Int32(11)               code
    Byten                   data                    size rest

AuthenticationSASLFinal
    Byte1('R')              tag
    Int32                   length                  length of message
    Int32(12)               code
    Byten                   data                    size rest

BackendKeyData
    Byte1('K')              tag
    Int32                   length                  length of message
    Int32                   process_id
    Byte4                   secret_key              until 1
    Byten                   secret_key              since 2, size rest

Bind
    Byte1('B')              tag
    Int32                   length                  length of message
    String                  portal
    String                  statement
    Int16                   parameter_format_count  unsigned, length of parameter_formats
    Int16[C]                parameter_formats       times parameter_format_count, 0 text, 1 binary
    Int16                   parameter_count         unsigned, length of parameters
    ParameterValue          parameters              times parameter_count
    Int16                   result_format_count     unsigned, length of result_formats
    Int16[R]                result_formats          times result_format_count, 0 text, 1 binary

ParameterValue
    Int32                   length                  length of value
    Byten                   value                   size length, or null

BindComplete
    Byte1('2')              tag
    Int32(4)                length                  length of message

CancelRequest
    Int32                   length                  length of message
    Int32(80877102)         code
    Int32                   process_id
    Byte4                   secret_key              until 1
    Byten                   secret_key              since 2, size rest

Close
    Byte1('C')              tag
    Int32                   length                  length of message
    Byte1                   closed                  S statement, P portal
    String                  name

CloseComplete
    Byte1('3')              tag
    Int32(4)                length                  length of message

CommandComplete
    Byte1('C')              tag
    Int32                   length                  length of message
    String                  command

CopyData
    Byte1('d')              tag
    Int32                   length                  length of message
    Byten                   data                    size rest

CopyDone
    Byte1('c')              tag
    Int32(4)                length                  length of message

CopyFail
    Byte1('f')              tag
    Int32                   length                  length of message
    String                  reason

CopyInResponse
    Byte1('G')              tag
    Int32                   length                  length of message
    Int8                    overall_format          0 text, 1 binary
    Int16                   column_count            unsigned, length of column_formats
    Int16[N]                column_formats          times column_count, 0 text, 1 binary

CopyOutResponse
    Byte1('H')              tag
    Int32                   length                  length of message
    Int8                    overall_format          0 text, 1 binary
    Int16                   column_count            unsigned, length of column_formats
    Int16[N]                column_formats          times column_count, 0 text, 1 binary

CopyBothResponse
    Byte1('W')              tag
    Int32                   length                  length of message
    Int8                    overall_format          0 text, 1 binary
    Int16                   column_count            unsigned, length of column_formats
    Int16[N]                column_formats          times column_count, 0 text, 1 binary

DataRow
    Byte1('D')              tag
    Int32                   length                  length of message
    Int16                   column_count            unsigned, length of columns
    ColumnValue             columns                 times column_count

ColumnValue
    Int32                   length                  length of value
    Byten                   value                   size length, or null

Describe
    Byte1('D')              tag
    Int32                   length                  length of message
    Byte1                   described               S statement, P portal
    String                  name

EmptyQueryResponse
    Byte1('I')              tag
    Int32(4)                length                  length of message

ErrorResponse
    Byte1('E')              tag
    Int32                   length                  length of message
    ErrorField              fields                  until zero

ErrorField
    Byte1                   code                    S severity, V severity_not_localized, C code, M message, D detail, H hint, P position, p internal_position, q internal_query, W where, s schema_name, t table_name, c column_name, d data_type_name, n constraint_name, F file, L line, R routine, or any other
    String                  text

Execute
    Byte1('E')              tag
    Int32                   length                  length of message
    String                  portal
    Int32                   row_limit

Flush
    Byte1('H')              tag
    Int32(4)                length                  length of message

FunctionCall
    Byte1('F')              tag
    Int32                   length                  length of message
    Int32                   function_id             is Oid
    Int16                   argument_format_count   unsigned, length of argument_formats
    Int16[C]                argument_formats        times argument_format_count, 0 text, 1 binary
    Int16                   argument_count          unsigned, length of arguments
    ArgumentValue           arguments               times argument_count
    Int16                   result_format           0 text, 1 binary

ArgumentValue
    Int32                   length                  length of value
    Byten                   value                   size length, or null

FunctionCallResponse
    Byte1('V')              tag
    Int32                   length                  length of message
    Int32                   result_length           length of result
    Byten                   result                  size result_length, or null

GSSENCRequest
    Int32(8)                length                  length of message
    Int32(80877104)         code

GSSResponse
    Byte1('p')              tag
    Int32                   length                  length of message
    Byten                   data                    size rest

NegotiateProtocolVersion
    Byte1('v')              tag
    Int32                   length                  length of message
    Int32                   newest_version
    Int32                   option_count            length of options
    String                  options                 times option_count

NoData
    Byte1('n')              tag
    Int32(4)                length                  length of message

NoticeResponse
    Byte1('N')              tag
    Int32                   length                  length of message
    ErrorField              fields                  until zero

NotificationResponse
    Byte1('A')              tag
    Int32                   length                  length of message
    Int32                   process_id
    String                  channel
    String                  payload

ParameterDescription
    Byte1('t')              tag
    Int32                   length                  length of message
    Int16                   parameter_count         unsigned, length of parameter_types
    Int32                   parameter_types         times parameter_count, is Oid

ParameterStatus
    Byte1('S')              tag
    Int32                   length                  length of message
    String                  name
    String                  setting

Parse
    Byte1('P')              tag
    Int32                   length                  length of message
    String                  statement
    String                  query
    Int16                   parameter_count         unsigned, length of parameter_types
    Int32                   parameter_types         times parameter_count, is Oid

ParseComplete
    Byte1('1')              tag
    Int32(4)                length                  length of message

PasswordMessage
    Byte1('p')              tag
    Int32                   length                  length of message
    String                  password

PortalSuspended
    Byte1('s')              tag
    Int32(4)                length                  length of message

Query
    Byte1('Q')              tag
    Int32                   length                  length of message
    String                  query

ReadyForQuery
    Byte1('Z')              tag
    Int32(5)                length                  length of message
    Byte1                   transaction_status      I idle, T in_transaction, E failed

RowDescription
    Byte1('T')              tag
    Int32                   length                  length of message
    Int16                   field_count             unsigned, length of fields
    FieldDescription        fields                  times field_count

FieldDescription
    String                  name
    Int32                   table_id                is Oid
    Int16                   column_number
    Int32                   type_id                 is Oid
    Int16                   type_size
    Int32                   type_modifier
    Int16                   format_code             0 text, 1 binary

SASLInitialResponse
    Byte1('p')              tag
    Int32                   length                  length of message
    String                  mechanism
    Int32                   response_length         length of response
    Byten                   response                size response_length, or null

SASLResponse
    Byte1('p')              tag
    Int32                   length                  length of message
    Byten                   data                    size rest

SSLRequest
    Int32(8)                length                  length of message
    Int32(80877103)         code

StartupMessage
    Int32                   length                  length of message
    Int32(196608)           protocol_version        until 1
    Int32(196610)           protocol_version        since 2
    StartupParameter        parameters              until zero

StartupParameter
    String                  name
    String                  setting

Sync
    Byte1('S')              tag
    Int32(4)                length                  length of message

Terminate
    Byte1('X')              tag
    Int32(4)                length                  length of message

EncryptionResponse
    Byte1                   answer                  S tls, G gssapi, N refused
"""

BASEBACKUP = """
NewArchive
    Byte1('n')              tag
    String                  file_name
    String                  tablespace_path

Manifest
    Byte1('m')              tag

ArchiveOrManifestData
    Byte1('d')              tag
    Byten                   data                    size rest

ProgressReport
    Byte1('p')              tag
    Int64                   byte_count
"""

COPY_BINARY = r"""
CopyFile
    Byte11('PGCOPY\n\377\r\n\0')    signature
    Int16(0)                critical_flags
    Int16                   flags                   unsigned
    Int32                   extension_length        length of extension
    Byten                   extension               size extension_length
    CopyRow                 rows                    until trailer
    Int16(-1)               trailer

CopyRow
    Int16                   column_count            length of columns
    CopyValue               columns                 times column_count

CopyValue
    Int32                   length                  length of value
    Byten                   value                   size length, or null
"""

PAGES = {
    "v1": (LOGICALREP, 1),
    "v2": (LOGICALREP, 2),
    "v3": (LOGICALREP, 3),
    "v4": (LOGICALREP, 4),
    "walsender": (WALSENDER, 1),
    "copy_binary": (COPY_BINARY, 1),
    "basebackup.v1": (BASEBACKUP, 1),
    "pgwire.v3_0": (PGWIRE, 1),
    "pgwire.v3_2": (PGWIRE, 2),
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
_CLASSES = {"XLogRecPtr": "Lsn"}
"""The classes in Python that do not have the page's name in parentheses."""
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
    until: int | None = None
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
        if rows and rows[-1].name == row.name and row.since == 1:
            rows[-1].printed += f" | {row.printed}"
            rows[-1].holds = f"{rows[-1].holds} | {row.holds}"
        else:
            rows.append(row)
    return documented_tables


def _row(name: str, printed: str, remarks: set[str]) -> Row:
    versions = {remark for remark in remarks if re.fullmatch(r"(since|until) \d", remark)}
    numbers = {word: int(number) for word, number in (remark.split() for remark in versions)}
    letters = "".join(remark[0] for remark in remarks if re.fullmatch(r"[A-Za-z] [a-z_]+", remark))
    if constant := re.fullmatch(r"Byte1\('(.)'\)", printed):
        holds = f"'{constant[1]}'"
    elif constant := re.fullmatch(r"Byte\d+\('(.+)'\)", printed):
        holds = repr(ast.literal_eval(f"b'{constant[1]}'"))
    elif constant := re.fullmatch(r"(Int\d+)\((-?\d+)\)", printed):
        holds = f"{constant[2]} as {_INTEGERS[constant[1]]}"
    elif fixed := re.fullmatch(r"Byte([2-9])", printed):
        holds, remarks = "bytes", remarks | {f"size {fixed[1]}"}
    elif "or any other" in remarks:
        holds = "any character"
    elif letters:
        holds = " | ".join(f"'{letter}'" for letter in sorted(letters))
    else:
        holds = _INTEGERS.get(printed.partition("[")[0]) or _OTHERS.get(printed, printed)
    if named := re.fullmatch(r"Int\d+ \((\w+)\)", printed):
        remarks |= {f"is {_CLASSES.get(named[1], named[1])}"}
    if "unsigned" in remarks or "is Oid" in remarks:
        holds = f"u{holds.removeprefix('u')}"
    return Row(name, printed, holds, numbers.get("since", 1), numbers.get("until"), remarks - versions - {"unsigned"})
