"""Small specs that change from version to version: everything generated agrees in every version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from codegen.model.reader import load
from logicalrep_runtime.errors import DecodeError, EncodeError
from logicalrep_runtime.layout_walk import walk
from tests.codegen.model.generation import WALKS, generate_from, run_generated
from tests.codegen.model.small_spec import FILES, write

LATER = """\
    Later:
      since: 2
      doc: A value that comes later.
      fields:
        - kind: Byte1('z')
          doc: Later.
        - length: Int32
          doc: How long it is.
        - value: Byten
          size: length
          doc: The value.
"""
ROWS_OF_NOTHING = """\
        - length: Int32
          since: 2
          doc: How long the reason is.
        - value: Byten
          since: 2
          size: length
          doc: Why there is none.
"""
MARKS = """
Marks:
  part of: Open
  doc: Marks.
  fields:
    - label: Int16
      doc: A label.
    - mark_count: Int8
      doc: How many.
    - marks: Mark
      repeat: mark_count
      doc: The marks.

Mark:
  part of: Marks
  doc: A mark.
  one of:
    Point:
      doc: A point.
      fields:
        - sign: Byte1('p')
          doc: A point.
    Line:
      doc: A line.
      fields:
        - sign: Byte1('l')
          doc: A line.
        - extent: Int16
          doc: How long it is.
        - stroke: Byten
          size: extent
          doc: The stroke.
"""
GRADE = """
Grade:
  part of: Row
  doc: A grade.
  fields:
    - level: Int8
      values:
        a: good
        b: bad
      doc: The level.
    - weight: Int16
      since: 2
      doc: What it weighs.
"""
PLACE = """
Place:
  part of: Open
  doc: A place.
  fields:
    - x: Int32
      doc: Across.
    - y: Int64 (XLogRecPtr)
      doc: Down.
"""
# Names that Python and the generated code have for themselves.
OWN_NAMES = """\
    - type: Int16
      doc: A type.
    - hash: String
      doc: A text.
    - len: Int8
      values: {a: short, b: long}
      doc: A length.
    - range: Int16
      doc: How many numbers there are.
    - id: Int32
      repeat: range
      doc: Numbers.
    - sum: Int32
      doc: How many bytes there are.
    - chr: Byten
      size: sum
      doc: Bytes.
    - ord: Byte1('K') | Byte1('O')
      optional: true
      doc: A kind.
    - offset: Int32
      when: ord
      doc: A place.
    - end: Byte1('N')
      doc: The end.
    - data: Int64 (XLogRecPtr)
      batch column: open_data
      doc: A position.
"""
NEW = "    - new: Cells\n      doc: The row now.\n"
FIRST = "    - first: Int8\n      boolean: true\n      doc: Whether it is the first.\n"
# In which file what is put behind what; behind nothing, at its end.
ROW, STREAM = "shop/row.yaml", "shop/stream.yaml"
CHANGES: dict[str, list[tuple[str, str, str]]] = {
    "alternative": [(ROW, "", LATER)],
    "rows of an alternative": [(ROW, "        - kind: Byte1('n')\n          doc: No value.\n", ROWS_OF_NOTHING)],
    "two choices": [(STREAM, FIRST, "    - marks: Marks\n      doc: The marks.\n"), (STREAM, "", MARKS)],
    "named values": [(ROW, NEW, "    - grade: Grade\n      doc: How good it is.\n"), (ROW, "", GRADE)],
    "own names": [(STREAM, FIRST, OWN_NAMES)],
    "a part once": [(STREAM, FIRST, "    - where: Place\n      doc: Where it is.\n"), (STREAM, "", PLACE)],
    "apart": [(ROW, NEW, "    - mark: Int16\n      since: 2\n      when: streaming\n      doc: A mark.\n")],
}
Generate = Callable[..., ModuleType]


def _spec(folder: Path, names: tuple[str, ...]) -> Path:
    """The small spec with some of the changes."""
    texts = dict(FILES)
    for name in names:
        for file, old, new in CHANGES[name]:
            start, separator, end = texts[file].partition(old) if old else (texts[file], "", "")
            assert separator == old
            texts[file] = start + old + new + end
    return write(folder, texts)


@pytest.fixture
def generate(tmp_path: Path) -> Iterator[Generate]:
    open_now: list[AbstractContextManager[ModuleType]] = []

    def make(*names: str) -> ModuleType:
        open_now.append(generate_from(_spec(tmp_path, names), tmp_path / "out"))
        return open_now[-1].__enter__()

    yield make
    for manager in open_now:
        manager.__exit__(None, None, None)


def agree(package: ModuleType, version: int, message: Any, **facts: bool) -> None:
    """A message is written and read alike by all that is generated, and all of it refuses what is cut short."""
    data = message.build()
    parse = package.versions.PARSE[version]
    assert parse(data, **facts) == message
    struct = type(message).struct
    assert struct.build(struct.parse(data, **facts), **facts) == data
    steps = list(walk(package.layouts.SHOP, version, data, facts=facts))
    assert b"".join(step.data for step in steps) == data
    for end in range(len(data)):
        with pytest.raises(DecodeError):
            parse(data[:end], **facts)


def _row(module: ModuleType, **attributes: Any) -> Any:
    return module.Row(new=module.Cells(kinds=b"nt", values=(None, b"1")), **attributes)


def test_an_alternative_since_a_later_version(generate: Generate) -> None:
    package = generate("alternative")
    v1, v2 = package.v1, package.v2
    for version, module in ((1, v1), (2, v2)):
        agree(package, version, _row(module))
    late = v2.Cells.of(v2.Later(b"soon"), v2.Nothing(), v2.Something(b"1"))
    assert late.cells == (v2.Later(b"soon"), v1.Nothing(), v1.Something(b"1"))
    agree(package, 2, v2.Row(new=late))
    assert "Later" not in v1.__all__
    assert v2.Nothing is v1.Nothing
    with pytest.raises(DecodeError, match=r"Row: new.cells\[0\].kind at offset 4: expected one of 'n', 't', found 'z'"):
        v1.parse(v2.Row(new=late).build())
    with pytest.raises(EncodeError, match=r"Row: new.cells\[0\].kind: expected one of 'n', 't', found 'z'"):
        v1.Row(new=v1.Cells(kinds=b"z", values=(b"1",))).build()


def test_rows_of_an_alternative_since_a_later_version(generate: Generate) -> None:
    package = generate("rows of an alternative")
    v1, v2 = package.v1, package.v2
    agree(package, 1, _row(v1))
    reasoned = v2.Row(new=v2.Cells.of(v2.Nothing(b"why"), v2.Something(b"1")))
    agree(package, 2, reasoned)
    assert v1.Nothing() != v2.Nothing(b"why")
    assert v2.Something is v1.Something
    with pytest.raises(EncodeError, match=r"new.cells\[0\].value: expected bytes for the kind 'n', found None"):
        v2.Row(new=v2.Cells(kinds=b"n", values=(None,))).build()
    with pytest.raises(EncodeError, match=r"new.cells\[0\].value: expected None for the kind 'n', found b'why'"):
        v1.Row(new=v1.Cells(kinds=b"n", values=(b"why",))).build()


def test_two_parts_with_alternatives(generate: Generate) -> None:
    package = generate("two choices")
    v2 = package.v2
    marks = v2.Marks.of(v2.Line(b"abc"), v2.Point(), label=7)
    assert (marks.label, marks.kinds, marks.values) == (7, b"lp", (b"abc", None))
    assert marks.marks == (v2.Line(b"abc"), v2.Point())
    agree(package, 2, v2.Open(position=1, first=True, marks=marks))
    agree(package, 2, _row(v2))
    with pytest.raises(DecodeError, match=r"Open: marks.marks\[0\].sign at offset 13: expected one of 'p', 'l'"):
        v2.parse(v2.Open(position=1, first=True, marks=marks).build()[:13] + b"x")
    with pytest.raises(EncodeError, match=r"marks.marks\[0\].stroke: expected fewer than 32768 bytes, found 32768"):
        v2.Open(position=1, first=True, marks=v2.Marks.of(v2.Line(bytes(1 << 15)), label=1)).build()


def test_a_part_with_named_values_that_changes_keeps_its_enumeration(generate: Generate) -> None:
    package = generate("named values")
    v1, v2 = package.v1, package.v2
    assert v1.Grade is not v2.Grade
    assert v1.Level is v2.Level
    agree(package, 1, _row(v1, grade=v1.Grade(level=v1.Level.GOOD)))
    agree(package, 2, _row(v2, grade=v2.Grade(level=v1.Level.BAD, weight=3)))


def test_fields_of_one_fact_that_stand_apart(generate: Generate) -> None:
    package = generate("apart")
    v2 = package.v2
    agree(package, 2, _row(v2, xid=5, mark=6), streaming=True)
    agree(package, 2, _row(v2))
    for wrong in ({"xid": 5}, {"mark": 6}):
        with pytest.raises(EncodeError, match=r"a value if and only if \w+ has one"):
            _row(v2, **wrong).build()


def test_a_part_that_is_there_once(generate: Generate) -> None:
    package = generate("a part once")
    v2 = package.v2
    agree(package, 2, v2.Open(position=1, first=True, where=v2.Place(x=-1, y=2)))


def test_fields_with_names_that_code_has_for_itself(generate: Generate) -> None:
    package = generate("own names")
    v2 = package.v2
    whole = {"type": 1, "hash": "text", "len": v2.Len.LONG, "id": (1, 2), "chr": b"abc", "data": 9}
    agree(package, 2, v2.Open(position=1, first=True, **whole))
    agree(package, 2, v2.Open(position=1, first=True, ord="O", offset=3, **whole))
    with pytest.raises(EncodeError, match=r"Open: type: expected a whole number from -32768 to 32767, found 32768"):
        v2.Open(position=1, first=True, **{**whole, "type": 1 << 15}).build()


COLUMNS = """
import pyarrow as pa
from logicalrep_protocol import v1, v2
from logicalrep_protocol.columnar import Session, decode_batch

def rows(version, messages, **facts):
    batch, _ = decode_batch(pa.array([each.build() for each in messages], pa.binary()), Session(version=version, **facts))
    batch.validate(full=True)
    return [{name: value for name, value in row.items() if value is not None} for row in batch.to_pylist()]

def values(cells):
    return [{"kind": kind, "value": value} for kind, value in zip(cells.kinds, cells.values)]

first = v1.Row(new=v1.Cells.of(v1.Nothing(), v1.Something(b"1")), grade=v1.Grade(level=v1.Level.GOOD))
assert rows(1, [first]) == [{"tag": "R", "new": values(first.new), "grade_level": "a"}], rows(1, [first])
new = v2.Cells.of(v2.Nothing(b"why"), v2.Later(b"soon"), v2.Something(b"1"))
row = v2.Row(new=new, grade=v2.Grade(level=v1.Level.BAD, weight=-3))
marks = v2.Marks.of(v2.Line(b"abc"), v2.Point(), label=7)
own = {"type": 1, "hash": "text", "id": (1, 2), "chr": b"abc", "ord": "O", "offset": 3}
opened = v2.Open(position=1, first=True, marks=marks, where=v2.Place(x=-1, y=2), len=v2.Len.LONG, data=9, **own)
inside = v2.Row(xid=5, mark=6, old_kind="K", old=new, new=new, grade=row.grade)
assert rows(2, [row, opened, inside]) == [
    {"tag": "R", "new": values(new), "grade_level": "b", "grade_weight": -3},
    {"tag": "S", "position": 1, "first": True, "marks_label": 7, "marks": values(marks), "where_x": -1, "where_y": 2,
     "len": "b", **own, "id": [1, 2], "open_data": 9},
    {"tag": "R", "xid": 5, "old_kind": "K", "old": values(new), "new": values(new), "grade_level": "b",
     "grade_weight": -3, "mark": 6},
], rows(2, [row, opened, inside])
"""


@WALKS
def test_columns_of_all_of_them(walk: str, tmp_path: Path) -> None:
    protocols = load(_spec(tmp_path, tuple(CHANGES)))
    run_generated(protocols, tmp_path / "generated", COLUMNS, walk=walk)
