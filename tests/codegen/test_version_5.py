"""A version 5 is a matter of the YAML alone: a message, a field, a kind of column and a session fact, used everywhere."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from codegen.diff import compare
from codegen.model.model import Protocol
from codegen.model.reader import load
from codegen.model.versions import view
from codegen.reference.site import site
from codegen.vectors.command import vectors
from tests.codegen.model.generation import WALKS, run_generated
from tests.conftest import ROOT

SEQUENCE = """\
Sequence:
  ref: SEQUENCE
  since: 5
  doc: The state of a sequence.
  callback: commit_cb
  place: [outside, transaction]
  fields:
    - tag: Byte1('Q')
    - sequence_id: Int32 (Oid)
      doc: The sequence.
    - name: String
      doc: Its name.
    - last_value: Int64
      doc: The number that it gave last.
    - is_called: Byte1
      boolean: true
      doc: Whether it gave that already.
    - owners: Int16
      doc: How many columns own it.
    - owner: Owner
      repeat: owners
      doc: The columns that own it.

Owner:
  part of: Sequence
  doc: A column that owns a sequence.
  fields:
    - relation_id: Int32 (Oid)
      doc: The column's table.
    - column: String
      doc: Its name.
"""
COMPRESSED = """\
    Compressed:
      since: 5
      doc: A value that is compressed.
      fields:
        - kind: Byte1('z')
          doc: Compressed.
        - length: Int32
          doc: How many bytes the value has.
        - value: Byten
          size: length
          doc: The value.
"""
# In which file what is put behind what; behind nothing, at its end.
ADDED = {
    "protocol.yaml": [
        ("for subscribers that apply in parallel.\n", "  5:\n    module: v5\n    server: 20\n    doc: Sequences.\n"),
        ("streaming = parallel.\n", "  numbered:\n    since: 5\n    doc: The session was started with numbers.\n"),
        ("  - stream_prepare\n", "  - sequence\n"),
    ],
    "sequence.yaml": [("", SEQUENCE)],
    "begin.yaml": [("    - xid: Int32 (TransactionId)\n      doc: The transaction's id.\n", """\
    - origin_id: Int16
      since: 5
      doc: Where it comes from.
    - number: Int64
      since: 5
      when: numbered
      doc: The transaction's number.
""")],
    "tuple_data.yaml": [("", COMPRESSED)],
}  # fmt: skip

USE = '''
import dataclasses
import pyarrow as pa
from logicalrep_protocol import Decoder, v1, v4, v5
from logicalrep_protocol.columnar import Session, decode_batch
from logicalrep_protocol.versions import PARSE

def plain(value):
    """A value as a batch has it."""
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if not dataclasses.is_dataclass(value):
        return value
    if hasattr(value, "kinds"):
        return [{"kind": kind, "value": item} for kind, item in zip(value.kinds, value.values, strict=True)]
    found = {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return {name: item for name, item in found.items() if item is not None}

assert list(PARSE) == [1, 2, 3, 4, 5]
assert v5.Insert is not v4.Insert and v5.Text is v4.Text and v5.Commit is v4.Commit
owner = v5.Owner(relation_id=7, column="a")
sequence = v5.Sequence(sequence_id=1, name="s", last_value=-2, is_called=True, owner=(owner, owner))
row = v5.TupleData.of(v5.Text(b"1"), v5.Compressed(b"zz"), v5.NullValue())
insert, update = v5.Insert(relation_id=7, new=row), v5.Update(relation_id=7, old_kind="K", old=row, new=row)
relation = v5.Relation(relation_id=7, namespace="n", name="t", replica_identity="d", columns=())
commit = v5.Commit(commit_lsn=1, end_lsn=2, commit_timestamp=3)
for numbered in (False, True):
    number = 9 if numbered else None
    begin = v5.Begin(final_lsn=1, commit_timestamp=3, xid=5, origin_id=4, number=number)
    messages = [sequence, begin, sequence, relation, insert, update, commit]
    decoder = Decoder(5, numbered=numbered)
    for message in messages:
        data = message.build()
        assert v5.parse(data, numbered=numbered) == message
        struct = type(message).struct
        assert struct.build(struct.parse(data, numbered=numbered), numbered=numbered) == data
        assert decoder.decode(data) == message
    batch, _ = decode_batch(pa.array([each.build() for each in messages], pa.binary()), Session(version=5, numbered=numbered))
    batch.validate(full=True)
    for message, found in zip(messages, batch.to_pylist(), strict=True):
        times = {"commit_timestamp"} & found.keys()
        found = {name: item for name, item in found.items() if item is not None and name not in times}
        wanted = {name: item for name, item in plain(message).items() if name not in times}
        assert found == {"tag": message.tag} | wanted, (found, wanted)
for data, version in ((sequence.build(), 4), (insert.build(), 4), (begin.build(), 4), (begin.build(), 5)):
    try:
        PARSE[version](data)
    except ValueError as error:
        print(error)
print(sorted(set(PARSE[4].__kwdefaults__) ^ set(PARSE[5].__kwdefaults__)))
'''
SAID = """\
Sequence: tag at offset 0: expected a message of protocol version 4, found 'Q', Sequence of version 5
Insert: new.cells[1].kind at offset 14: expected one of 'n', 'u', 't', 'b', found 'z'
Begin: end at offset 21: expected the end of the message, found 10 bytes more: 0x00040000000000000009
Begin: end at offset 23: expected the end of the message, found 8 bytes more: 0x0000000000000009
[]
"""


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the spec with a version 5."""
    folder = tmp_path_factory.mktemp("version_5") / "spec"
    shutil.copytree(ROOT / "spec", folder)
    for name, pairs in ADDED.items():
        path = folder / "logicalrep" / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for old, new in pairs:
            start, separator, end = text.partition(old) if old else (text, "", "")
            assert separator == old
            text = start + old + new + end
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def protocols(spec: Path) -> tuple[Protocol, ...]:
    return load(spec)


@pytest.mark.slow
@WALKS
def test_the_package_has_it(protocols: tuple[Protocol, ...], tmp_path: Path, walk: str) -> None:
    assert run_generated(protocols, tmp_path, USE, walk=walk) == SAID


def test_the_comparison_calls_all_of_it_new(protocols: tuple[Protocol, ...]) -> None:
    """Nothing that there was is touched: older versions have neither other bytes nor other names."""
    changes = compare(load(ROOT / "spec"), protocols).changes
    assert {change.severity.value for change in changes} == {"added"}, changes


def test_the_reference_shows_it(protocols: tuple[Protocol, ...]) -> None:
    pages = {str(path): text for path, text in site(protocols).items()}
    for word in ("Sequence", "Compressed", "numbered", "since 5"):
        assert word in pages["logicalrep.html"]
    assert "Sequence" in pages["changes.html"]


def test_the_new_message_has_vectors(protocols: tuple[Protocol, ...]) -> None:
    protocol = next(protocol for protocol in protocols if protocol.has_decoder)
    new_vectors = list(vectors(view(protocol, 5)))
    assert any(vector.get("message") == "Sequence" for vector in new_vectors)
    assert any("Compressed" in vector["name"] or "7a" in vector["bytes"] for vector in new_vectors)
