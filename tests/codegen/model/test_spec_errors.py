"""Mistakes in the YAML: each is reported with its place, what is wrong and what is allowed; all of them at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codegen.__main__ import main
from codegen.model.places import SpecError
from codegen.model.reader import load
from tests.codegen.model.small_spec import FILES, changed, write
from tests.conftest import ROOT

TYPES_FILE = "types.yaml"
PROTOCOL = "shop/protocol.yaml"
ROW = "shop/row.yaml"
STREAM = "shop/stream.yaml"

TYPES = (
    "Int8, Int16, Int32, Int64, each also as IntN (Name) or IntN(constant); Byte1, Byte1('X'), "
    "Byte1('X') | Byte1('Y'); Byten; ByteN, ByteN('constant'); String; or the name of a part"
)
PLAIN_TYPES = "Int8, Int16, Int32, Int64, Byte1, Byten, String"
MESSAGE_KEYS = (
    "ref, since, also since, also when, release, from, when, doc, note, page note, callback, place, opens, closes, sets, "
    "clears, tells encoding, carries, describes, described as, transaction, fields"
)
FIELD_KEYS = "since, until, when, optional, measures, may be null, any character, size, repeat, is, looks up, printed as, printed under, printed apart, listed in, nonzero, boolean, holds text, bits, values, batch column, doc, note, page note"
PROTOCOL_KEYS = "protocol, package, byte order, types, software, title, page, anchor, doc, note, checked against, versions, session, outside, encodings, blocks, callbacks, files"

# The file, what is replaced in it and by what, and the findings.
MISTAKES: dict[str, tuple[str, str, str, list[str]]] = {
    # Keys
    "an unknown key of a message": (
        STREAM,
        "  sets: streaming\n",
        "  sets: streaming\n  colour: red\n",
        [f"spec/shop/stream.yaml:9:3: unknown key 'colour' of Open; allowed: {MESSAGE_KEYS}"],
    ),
    "an unknown key of a field": (
        ROW,
        "      repeat: cell_count\n",
        "      repeat: cell_count\n      times: 2\n",
        [f"spec/shop/row.yaml:31:7: unknown key 'times' of Cells.cells; allowed: {FIELD_KEYS}"],
    ),
    "an unknown key of a part": (
        ROW,
        "  part of: Row\n",
        "  part of: Row\n  since: 2\n",
        [
            (
                "spec/shop/row.yaml:25:3: unknown key 'since' of Cells; allowed: part of, ref, doc, note, page note, fields, one of"
            )
        ],
    ),
    "an unknown key of an alternative": (
        ROW,
        "      doc: No value.\n      fields",
        "      doc: No value.\n      ref: N\n      fields",
        [
            "spec/shop/row.yaml:39:7: unknown key 'ref' of alternative 'Nothing'; "
            "allowed: since, doc, note, page note, fields"
        ],
    ),
    "an unknown key of the protocol": (
        PROTOCOL,
        "anchor: SHOP-\n",
        "anchor: SHOP-\nlicence: none\n",
        [f"spec/shop/protocol.yaml:5:1: unknown key 'licence' of the protocol; allowed: {PROTOCOL_KEYS}"],
    ),
    "an unknown key of a version": (
        PROTOCOL,
        "    server: 10\n",
        "    server: 10\n    year: 2017\n",
        ["spec/shop/protocol.yaml:10:5: unknown key 'year' of version '1'; allowed: name, module, server, doc"],
    ),
    "an unknown key of a session fact": (
        PROTOCOL,
        "    doc: Several at once.\n",
        "    doc: Several at once.\n    when: now\n",
        ["spec/shop/protocol.yaml:22:5: unknown key 'when' of session fact 'parallel'; allowed: since, doc, values"],
    ),
    "an unknown key of a type": (
        TYPES_FILE,
        "  python: logicalrep_runtime.scalars.Oid\n",
        "  python: logicalrep_runtime.scalars.Oid\n  width: 4\n",
        [
            "spec/types.yaml:11:3: unknown key 'width' of type 'Oid'; allowed: base, signed, python, made by, arrow, epoch, values, doc"
        ],
    ),
    # Types
    "an unknown type": (
        ROW,
        "xid: Int32",
        "xid: Int24",
        [f"spec/shop/row.yaml:8:7: Row.xid: 'Int24' is not a type; allowed: {TYPES}; did you mean 'Int64'?"],
    ),
    "a type of other case": (
        ROW,
        "xid: Int32",
        "xid: int32",
        [f"spec/shop/row.yaml:8:7: Row.xid: 'int32' is not a type; allowed: {TYPES}; did you mean 'Int32'?"],
    ),
    "a part that is nowhere": (
        ROW,
        "    - new: Cells",
        "    - new: Tuples",
        [f"spec/shop/row.yaml:20:7: Row.new: there is no part or type 'Tuples'; allowed: Cells, Cell, {PLAIN_TYPES}"],
    ),
    "a named type that is nowhere": (
        STREAM,
        "Int64 (XLogRecPtr)",
        "Int64 (Position)",
        ["spec/shop/stream.yaml:11:7: Open.position: 'Position' is not a named type; allowed: XLogRecPtr, Oid"],
    ),
    "a named type of another width": (
        STREAM,
        "Int64 (XLogRecPtr)",
        "Int32 (XLogRecPtr)",
        ["spec/shop/stream.yaml:11:7: Open.position: XLogRecPtr is Int64, not Int32"],
    ),
    "a type with too many spaces": (
        STREAM,
        "Int64 (XLogRecPtr)",
        "Int64  (XLogRecPtr)",
        [f"spec/shop/stream.yaml:11:7: Open.position: 'Int64  (XLogRecPtr)' is not a type; allowed: {TYPES}"],
    ),
    "a type that is a list": (
        ROW,
        "xid: Int32",
        "xid: [Int32]",
        ["spec/shop/row.yaml:8:7: Row.xid: the type must be a text"],
    ),
    "a type that is nothing": (
        ROW,
        "xid: Int32",
        "xid:",
        [f"spec/shop/row.yaml:8:7: Row.xid: '' is not a type; allowed: {TYPES}"],
    ),
    # Constants
    "a constant of two characters": (
        ROW,
        "Byte1('N')",
        "Byte1('NO')",
        [
            (
                "spec/shop/row.yaml:18:7: Row.new_kind: \"Byte1('NO')\" is not a constant of one byte; allowed: "
                "Byte1('X') with a letter or a digit, alternatives joined by ' | '"
            )
        ],
    ),
    "a constant that is not ASCII": (
        ROW,
        "Byte1('N')",
        "Byte1('ä')",
        [
            (
                "spec/shop/row.yaml:18:7: Row.new_kind: \"Byte1('ä')\" is not a constant of one byte; allowed: "
                "Byte1('X') with a letter or a digit, alternatives joined by ' | '"
            )
        ],
    ),
    "a constant twice": (
        ROW,
        "Byte1('K') | Byte1('O')",
        "Byte1('K') | Byte1('K')",
        ["spec/shop/row.yaml:12:7: Row.old_kind: constant 'K' is named twice"],
    ),
    "a constant that does not fit": (
        STREAM,
        "    - first: Int8\n      boolean: true\n",
        "    - first: Int8(256)\n",
        ["spec/shop/stream.yaml:14:7: Open.first: constant 256 does not fit Int8"],
    ),
    "a constant that does not fit by far": (
        STREAM,
        "    - first: Int8\n      boolean: true\n",
        "    - first: Int8(99999999999999999999)\n",
        ["spec/shop/stream.yaml:14:7: Open.first: constant 99999999999999999999 does not fit Int8"],
    ),
    "a constant of too many digits": (
        STREAM,
        "    - first: Int8\n      boolean: true\n",
        "    - first: Int8(999999999999999999999)\n",
        [f"spec/shop/stream.yaml:14:7: Open.first: 'Int8(999999999999999999999)' is not a type; allowed: {TYPES}"],
    ),
    "a negative constant": (
        STREAM,
        "    - first: Int8\n      boolean: true\n",
        "    - first: Int8(-1)\n",
        ["spec/shop/stream.yaml:14:7: Open.first: constant -1 does not fit Int8"],
    ),
    "bytes of another number than the constant": (
        STREAM,
        "    - first: Int8\n      boolean: true\n",
        "    - first: Byte3('ab')\n",
        ["spec/shop/stream.yaml:14:7: Open.first: \"Byte3('ab')\" has a constant of 2 bytes, not 3"],
    ),
    "an unknown escape": (
        STREAM,
        "    - first: Int8\n      boolean: true\n",
        "    - first: Byte2('\\q')\n",
        [
            "spec/shop/stream.yaml:14:7: Open.first: \"Byte2('\\\\q')\" has a character that needs an escape; allowed: "
            "\\n, \\r, \\t, \\\\, \\0, \\377"
        ],
    ),
    "a list that no constant ends": (
        STREAM,
        "    - first: Int8\n      boolean: true\n",
        "    - words: String\n      repeat: until last\n      doc: Words.\n    - first: Int8\n      boolean: true\n",
        ["spec/shop/stream.yaml:14:7: Open.words: 'repeat: until last' belongs to a part with 'fields' only"],
    ),
    # Names that are used twice
    "a field twice": (
        ROW,
        "    - new: Cells",
        "    - old: Cells",
        ["spec/shop/row.yaml:20:7: Row.old is defined twice, first in line 15"],
    ),
    "a key twice": (
        ROW,
        "  doc: A row.\n",
        "  doc: A row.\n  doc: Another row.\n",
        ["spec/shop/row.yaml:4:3: key 'doc' is defined twice, first in line 3"],
    ),
    "a message twice": (
        STREAM,
        "Close:\n",
        "Open:\n",
        [
            "spec/shop/protocol.yaml:1:1: no message closes the block 'stream'",
            "spec/shop/protocol.yaml:16:3: streaming is set or cleared by a message, but not both",
            "spec/shop/stream.yaml:18:1: key 'Open' is defined twice, first in line 1",
        ],
    ),
    "a name in two files": (
        STREAM,
        "Close:\n",
        "Row:\n",
        ["spec/shop/stream.yaml:18:1: 'Row' is defined twice, first in spec/shop/row.yaml:1:1"],
    ),
    "a part and an alternative of one name": (
        ROW,
        "    Something:\n",
        "    Cells:\n",
        ["spec/shop/row.yaml:42:5: 'Cells' is defined twice, first in spec/shop/row.yaml:23:1"],
    ),
    "a name that is taken": (
        STREAM,
        "Close:\n",
        "Decoder:\n",
        [
            "spec/shop/stream.yaml:18:1: 'Decoder' would become the class Decoder, a name that is taken by what every generated module imports or defines"
        ],
    ),
    "a name that is a type's": (
        STREAM,
        "Close:\n",
        "Oid:\n",
        ["spec/shop/stream.yaml:18:1: 'Oid' would become the class Oid, a name that is taken by a named type"],
    ),
    # Names that are no names, or reserved
    "a name that is none": (
        STREAM,
        "Close:\n",
        "close:\n",
        [
            (
                "spec/shop/stream.yaml:18:1: 'close' is not a valid name of a message; words of letters are expected, "
                "the first capitalised"
            )
        ],
    ),
    "a name of a part that is none": (
        ROW,
        "Cell:\n",
        "Cell Data:\n",
        [
            f"spec/shop/row.yaml:29:7: Cells.cells: there is no part or type 'Cell'; allowed: Cells, Cell Data, {PLAIN_TYPES}; did you mean 'Cells'?",
            "spec/shop/row.yaml:33:1: 'Cell Data' is not a valid name of a part; one capitalised word is expected",
            "spec/shop/row.yaml:33:1: Cell Data says that it is part of Cells, but it is part of nothing",
        ],
    ),
    "a name of an alternative that is none": (
        ROW,
        "    Nothing:\n",
        "    nothing at all:\n",
        [
            (
                "spec/shop/row.yaml:37:5: 'nothing at all' is not a valid name of an alternative; one capitalised word is expected"
            )
        ],
    ),
    "a field's name that is none": (
        ROW,
        "    - xid: Int32",
        "    - Xid: Int32",
        [
            (
                "spec/shop/row.yaml:8:7: Row.Xid: 'Xid' is not a valid name of a field; lower-case words joined by _ are expected"
            )
        ],
    ),
    "a field's name that is a modifier": (
        ROW,
        "    - xid: Int32",
        "    - size: Int32",
        [
            (
                "spec/shop/row.yaml:8:7: Row.size: 'size' is a modifier, so no field can have that name; a row begins with "
                "its name and type"
            )
        ],
    ),
    "a field's name that is taken": (
        ROW,
        "    - xid: Int32",
        "    - build: Int32",
        ["spec/shop/row.yaml:8:7: Row.build: the name 'build' is taken by the method that writes a message"],
    ),
    "a field's name that is Python's": (
        ROW,
        "    - xid: Int32",
        "    - class: Int32",
        ["spec/shop/row.yaml:8:7: Row.class: the name 'class' is taken by Python's syntax"],
    ),
    "a field's name that classes use": (
        ROW,
        "    - xid: Int32\n",
        "    - bytes: Int32\n",
        [
            "spec/shop/row.yaml:8:7: Row.bytes: the name 'bytes' is taken by a builtin of Python that generated classes use"
        ],
    ),
    "a field's name that constructors have": (
        ROW,
        "    - xid: Int32\n",
        "    - self: Int32\n",
        ["spec/shop/row.yaml:8:7: Row.self: the name 'self' is taken by a name that constructors have for themselves"],
    ),
    "a session fact's name that is Python's": (
        PROTOCOL,
        "  parallel:\n",
        "  type:\n",
        [
            "spec/shop/protocol.yaml:19:3: the session fact's name 'type' is taken by "
            "what the generated code has for itself"
        ],
    ),
    "a bit's name that is a field's": (
        STREAM,
        "        1: last\n",
        "        1: rest\n",
        ["spec/shop/stream.yaml:28:7: Close.flags: the bit's name 'rest' is taken by another field or bit"],
    ),
    "a bit's name that is a bit's of another field": (
        STREAM,
        "    - state: Int8\n",
        "    - more: Int8\n      bits: {2: last}\n      doc: More.\n    - state: Int8\n",
        ["spec/shop/stream.yaml:32:7: Close.more: the bit's name 'last' is taken by another field or bit"],
    ),
    "a bit's name that constructors have": (
        STREAM,
        "        1: last\n",
        "        1: self\n",
        [
            "spec/shop/stream.yaml:28:7: Close.flags: the bit's name 'self' is taken by a name that constructors have for themselves"
        ],
    ),
    # Tags and references to the page
    "a tag twice": (
        STREAM,
        "Byte1('E')",
        "Byte1('S')",
        [
            (
                "spec/shop/stream.yaml:27:7: tag 'S' of Close is also the tag of Open (spec/shop/stream.yaml:1:1),"
                " which the server sends too"
            )
        ],
    ),
    "a tag twice in two files": (
        STREAM,
        "Byte1('E')",
        "Byte1('R')",
        [
            (
                "spec/shop/stream.yaml:27:7: tag 'R' of Close is also the tag of Row (spec/shop/row.yaml:1:1), "
                "which the server sends too"
            )
        ],
    ),
    "an alternative's tag twice": (
        ROW,
        "Byte1('t')",
        "Byte1('n')",
        ["spec/shop/row.yaml:45:11: 'n' of Something is also the tag of Nothing"],
    ),
    "no tag": (
        STREAM,
        "    - tag: Byte1('E')\n",
        "",
        [
            "spec/shop/stream.yaml:27:7: Close must begin with its tag: '- tag: Byte1('X')'",
        ],
    ),
    "a tag of two characters": (
        STREAM,
        "Byte1('E')",
        "Byte1('E') | Byte1('F')",
        [
            "spec/shop/stream.yaml:27:7: Close must begin with its tag: '- tag: Byte1('X')', not with Byte1('E') | Byte1('F')"
        ],
    ),
    "a ref twice": (
        STREAM,
        "  ref: CLOSE\n",
        "  ref: ROW\n",
        ["spec/shop/stream.yaml:18:1: ref 'ROW' of Close is also the ref of Row"],
    ),
    # Conditions
    "when names nothing": (
        ROW,
        "      when: streaming\n",
        "      when: steaming\n",
        [
            (
                "spec/shop/row.yaml:8:7: Row.xid: 'when' names 'steaming', which does not exist; allowed: streaming, parallel; did you mean 'streaming'?"
            )
        ],
    ),
    "when names something later": (
        ROW,
        "      when: streaming\n",
        "      when: old_kind\n",
        [("spec/shop/row.yaml:8:7: Row.xid: 'when' names 'old_kind', which comes later; allowed: streaming, parallel")],
    ),
    "when names something that is always present": (
        ROW,
        "      when: old_kind\n",
        "      when: tag\n",
        [
            (
                "spec/shop/row.yaml:12:7: Row.old_kind: the fields that follow it at once must be those with "
                "'when: old_kind'"
            ),
            (
                "spec/shop/row.yaml:15:7: Row.old: 'when' names 'tag', which is always present; allowed: "
                "streaming, parallel, old_kind"
            ),
        ],
    ),
    "when is before the session fact": (
        ROW,
        "      since: 2\n      when: streaming\n",
        "      when: streaming\n",
        ["spec/shop/row.yaml:8:7: Row.xid is since version 1, but streaming is known since 2 only"],
    ),
    # Repetitions and sizes
    "repeat names nothing": (
        ROW,
        "      repeat: cell_count\n",
        "      repeat: cells_count\n",
        [
            (
                "spec/shop/row.yaml:29:7: Cells.cells: 'repeat' names 'cells_count', which does not exist; allowed: cell_count; did you mean 'cell_count'?"
            )
        ],
    ),
    "repeat names something later": (
        ROW,
        (
            "    - cell_count: Int16\n"
            "      doc: How many.\n"
            "    - cells: Cell\n"
            "      repeat: cell_count\n"
            "      doc: The values.\n"
        ),
        (
            "    - cells: Cell\n"
            "      repeat: cell_count\n"
            "      doc: The values.\n"
            "    - cell_count: Int16\n"
            "      doc: How many.\n"
        ),
        [("spec/shop/row.yaml:27:7: Cells.cells: 'repeat' names 'cell_count', which comes later; allowed: none")],
    ),
    "repeat names no integer": (
        ROW,
        "    - cell_count: Int16\n",
        "    - cell_count: String\n",
        [
            (
                "spec/shop/row.yaml:29:7: Cells.cells: 'repeat' names 'cell_count', which is not a plain integer; allowed: none"
            )
        ],
    ),
    "repeat names a named integer": (
        ROW,
        "    - cell_count: Int16\n",
        "    - cell_count: Int32 (Oid)\n",
        [
            (
                "spec/shop/row.yaml:29:7: Cells.cells: 'repeat' names 'cell_count', which is not a plain integer; allowed: none"
            )
        ],
    ),
    "repeat of text": (
        ROW,
        "    - cells: Cell\n      repeat: cell_count\n",
        "    - cells: String\n      repeat: cell_count\n",
        [
            "spec/shop/row.yaml:33:1: Cell says that it is part of Cells, but it is part of nothing",
        ],
    ),
    "size names nothing": (
        ROW,
        "          size: length\n",
        "          size: width\n",
        ["spec/shop/row.yaml:49:11: Something.value: 'size' names 'width', which does not exist; allowed: length"],
    ),
    "size names something later": (
        ROW,
        (
            "        - length: Int32\n"
            "          doc: How long it is.\n"
            "        - value: Byten\n"
            "          size: length\n"
            "          doc: The value.\n"
        ),
        (
            "        - value: Byten\n"
            "          size: length\n"
            "          doc: The value.\n"
            "        - length: Int32\n"
            "          doc: How long it is.\n"
        ),
        ["spec/shop/row.yaml:47:11: Something.value: 'size' names 'length', which comes later; allowed: none"],
    ),
    "no size": (
        ROW,
        "          size: length\n",
        "",
        ["spec/shop/row.yaml:49:11: Something.value has no 'size'; allowed: an earlier integer, or rest"],
    ),
    "a size of no bytes": (
        ROW,
        "        - value: Byten\n",
        "        - value: String\n",
        ["spec/shop/row.yaml:49:11: Something.value: 'size' belongs to a Byten only"],
    ),
    "the rest in the middle": (
        STREAM,
        "    - rest: Byten\n      size: rest\n      doc: All the rest.\n",
        ("    - rest: Byten\n      size: rest\n      doc: All the rest.\n    - more: Int8\n      doc: More.\n"),
        ["spec/shop/stream.yaml:37:7: Close.rest: only the last field of a message can take the rest"],
    ),
    "the rest in a part": (
        ROW,
        "          size: length\n",
        "          size: rest\n",
        ["spec/shop/row.yaml:49:11: Something.value: only the last field of a message can take the rest"],
    ),
    # Optional fields
    "optional of no constant": (
        ROW,
        "    - old_kind: Byte1('K') | Byte1('O')\n",
        "    - old_kind: Int8\n",
        ["spec/shop/row.yaml:12:7: Row.old_kind: 'optional' belongs to a Byte1 with two or more constants only"],
    ),
    "nothing tells whether it is there": (
        ROW,
        "    - new_kind: Byte1('N')\n",
        "    - new_kind: Int8\n",
        [("spec/shop/row.yaml:12:7: Row.old_kind: a constant of one byte must follow, to show whether it is present")],
    ),
    "the constant that tells is the same": (
        ROW,
        "    - new_kind: Byte1('N')\n",
        "    - new_kind: Byte1('O')\n",
        [("spec/shop/row.yaml:12:7: Row.old_kind and new_kind share a constant, so it is ambiguous which is present")],
    ),
    "nothing depends on the optional field": (
        ROW,
        "      when: old_kind\n",
        "      when: streaming\n      since: 2\n",
        [
            (
                "spec/shop/row.yaml:12:7: Row.old_kind: the fields that follow it at once must be those with "
                "'when: old_kind'"
            )
        ],
    ),
    "optional: false": (
        ROW,
        "      optional: true\n",
        "      optional: false\n",
        ["spec/shop/row.yaml:13:7: 'optional' can only be true; leave it out otherwise"],
    ),
    "optional: yes": (
        ROW,
        "      optional: true\n",
        "      optional: yes\n",
        ["spec/shop/row.yaml:13:7: 'optional' must be true or false"],
    ),
    # Versions and releases
    "a since of zero": (
        ROW,
        "      since: 2\n      when",
        "      since: 0\n      when",
        ["spec/shop/row.yaml:9:7: 'since' must be a whole number from 1 to 99"],
    ),
    "a since that is no number": (
        ROW,
        "      since: 2\n      when",
        "      since: two\n      when",
        ["spec/shop/row.yaml:9:7: 'since' must be a whole number from 1 to 99"],
    ),
    "a since in quotes": (
        ROW,
        "      since: 2\n      when",
        "      since: '2'\n      when",
        ["spec/shop/row.yaml:9:7: 'since' must be a whole number from 1 to 99"],
    ),
    "a field since a version that is nowhere": (
        ROW,
        "      since: 2\n      when",
        "      since: 3\n      when",
        ["spec/shop/row.yaml:8:7: Row.xid is since version 3, but the newest is 2"],
    ),
    "a message since a version that is nowhere": (
        STREAM,
        "Close:\n  ref: CLOSE\n  since: 2\n",
        "Close:\n  ref: CLOSE\n  since: 3\n",
        ["spec/shop/stream.yaml:18:1: Close is since version 3, but the newest is 2"],
    ),
    "a field before its message": (
        STREAM,
        "      nonzero: true\n",
        "      nonzero: true\n      since: 1\n",
        ["spec/shop/stream.yaml:11:7: Open.position is since version 1, but what it belongs to is since 2"],
    ),
    "also when, from the beginning": (
        ROW,
        "  callback: row_cb\n",
        "  callback: row_cb\n  also when: parallel\n",
        ["spec/shop/row.yaml:1:1: Row is also sent since version 1, but it exists since version 1 anyway"],
    ),
    "also since, from later on": (
        STREAM,
        "  ref: CLOSE\n  since: 2\n",
        "  ref: CLOSE\n  since: 2\n  also since: 2\n",
        ["spec/shop/stream.yaml:18:1: Close is also sent since version 2, but it exists since version 2 anyway"],
    ),
    "a release that is none of its own": (
        STREAM,
        "  ref: CLOSE\n",
        "  ref: CLOSE\n  release: 14\n",
        ["spec/shop/stream.yaml:18:1: Close claims to come with release 14, but its version came with release 14"],
    ),
    # Descriptions, and fields that look them up
    "what describes nothing": (
        STREAM,
        "  sets: streaming\n",
        "  sets: streaming\n  describes: positon\n",
        [
            "spec/shop/stream.yaml:1:1: Open: 'describes' names 'positon', which is not a number that is always present; "
            "allowed: position; did you mean 'position'?"
        ],
    ),
    "what describes a flag": (
        STREAM,
        "  sets: streaming\n",
        "  sets: streaming\n  describes: first\n",
        [
            "spec/shop/stream.yaml:1:1: Open: 'describes' names 'first', which is not a number that is always present; "
            "allowed: position"
        ],
    ),
    "a look up of what describes nothing": (
        ROW,
        "    - xid: Int32\n",
        "    - xid: Int32\n      looks up: Open\n",
        ["spec/shop/row.yaml:8:7: Row.xid: 'looks up' names 'Open', which describes nothing; allowed: none"],
    ),
    # Columns of batches, and printed rows
    "a column of batches without a name": (
        ROW,
        "    - xid: Int32\n",
        "    - xid: Int32\n      batch column: The Xid\n",
        ["spec/shop/row.yaml:9:7: 'batch column' has 'The Xid'; lower-case words joined by _ are expected"],
    ),
    "a column of batches for a count": (
        ROW,
        "    - cell_count: Int16\n",
        "    - cell_count: Int16\n      batch column: number\n",
        [
            "spec/shop/row.yaml:27:7: Cells.cell_count: 'batch column' belongs to a field that batches have a column for "
            "only"
        ],
    ),
    "a look up in a part": (
        ROW,
        "        - length: Int32\n",
        "        - length: Int32\n          looks up: Row\n",
        ["spec/shop/row.yaml:47:11: Something.length: 'looks up' belongs to the fields of a message only"],
    ),
    "a row of a message that is printed elsewhere": (
        ROW,
        "    - xid: Int32\n",
        "    - xid: Int32\n      printed under: t\n",
        ["spec/shop/row.yaml:8:7: Row.xid: no other alternative with the tag 't' has such a field"],
    ),
    "a row that is printed where there is none": (
        ROW,
        "        - length: Int32\n",
        "        - length: Int32\n          printed under: n\n",
        ["spec/shop/row.yaml:47:11: Something.length: no other alternative with the tag 'n' has such a field"],
    ),
    # Prose
    "a doc with a number sign": (
        ROW,
        "      doc: Whose it is.\n",
        "      doc: Whose it is, # of all.\n",
        [
            "spec/shop/row.yaml:11:25: YAML takes '# of all.' for a comment, not for part of 'doc'; "
            "a text with ': ' or ' #' in it must be in quotes"
        ],
    ),
    "a doc that begins with a number sign": (
        ROW,
        "  doc: A row.\n",
        "  doc: # of the rows\n",
        [
            "spec/shop/row.yaml:3:8: YAML takes '# of the rows' for a comment, not for part of 'doc'; "
            "a text with ': ' or ' #' in it must be in quotes"
        ],
    ),
    "a doc on two lines with a number sign": (
        ROW,
        "  doc: A row.\n",
        "  doc: A row\n    of the shop # there.\n",
        [
            "spec/shop/row.yaml:4:17: YAML takes '# there.' for a comment, not for part of 'doc'; "
            "a text with ': ' or ' #' in it must be in quotes"
        ],
    ),
    "a doc with a colon": (
        ROW,
        "  doc: A row.\n",
        "  doc: A row: one of many.\n",
        [
            "spec/shop/row.yaml:3:13: is not valid YAML: mapping values are not allowed here; "
            "a text with ': ' or ' #' in it must be in quotes"
        ],
    ),
    "a doc that is a mapping": (
        ROW,
        "  doc: A row.\n",
        "  doc:\n    A row: one of many.\n",
        [
            "spec/shop/row.yaml:3:3: 'doc' must be a text, not a mapping; "
            "a text with ': ' or ' #' in it must be in quotes"
        ],
    ),
    # Keys with a likely correction, and keys without an effect
    "a key that is nearly one": (
        ROW,
        "  callback: row_cb\n",
        "  callbacks: row_cb\n",
        [
            "spec/shop/row.yaml:2:3: Row has no 'callback'",
            f"spec/shop/row.yaml:4:3: unknown key 'callbacks' of Row; allowed: {MESSAGE_KEYS}; did you mean 'callback'?",
        ],
    ),
    "also when of nothing": (
        ROW,
        "  callback: row_cb\n",
        "  callback: row_cb\n  also when: sometimes\n",
        ["spec/shop/row.yaml:5:3: 'also when' is 'sometimes'; allowed: streaming, parallel"],
    ),
    # Session facts
    "a session fact's name that is taken": (
        PROTOCOL,
        "  parallel:\n",
        "  version:\n",
        [
            "spec/shop/protocol.yaml:19:3: the session fact's name 'version' is taken by an attribute or argument of decoders and their sessions"
        ],
    ),
    "a session fact's name that is none": (
        PROTOCOL,
        "  parallel:\n",
        "  In Parallel:\n",
        [
            "spec/shop/protocol.yaml:19:3: 'In Parallel' is not a valid name of a session fact; lower-case words joined by _"
        ],
    ),
    "more session facts than fit": (
        PROTOCOL,
        "  parallel:\n",
        "".join(f"  fact{number}:\n    doc: A fact.\n" for number in range(6)) + "  parallel:\n",
        ["spec/shop/protocol.yaml:31:3: parallel is one session fact too many; the limit is 7"],
    ),
    "a field's name that is a session fact's": (
        STREAM,
        "    - state: Int8\n",
        "    - parallel: Int8\n",
        ["spec/shop/stream.yaml:32:7: Close.parallel: the name 'parallel' is taken by a session fact"],
    ),
    "a session fact of a version that is nowhere": (
        PROTOCOL,
        "  parallel:\n    since: 2\n",
        "  parallel:\n    since: 3\n",
        ["spec/shop/protocol.yaml:19:3: parallel is since version 3, but the newest is 2"],
    ),
    # Versions and their modules
    "versions out of order": (
        PROTOCOL,
        "  2:\n    module: v2",
        "  3:\n    module: v2",
        ["spec/shop/protocol.yaml:11:3: version '3' is out of order; 2 is expected here"],
    ),
    "a module twice": (
        PROTOCOL,
        "    module: v2\n",
        "    module: v1\n",
        ["spec/shop/protocol.yaml:11:3: module 'v1' is defined twice"],
    ),
    "a module that is none": (
        PROTOCOL,
        "    module: v2\n",
        "    module: V 2\n",
        ["spec/shop/protocol.yaml:12:5: 'V 2' is not a valid module name; lower-case letters, digits and _"],
    ),
    # Places, callbacks and blocks
    "an unknown place": (
        ROW,
        "  place: [outside, stream]\n",
        "  place: [outside, street]\n",
        ["spec/shop/row.yaml:5:20: 'place' has 'street'; allowed: outside, stream, anywhere"],
    ),
    "an unknown callback": (
        ROW,
        "  callback: row_cb\n",
        "  callback: column_cb\n",
        ["spec/shop/row.yaml:4:13: 'callback' has 'column_cb'; allowed: row_cb, stream_cb"],
    ),
    "an unknown sender": (
        ROW,
        "  callback: row_cb\n",
        "  callback: row_cb\n  from: nobody\n",
        ["spec/shop/row.yaml:5:3: 'from' is 'nobody'; allowed: server, client, both"],
    ),
    "an unknown effect": (
        ROW,
        "  callback: row_cb\n",
        "  callback: row_cb\n  transaction: forgets\n",
        [
            (
                "spec/shop/row.yaml:5:3: 'transaction' is 'forgets'; allowed: begins, streams, commits, "
                "prepares, aborts, commits prepared, rolls back prepared"
            )
        ],
    ),
    "a callback that sends nothing": (
        PROTOCOL,
        "[row_cb, stream_cb]",
        "[row_cb, stream_cb, other_cb]",
        ["spec/shop/protocol.yaml:1:1: callback 'other_cb' sends no message"],
    ),
    "a block that nothing closes": (
        STREAM,
        "  closes: stream\n",
        "",
        ["spec/shop/protocol.yaml:1:1: no message closes the block 'stream'"],
    ),
    "a message opens the block that it stands in": (
        ROW,
        "  callback: row_cb\n",
        "  callback: row_cb\n  opens: stream\n",
        ["spec/shop/row.yaml:1:1: Row opens a block, so it must close 'stream', where it may stand"],
    ),
    "a fact that nothing clears": (
        STREAM,
        "  clears: streaming\n",
        "",
        ["spec/shop/protocol.yaml:16:3: streaming is set or cleared by a message, but not both"],
    ),
    "a message opens a block inside of one": (
        STREAM,
        "  place: outside\n",
        "  place: [outside, stream]\n",
        ["spec/shop/stream.yaml:1:1: Open opens a block, so it must close 'stream', where it may stand"],
    ),
    # Parts
    "part of something else": (
        ROW,
        "  part of: Cells\n",
        "  part of: Row\n",
        ["spec/shop/row.yaml:33:1: Cell says that it is part of Row, but it is part of Cells"],
    ),
    "part of nothing that contains it": (
        ROW,
        "      repeat: cell_count\n      doc: The values.\n",
        (
            "      repeat: cell_count\n"
            "      doc: The values.\n"
            "\n"
            "Spare:\n"
            "  part of: Row\n"
            "  doc: Nobody needs it.\n"
            "  fields:\n"
            "    - size_of: Int8\n"
            "      doc: Nothing.\n"
        ),
        ["spec/shop/row.yaml:33:1: Spare says that it is part of Row, but it is part of nothing"],
    ),
    "a part that contains itself": (
        ROW,
        "        - value: Byten\n          size: length\n          doc: The value.\n",
        "        - value: Cells\n          doc: The value.\n",
        [
            "spec/shop/row.yaml:23:1: Cells contains itself: Cells > Cell > Cells",
            "spec/shop/row.yaml:23:1: Cells says that it is part of Row, but it is part of Row, Cell",
            "spec/shop/row.yaml:33:1: Cell contains itself: Cell > Cells > Cell",
            "spec/shop/row.yaml:33:1: the alternatives of Cell must use one name for their tags and one for their values",
            "spec/shop/row.yaml:42:5: Something may hold one value beside its tag, a Byten with its size",
        ],
    ),
    # Booleans, bits and values
    "a boolean of four bytes": (
        STREAM,
        "    - first: Int8\n",
        "    - first: Int32\n",
        [("spec/shop/stream.yaml:14:7: Open.first: 'boolean' belongs to an Int8 or Byte1 without constant only")],
    ),
    "bits of a constant": (
        STREAM,
        "    - flags: Int8\n",
        "    - flags: Int8(0)\n",
        ["spec/shop/stream.yaml:28:7: Close.flags: 'bits' belongs to an Int8 or Byte1 without constant only"],
    ),
    "bits that are none": (
        STREAM,
        "        1: last\n",
        "        3: last\n",
        ["spec/shop/stream.yaml:30:9: 'bits' has '3'; allowed: 1, 2, 4, 8, 16, 32, 64, 128"],
    ),
    "a bit without a name": (
        STREAM,
        "        1: last\n",
        "        1: The Last\n",
        ["spec/shop/stream.yaml:30:9: '1' of 'bits' must have a name of lower-case words joined by _"],
    ),
    "a value that is none": (
        STREAM,
        "        d: done\n",
        "        done: d\n",
        ["spec/shop/stream.yaml:34:9: 'values' has 'done'; allowed: a letter or a digit"],
    ),
    "boolean and bits": (
        STREAM,
        "      boolean: true\n",
        "      boolean: true\n      bits: {1: yes_it_is}\n",
        ["spec/shop/stream.yaml:14:7: Open.first: only one of 'boolean', 'bits' and 'values' is allowed"],
    ),
    "a byte of anything": (
        STREAM,
        "    - first: Int8\n      boolean: true\n",
        "    - first: Byte1\n",
        [
            "spec/shop/stream.yaml:14:7: Open.first: a Byte1 needs a constant, 'boolean', 'bits', 'values' or 'any character'"
        ],
    ),
    "nonzero of text": (
        STREAM,
        "    - rest: Byten\n      size: rest\n",
        "    - rest: String\n      nonzero: true\n",
        ["spec/shop/stream.yaml:37:7: Close.rest: 'nonzero' belongs to an integer without constant only"],
    ),
    "an encoding that is not text": (
        "shop/protocol.yaml",
        "files: [row, stream]\n",
        "files: [row, stream]\nencodings:\n  UTF8: [utf-8]\n",
        ["spec/shop/protocol.yaml:27:3: 'encodings' has 'UTF8'; the name of an encoding and of a codec is expected"],
    ),
    "a value of a session fact that is no word": (
        "shop/protocol.yaml",
        "    doc: Several at once.\n",
        "    doc: Several at once.\n    values: {Many Words: A text.}\n",
        ["spec/shop/protocol.yaml:22:14: 'values' has 'Many Words'; a lower-case word and a text is expected"],
    ),
    "a section that lists no values": (
        STREAM,
        "    - rest: Byten\n      size: rest\n",
        "    - rest: String\n      listed in: PROTOCOL-X\n",
        ["spec/shop/stream.yaml:37:7: Close.rest: 'listed in' belongs to a row with 'values' only"],
    ),
    "is of a named integer": (
        STREAM,
        "      nonzero: true\n",
        "      nonzero: true\n      is: XLogRecPtr\n",
        [("spec/shop/stream.yaml:11:7: Open.position: 'is' belongs to an integer without name and constant only")],
    ),
    "is of nothing": (
        ROW,
        "      when: streaming\n",
        "      when: streaming\n      is: TransactionId\n",
        ["spec/shop/row.yaml:11:7: 'is' is 'TransactionId'; allowed: XLogRecPtr, Oid"],
    ),
    # Missing or empty content
    "no doc of a field": (
        ROW,
        "      doc: Whose it is.\n",
        "",
        ["spec/shop/row.yaml:8:7: Row.xid has no 'doc'"],
    ),
    "no doc of a message": (
        ROW,
        "  doc: A row.\n",
        "",
        ["spec/shop/row.yaml:2:3: Row has no 'doc'"],
    ),
    "an empty doc": (
        ROW,
        "  doc: A row.\n",
        "  doc: ''\n",
        ["spec/shop/row.yaml:3:3: 'doc' must be a text"],
    ),
    "no fields": (
        STREAM,
        (
            "    - tag: Byte1('S')\n"
            "    - position: Int64 (XLogRecPtr)\n"
            "      nonzero: true\n"
            "      doc: Where.\n"
            "    - first: Int8\n"
            "      boolean: true\n"
            "      doc: Whether it is the first.\n"
        ),
        "    []\n",
        ["spec/shop/stream.yaml:9:3: 'fields' of Open must be a list of rows"],
    ),
    "a row that is a text": (
        ROW,
        "    - new_kind: Byte1('N')\n      doc: The new row follows.\n",
        "    - new_kind\n",
        ["spec/shop/row.yaml:18:7: a row of Row must read '- name: Type', its modifiers beneath"],
    ),
    "fields and alternatives": (
        ROW,
        "  part of: Cells\n",
        "  part of: Cells\n  fields:\n    - kind: Byte1('x')\n      doc: What.\n",
        ["spec/shop/row.yaml:33:1: Cell must have either 'fields' or 'one of'"],
    ),
    # YAML
    "a tab": (
        ROW,
        "  doc: A row.\n",
        "\tdoc: A row.\n",
        ["spec/shop/row.yaml:3:1: is not valid YAML: found character '\\t' that cannot start any token"],
    ),
    "an open bracket": (
        ROW,
        "  place: [outside, stream]\n",
        "  place: [outside, stream\n",
        ["spec/shop/row.yaml:6:9: is not valid YAML: expected ',' or ']', but got ':'"],
    ),
    "an open quote": (
        ROW,
        "  doc: A row.\n",
        "  doc: 'A row.\n",
        ["spec/shop/row.yaml:7:19: is not valid YAML: expected <block end>, but found '<scalar>'"],
    ),
    "an alias": (
        ROW,
        "    - old: Cells\n",
        "    - old: *cells\n",
        ["spec/shop/row.yaml:15:12: is not valid YAML: found undefined alias 'cells'"],
    ),
    "a thing used twice": (
        ROW,
        "  part of: Cells\n  doc: A value.\n",
        "  part of: &anchor Cells\n  doc: *anchor\n",
        [
            "spec/shop/row.yaml:34:3: Cell has no 'doc'",
            "spec/shop/row.yaml:34:12: is used a second time through an alias; write it out",
        ],
    ),
    "two documents": (
        ROW,
        "\nCells:\n",
        "\n---\nCells:\n",
        ["spec/shop/row.yaml:23:1: is not valid YAML: but found another document"],
    ),
    "a key that is a list": (
        ROW,
        "  ref: ROW\n",
        "  [ref]: ROW\n",
        ["spec/shop/row.yaml:2:3: Row has no 'ref'", "spec/shop/row.yaml:2:3: a key must be a text"],
    ),
    # Files
    "a file that is listed and missing": (
        PROTOCOL,
        "files: [row, stream]",
        "files: [row, stream, other]",
        [("spec/shop/other.yaml:1:1: cannot be read: [Errno 2] No such file or directory: 'spec/shop/other.yaml'")],
    ),
    "a file that is there and not listed": (
        PROTOCOL,
        "files: [row, stream]",
        "files: [row]",
        [
            "spec/shop/protocol.yaml:1:1: callback 'stream_cb' sends no message",
            "spec/shop/protocol.yaml:1:1: no message closes the block 'stream'",
            "spec/shop/protocol.yaml:1:1: no message opens the block 'stream'",
            "spec/shop/stream.yaml:1:1: is not listed under 'files' in spec/shop/protocol.yaml",
        ],
    ),
    "a file listed twice": (
        PROTOCOL,
        "files: [row, stream]",
        "files: [row, stream, row]",
        ["spec/shop/protocol.yaml:25:22: 'files' has 'row' twice"],
    ),
    "a file outside of the folder": (
        PROTOCOL,
        "files: [row, stream]",
        "files: [row, stream, ../types]",
        ["spec/shop/protocol.yaml:25:1: '../types' is not a valid file name; lower-case letters, digits and _"],
    ),
    # The file of types
    "a base that is none": (
        TYPES_FILE,
        "  base: Int32\n",
        "  base: Int24\n",
        ["spec/types.yaml:8:3: 'base' is 'Int24'; allowed: Int8, Int16, Int32, Int64; did you mean 'Int64'?"],
    ),
    "signed neither yes nor no": (
        TYPES_FILE,
        "  base: Int32\n  signed: false\n",
        "  base: Int32\n  signed: maybe\n",
        ["spec/types.yaml:9:3: 'signed' must be true or false"],
    ),
    "a Python type that is none": (
        TYPES_FILE,
        "  python: logicalrep_runtime.scalars.Oid\n",
        "  python: str\n",
        ["spec/types.yaml:10:3: 'python' is 'str'; a dotted path is expected, as of a class, or int"],
    ),
    "a type without base": (
        TYPES_FILE,
        "  base: Int32\n",
        "",
        ["spec/types.yaml:7:1: type 'Oid' has no 'base'"],
    ),
}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _findings(changes: dict[str, str]) -> list[str]:
    with pytest.raises(SpecError) as error:
        load(write(Path(), changes))
    assert str(error.value) == "\n".join(map(str, error.value.findings))
    return list(map(str, error.value.findings))


def test_the_spec_that_the_tests_break_is_right() -> None:
    (protocol,) = load(write(Path()))
    assert [message.name for message in protocol.messages] == ["Row", "Open", "Close"]
    assert [part.name for part in protocol.parts] == ["Cells", "Cell"]


@pytest.mark.parametrize(("file", "old", "new", "findings"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_reported_with_its_place(file: str, old: str, new: str, findings: list[str]) -> None:
    assert _findings(changed(file, old, new)) == findings


# Mistakes that others follow from: the words in the spec, what stands there instead, and the line that is named.
ONCE: dict[str, tuple[str, str, str, str]] = {
    "a tag of no type": (ROW, "tag: Byte1('R')", "tag: Bite1('R')", "row.yaml:7:7"),
    "a part of no type": (ROW, "- cells: Cell\n", "- cells: Sell8\n", "row.yaml:29:7"),
    "a size of no bytes": (ROW, "- cell_count: Int16\n", "- cell_count: Int16\n      size: xid\n", "row.yaml:27:7"),
    "a count that is a truth value": (
        ROW, "- cell_count: Int16\n", "- cell_count: Int16\n      boolean: true\n", "row.yaml:27:7"
    ),
    "a type of no width": (TYPES_FILE, "base: Int64", "base: Int24", "types.yaml:2:3"),
    "an optional row that names nothing": (ROW, "when: old_kind", "when: kind", "row.yaml:15:7"),
}  # fmt: skip


@pytest.mark.parametrize("name", ONCE)
def test_a_mistake_that_causes_other_mistakes_is_reported_once(name: str) -> None:
    file, old, new, place = ONCE[name]
    (finding,) = _findings(changed(file, old, new))
    assert finding.removeprefix("spec/").removeprefix("shop/").startswith(f"{place}: ")


# --- Rules that need two changes ---


def test_what_looks_up_a_number_without_a_name_is_not_asked_for_the_type_none() -> None:
    changes = changed(STREAM, "  sets: streaming\n", "  sets: streaming\n  describes: first\n")
    (finding,) = _findings(changes | changed(ROW, "    - xid: Int32\n", "    - xid: Int32\n      looks up: Open\n"))
    assert "'describes' names 'first', which is not a number that is always present" in finding


def test_what_looks_something_up_is_of_the_type_that_is_described() -> None:
    changes = changed(STREAM, "  sets: streaming\n", "  sets: streaming\n  describes: position\n")
    findings = _findings(changes | changed(ROW, "    - xid: Int32\n", "    - xid: Int32\n      looks up: Open\n"))
    assert findings == [
        "spec/shop/row.yaml:8:7: Row.xid: what looks up Open must be an integer of type XLogRecPtr that is always present"
    ]


def test_a_place_is_anywhere_or_some() -> None:
    anywhere = changed(ROW, "  place: [outside, stream]\n", "  place: anywhere\n")
    assert load(write(Path(), anywhere)) == load(write(Path(), FILES))
    findings = _findings(changed(ROW, "  place: [outside, stream]\n", "  place: [outside, anywhere]\n"))
    assert findings == ["spec/shop/row.yaml:5:3: 'place' has 'anywhere', and so nothing else"]


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("  sets: streaming\n", "  sets: mood\n", "'sets' names mood, but not which of its values: calm, busy"),
        ("  opens: stream\n", "  opens: stream\n  when: mood\n", "'when' names mood, but not which of its values: calm, busy"),
        ("  opens: stream\n", "  opens: stream\n  when: streaming\n", "'when' names streaming, which has no values"),
        ("  opens: stream\n", "  opens: stream\n  clears: mood\n", "'clears' names mood, which always has a value"),
        ("  opens: stream\n", "  opens: stream\n  clears: mood = busy\n", "'clears' names mood, which always has a value"),
    ],
)  # fmt: skip
def test_a_fact_with_values_has_one_always(old: str, new: str, finding: str) -> None:
    mood = "  parallel:\n    since: 2\n    doc: Several at once.\n"
    values = f"{mood}  mood:\n    doc: A mood.\n    values: {{calm: Calm., busy: Busy.}}\n"
    findings = _findings(changed("shop/protocol.yaml", mood, values) | changed(STREAM, old, new))
    assert f"spec/shop/stream.yaml:1:1: Open: {finding}" in findings


def test_no_row_depends_on_a_fact_with_values() -> None:
    mood = "  parallel:\n    since: 2\n    doc: Several at once.\n"
    values = f"{mood}  mood:\n    doc: A mood.\n    values: {{calm: Calm., busy: Busy.}}\n"
    findings = _findings(
        changed("shop/protocol.yaml", mood, values) | changed(ROW, "      when: streaming\n", "      when: mood\n")
    )
    assert "spec/shop/row.yaml:8:7: Row.xid: no field can depend on mood, which has values" in findings


def test_what_closes_a_block_stands_in_it_and_outside_perhaps() -> None:
    load(write(Path(), changed(STREAM, "  place: stream\n", "  place: [stream, outside]\n")))
    findings = _findings(changed(STREAM, "  place: stream\n", "  place: outside\n"))
    assert findings == ["spec/shop/stream.yaml:18:1: Close closes the block 'stream', so its place must have that"]


def test_a_comment_after_anything_but_prose_is_a_comment() -> None:
    load(write(Path(), changed(STREAM, "  sets: streaming\n", "  sets: streaming # until it closes\n")))
    load(write(Path(), changed(STREAM, "  doc: Opens a stream.\n", "  doc: 'Opens a stream.' # or so\n")))


# --- Whole files and protocols ---


def test_names_that_are_one_in_python_are_reported() -> None:
    close = FILES[STREAM].replace("Close:", "Stream Close:")
    second = "StreamClose:" + close.partition("Stream Close:")[2].replace("'E'", "'F'").replace("ref: CLOSE", "ref: C")
    findings = _findings({STREAM: f"{close}\n{second}"})
    assert "spec/shop/stream.yaml:41:1: 'StreamClose' is defined twice, first in spec/shop/stream.yaml:18:1" in findings


def test_no_versions_are_reported() -> None:
    text = FILES[PROTOCOL]
    versions = text[text.index("versions:") : text.index("session:")]
    findings = _findings(changed(PROTOCOL, versions, "versions: {}\n"))
    assert findings[0] == "spec/shop/protocol.yaml:6:1: a protocol has at least one version"


def test_all_mistakes_are_reported_at_once() -> None:
    changes = {
        "types.yaml": FILES["types.yaml"].replace("base: Int32", "base: Int24"),
        PROTOCOL: FILES[PROTOCOL]
        .replace("anchor: SHOP-", "anchor: SHOP-\nlicence: none")
        .replace("    module: v2", "    module: v1"),
        ROW: FILES[ROW]
        .replace("    - xid: Int32\n", "    - xid: Int24\n")
        .replace("      when: old_kind\n", "      when: new_kind\n")
        .replace("      repeat: cell_count\n", "      repeat: cells_count\n")
        .replace("  doc: A value.\n  one of", "  doc: A value.\n  doc: Again.\n  one of"),
        STREAM: FILES[STREAM]
        .replace("    - tag: Byte1('E')\n", "    - tag: Byte1('S')\n")
        .replace("        1: last\n", "        3: last\n")
        .replace("  ref: CLOSE\n", "  ref: CLOSE\n  colour: red\n"),
        "shop/spare.yaml": "Spare: {}\n",
    }
    findings = _findings(changes)
    assert findings == [
        "spec/shop/protocol.yaml:5:1: unknown key 'licence' of the protocol; allowed: " + PROTOCOL_KEYS,
        "spec/shop/protocol.yaml:12:3: module 'v1' is defined twice",
        f"spec/shop/row.yaml:8:7: Row.xid: 'Int24' is not a type; allowed: {TYPES}; did you mean 'Int64'?",
        "spec/shop/row.yaml:12:7: Row.old_kind: the fields that follow it at once must be those with 'when: old_kind'",
        "spec/shop/row.yaml:15:7: Row.old: 'when' names 'new_kind', which comes later; allowed: streaming, parallel, old_kind",
        "spec/shop/row.yaml:29:7: Cells.cells: 'repeat' names 'cells_count', which does not exist; allowed: cell_count; did you mean 'cell_count'?",
        "spec/shop/row.yaml:36:3: key 'doc' is defined twice, first in line 35",
        "spec/shop/spare.yaml:1:1: is not listed under 'files' in spec/shop/protocol.yaml",
        f"spec/shop/stream.yaml:20:3: unknown key 'colour' of Close; allowed: {MESSAGE_KEYS}",
        "spec/shop/stream.yaml:28:7: tag 'S' of Close is also the tag of Open (spec/shop/stream.yaml:1:1), "
        "which the server sends too",
        "spec/shop/stream.yaml:31:9: 'bits' has '3'; allowed: 1, 2, 4, 8, 16, 32, 64, 128",
        "spec/types.yaml:8:3: 'base' is 'Int24'; allowed: Int8, Int16, Int32, Int64; did you mean 'Int64'?",
    ]


def test_one_tag_may_be_sent_in_both_directions() -> None:
    text = FILES[ROW].replace("  callback: row_cb\n", "  callback: row_cb\n  from: client\n", 1)
    load(write(Path(), {ROW: text.replace("Byte1('R')", "Byte1('S')")}))


# Files that are hardly YAML, or hardly a mapping, and the finding.
# --- Files that are no YAML, or odd ---


ODD_FILES = {
    "nothing": ("", "spec/shop/row.yaml:1:1: is empty; a mapping is expected"),
    "a comment": ("# nothing\n", "spec/shop/row.yaml:1:1: is empty; a mapping is expected"),
    "a text": ("\nrow\n", "spec/shop/row.yaml:2:1: holds no mapping; the top of the file must be one"),
    "a list": ("- row\n", "spec/shop/row.yaml:1:1: holds no mapping; the top of the file must be one"),
    "a number": ("42\n", "spec/shop/row.yaml:1:1: holds no mapping; the top of the file must be one"),
    "a row that is a text": ("Row: R\n", "spec/shop/row.yaml:1:1: 'Row' must be a mapping"),
    "a row that is a list": ("Row: [R]\n", "spec/shop/row.yaml:1:1: 'Row' must be a mapping"),
    "a row that is nothing": ("Row:\n", "spec/shop/row.yaml:1:1: 'Row' must be a mapping"),
    "a loop": (
        "&a Row: &b\n  doc: *b\n",
        "spec/shop/row.yaml:1:9: is used a second time through an alias; write it out",
    ),
    "many levels": ("[" * 30 + "]" * 30 + "\n", "spec/shop/row.yaml:1:21: is nested too deeply"),
    "too many levels": ("[" * 600 + "\n", "spec/shop/row.yaml:1:1: is nested too deeply"),
    "a character that must not be": ("Row: \x01\n", None),
    "a directive": ("%YAML 9.9\n---\nRow: {}\n", None),
    "a tag of a Python object": ("Row: !!python/object:os.system {}\n", None),
    "a merge key": (
        "Row:\n  <<: {ref: ROW}\n",
        f"spec/shop/row.yaml:2:3: unknown key '<<' of Row; allowed: {MESSAGE_KEYS}",
    ),
    "an escape of no character": ('Row: "\\U00110000"\n', None),
    "a surrogate": ('Row:\n  doc: "\\uD800"\n', None),
}


@pytest.mark.parametrize(("text", "finding"), ODD_FILES.values(), ids=ODD_FILES.keys())
def test_an_odd_file_is_reported_and_nothing_else(text: str, finding: str | None) -> None:
    findings = _findings({ROW: text})
    assert finding is None or finding in findings
    assert all(line.startswith("spec/shop/") for line in findings)


def test_an_escape_far_beyond_the_last_character_is_reported() -> None:
    _findings({ROW: 'Row: "\\UFFFFFFFF"\n'})


def test_a_file_in_another_encoding_is_reported() -> None:
    spec = write(Path())
    (spec / ROW).write_bytes("Row:\n  doc: Tür\n".encode("latin-1"))
    with pytest.raises(SpecError) as error:
        load(spec)
    assert any(str(finding).startswith("spec/shop/row.yaml:1:1: cannot be read: ") for finding in error.value.findings)


def test_a_byte_order_mark_and_other_line_ends_are_nothing_odd() -> None:
    spec = write(Path())
    for name, text in FILES.items():
        (spec / name).write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    load(spec)


def test_a_missing_spec_is_reported() -> None:
    with pytest.raises(SpecError) as error:
        load(Path("nowhere"))
    assert list(map(str, error.value.findings)) == [
        "nowhere/*/protocol.yaml:1:1: no such file; a spec has at least one protocol",
        "nowhere/types.yaml:1:1: cannot be read: [Errno 2] No such file or directory: 'nowhere/types.yaml'",
    ]


def test_a_folder_in_place_of_a_file_is_reported() -> None:
    spec = write(Path())
    (spec / ROW).unlink()
    (spec / ROW).mkdir()
    with pytest.raises(SpecError) as error:
        load(spec)
    assert "spec/shop/row.yaml:1:1: cannot be read: [Errno 21] Is a directory: 'spec/shop/row.yaml'" in map(
        str, error.value.findings
    )


# --- Commands ---


@pytest.mark.parametrize("command", ["check", "regen"])
def test_a_command_prints_every_finding_and_exits_with_2(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    changes = changed(ROW, "xid: Int32", "xid: Int24") | changed(STREAM, "        1: last\n", "        3: last\n")
    write(Path(), changes)
    assert main([command, "--spec", "spec", "--out", "out"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        f"spec/shop/row.yaml:8:7: Row.xid: 'Int24' is not a type; allowed: {TYPES}; did you mean 'Int64'?\n"
        "spec/shop/stream.yaml:30:9: 'bits' has '3'; allowed: 1, 2, 4, 8, 16, 32, 64, 128\n"
    )
    assert not Path("out").exists()


def test_the_program_exits_with_2_and_without_a_traceback() -> None:
    write(Path(), {ROW: "Row: [\n"})
    result = subprocess.run(
        [sys.executable, "-m", "codegen", "check", "--spec", "spec"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == (
        "spec/shop/row.yaml:2:1: is not valid YAML: expected the node content, but found '<stream end>'\n"
    )
