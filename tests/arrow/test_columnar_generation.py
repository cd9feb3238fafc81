"""Additions to the spec are read, checked and made columns without a change of the columnar code."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.emit.package import emit
from codegen.model.places import SpecError
from codegen.model.reader import load
from tests.codegen.model.generation import WALKS, run_generated
from tests.conftest import ROOT

_ADDED = {
    "insert.yaml": (
        "    - new_kind: Byte1('N')",
        """    - reason: Byte1('x') | Byte1('y')
      doc: Why.
    - weight: Int64
      since: 4
      when: parallel
      doc: How much.
    - comment: String
      doc: A remark.
    - parents_count: Int16
      doc: How many parents.
    - parents: Int16
      repeat: parents_count
      doc: The parents.
    - new_kind: Byte1('N')""",
    ),
    "relation.yaml": (
        "    - type_modifier: Int32",
        """    - collation: String
      doc: The collation's name.
    - generated: Int8
      boolean: true
      doc: Whether it is generated.
    - type_modifier: Int32""",
    ),
    "truncate.yaml": (
        "    - tag: Byte1('T')",
        "    - tag: Byte1('T')\n    - length: Int32\n      measures: message\n      doc: The message's size.",
    ),
    "origin.yaml": ("    - name: String", "    - name: Int32 (Oid)\n      nonzero: true\n      batch column: origin"),
}

_CODE = """
import pyarrow as pa
from logicalrep_protocol import v1, v4
from logicalrep_protocol.columnar import Session, decode_batch
new = v1.TupleData.of(v1.Text(b"1"))
fields = dict(relation_id=1, reason="y", comment="é", parents=(-1, 2), new=new)
column = v1.Column(flags=1, name="c", type_id=25, collation="de", generated=True, type_modifier=-1)
relation = v1.Relation(relation_id=1, namespace="", name="t", replica_identity=v1.ReplicaIdentity.FULL, columns=(column,))
plain = [v1.Insert(**fields), relation, v1.Truncate(options=1, relation_ids=(1,)), v1.Origin(origin_lsn=1, name=7)]
array = pa.array([message.build() for message in plain], pa.binary())
batch, _ = decode_batch(array, Session(version=1))
print(batch.select(["reason", "comment", "parents", "columns", "name", "options", "origin"]).to_pylist())
heavy = v4.Insert(xid=None, weight=-5, **fields).build()
refused = v1.Origin(origin_lsn=1, name=7).build()[:-4] + bytes(4)
array = pa.array([heavy, refused], pa.binary())
batch, _ = decode_batch(array, Session(version=4, parallel=True), errors="column")
print(batch["weight"].to_pylist(), batch["error"].to_pylist())
"""


def _spec(folder: Path) -> Path:
    """Return the spec with fields of many kinds added."""
    for path in (ROOT / "spec").rglob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        if path.name in _ADDED:
            old_text, new_text = _ADDED[path.name]
            assert old_text in text
            text = text.replace(old_text, new_text)
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return folder / "spec"


@pytest.mark.slow
@WALKS
def test_fields_that_are_added_are_columns(tmp_path: Path, walk: str) -> None:
    output = run_generated(load(_spec(tmp_path)), tmp_path / "generated", _CODE, walk=walk)
    none = dict.fromkeys(["reason", "comment", "parents", "columns", "name", "options", "origin"])
    column = {"flags": 1, "name": "c", "type_id": 25, "collation": "de", "generated": True, "type_modifier": -1}
    assert output.splitlines() == [
        repr(
            [
                none | {"reason": "y", "comment": "é", "parents": [-1, 2]},
                none | {"columns": [column], "name": "t"},
                none | {"options": 1},
                none | {"origin": 7},
            ]
        ),
        f"{[-5, None]} {[None, 'Origin: name at offset 9: expected anything but zero, found 0']}",
    ]


def test_a_list_that_has_no_columns_is_a_finding_with_its_place(tmp_path: Path) -> None:
    spec = _spec(tmp_path)
    path = spec / "logicalrep" / "relation.yaml"
    numbers = "    - number_count: Int16\n      doc: How many.\n    - numbers: Int32\n      repeat: number_count\n      doc: Numbers.\n"
    path.write_text(path.read_text(encoding="utf-8") + numbers, encoding="utf-8")
    finding = r"relation.yaml:35:7: columns repeats Column, of run, text, run, text, run, repeat; columns hold lists of"
    with pytest.raises(SpecError, match=finding):
        emit(load(spec))
