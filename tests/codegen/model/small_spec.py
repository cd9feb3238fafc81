"""A spec of a few messages that has one of everything, for tests that break it."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "types.yaml": """\
XLogRecPtr:
  base: Int64
  signed: false
  python: logicalrep_runtime.scalars.Lsn
  made by: logicalrep_runtime.scalars.lsn_of
  doc: A position.
Oid:
  base: Int32
  signed: false
  python: logicalrep_runtime.scalars.Oid
  doc: A number.
""",
    "shop/protocol.yaml": """\
protocol: shop
title: Messages of a Shop
page: https://example.org/shop.html
anchor: SHOP-
doc: What a shop sends.
versions:
  1:
    module: v1
    server: 10
    doc: The first.
  2:
    module: v2
    server: 14
    doc: The second.
session:
  streaming:
    since: 2
    doc: Inside of a stream.
  parallel:
    since: 2
    doc: Several at once.
blocks:
  stream: From Open to Close.
callbacks: [row_cb, stream_cb]
files: [row, stream]
""",
    "shop/row.yaml": """\
Row:
  ref: ROW
  doc: A row.
  callback: row_cb
  place: [outside, stream]
  fields:
    - tag: Byte1('R')
    - xid: Int32
      since: 2
      when: streaming
      doc: Whose it is.
    - old_kind: Byte1('K') | Byte1('O')
      optional: true
      doc: Which old row.
    - old: Cells
      when: old_kind
      doc: The row before.
    - new_kind: Byte1('N')
      doc: The new row follows.
    - new: Cells
      doc: The row now.

Cells:
  part of: Row
  doc: Values.
  fields:
    - cell_count: Int16
      doc: How many.
    - cells: Cell
      repeat: cell_count
      doc: The values.

Cell:
  part of: Cells
  doc: A value.
  one of:
    Nothing:
      doc: No value.
      fields:
        - kind: Byte1('n')
          doc: No value.
    Something:
      doc: A value.
      fields:
        - kind: Byte1('t')
          doc: A value.
        - length: Int32
          doc: How long it is.
        - value: Byten
          size: length
          doc: The value.
""",
    "shop/stream.yaml": """\
Open:
  ref: OPEN
  since: 2
  doc: Opens a stream.
  callback: stream_cb
  place: outside
  opens: stream
  sets: streaming
  fields:
    - tag: Byte1('S')
    - position: Int64 (XLogRecPtr)
      nonzero: true
      doc: Where.
    - first: Int8
      boolean: true
      doc: Whether it is the first.

Close:
  ref: CLOSE
  since: 2
  doc: Closes a stream.
  callback: stream_cb
  place: stream
  closes: stream
  clears: streaming
  fields:
    - tag: Byte1('E')
    - flags: Int8
      bits:
        1: last
      doc: What it was.
    - state: Int8
      values:
        d: done
        x: broken
      doc: How it ended.
    - rest: Byten
      size: rest
      doc: All the rest.
""",
}


def write(folder: Path, changes: dict[str, str] | None = None) -> Path:
    """The spec in a folder, some of its files in another form."""
    for name, text in {**FILES, **(changes or {})}.items():
        path = folder / "spec" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "spec"


def changed(file: str, old: str, new: str) -> dict[str, str]:
    """A change of one file, for `write`; the old text must stand in it once."""
    assert FILES[file].count(old) == 1, f"{old!r} is {FILES[file].count(old)} times in {file}"
    return {file: FILES[file].replace(old, new)}
