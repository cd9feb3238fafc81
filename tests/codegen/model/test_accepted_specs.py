"""What the loader accepts can be generated: the package imports, and its codecs agree with each other."""

from __future__ import annotations

import shutil
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from codegen.model.places import SpecError
from tests.codegen.model.generation import generate_from
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

BEGIN = "logicalrep/begin.yaml"
DOC = "doc: The transaction's id."
INSERT = "logicalrep/insert.yaml"
MESSAGE = "logicalrep/message.yaml"
PROTOCOL = "logicalrep/protocol.yaml"
RELATION = "logicalrep/relation.yaml"
TRUNCATE = "logicalrep/truncate.yaml"
TUPLE = "logicalrep/tuple_data.yaml"
UPDATE = "logicalrep/update.yaml"
KEEPALIVE = "walsender/primary_keepalive.yaml"
FIRST_LENGTH = "        - length: Int32\n          printed under: b\n"

# A file, what is replaced in it and by what: right or wrong, but not so that the generator or its output fails.
CHANGES: dict[str, list[tuple[str, str, str]]] = {
    "nothing": [],
    "a doc with quotes in it": [(BEGIN, DOC, "doc: 'Once \"\"\" upon.'")],
    "a doc with a quote at its end": [(BEGIN, DOC, "doc: 'The so-called \"id\"'")],
    "a doc with a backslash in it": [(BEGIN, DOC, "doc: 'Not \\d but \\N.'")],
    "a doc with a backslash at its end": [(BEGIN, DOC, "doc: 'The id \\'")],
    "a doc with a line separator": [(BEGIN, DOC, 'doc: "The\\u2028id."')],
    "a doc with a surrogate": [(BEGIN, DOC, 'doc: "The \\uD800 id."')],
    "a doc with a zero": [(BEGIN, DOC, 'doc: "The\\0id."')],
    "a doc with a template in it": [(BEGIN, DOC, "doc: 'The {{ id }} {% of %}.'")],
    "a page with quotes in it": [(PROTOCOL, "page: https://www", "page: h\"\"\"ttps://www")],
    "a protocol's name of two words": [(PROTOCOL, "protocol: logicalrep", "protocol: logical rep")],
    "a protocol's name that is a digit": [(PROTOCOL, "protocol: logicalrep", "protocol: 1")],
    "a protocol's name twice": [(PROTOCOL, "protocol: logicalrep", "protocol: walsender")],
    "a module that is a keyword": [(PROTOCOL, "module: v1", "module: class")],
    "a module of the runtime": [(PROTOCOL, "module: v1", "module: scalars")],
    "the module of the decoder": [(PROTOCOL, "module: v1", "module: decoder")],
    "a module that is generated otherwise": [(PROTOCOL, "module: v1", "module: layouts")],
    "a module of another protocol": [(PROTOCOL, "module: v1", "module: walsender")],
    "a session fact by another name": [
        (PROTOCOL, "  parallel:", "  concurrent:"),
        ("logicalrep/stream_abort.yaml", "when: parallel", "when: concurrent"),
        ("logicalrep/stream_abort.yaml", "when: parallel", "when: concurrent"),
    ],
    "a message called Optional": [(BEGIN, "Begin:", "Optional:")],
    "a message called Any Message": [(BEGIN, "Begin:", "Any Message:")],
    "a message called as an enumeration": [(BEGIN, "Begin:", "Replica Identity:")],
    "a field called len": [(MESSAGE, "- message_lsn:", "- len:")],
    "a field called tuple": [(RELATION, "- relation_id:", "- tuple:")],
    "a field called chr": [(RELATION, "- relation_id:", "- chr:")],
    "a field called lsn_of": [(BEGIN, "- xid:", "- lsn_of:")],
    "a bit called property": [(TRUNCATE, "1: cascade", "1: property")],
    "a name of two bits": [(TRUNCATE, "2: restart_identity", "2: cascade")],
    "a name of two values": [(RELATION, "d: default", "d: full")],
    "a value that is a quote": [(RELATION, "d: default", "'\"': default")],
    "a value that is a backslash": [(RELATION, "d: default", "'\\': default")],
    "a tag that is a quote": [(BEGIN, "Byte1('B')", "Byte1('\"')")],
    "a tag that is a backslash": [(BEGIN, "Byte1('B')", "Byte1('\\')")],
    "a tag since a later version": [(BEGIN, "- tag: Byte1('B')\n", "- tag: Byte1('B')\n      since: 2\n")],
    "bits of a Byte1": [(KEEPALIVE, "      boolean: true\n", "      bits: {1: at_once}\n")],
    "an optional tag of one kind": [(UPDATE, "Byte1('K') | Byte1('O')", "Byte1('K')")],
    "alternatives with lengths of different widths": [(TUPLE, FIRST_LENGTH, FIRST_LENGTH.replace("Int32", "Int16"))],
    "a length since a later version": [(TUPLE, FIRST_LENGTH, FIRST_LENGTH.replace("Int32\n", "Int32\n          since: 2\n"))],
    "a count since a later version": [
        (TRUNCATE, "- relation_count: Int32\n", "- relation_count: Int32\n      since: 2\n"),
    ],
    "alternatives that are not repeated": [
        (INSERT, "- new: TupleData", "- new: Cell"),
        (TUPLE, "part of: TupleData", "part of: [TupleData, Insert]"),
        (TUPLE, "part of: [Insert, Update, Delete]", "part of: [Update, Delete]"),
    ],
    "a part's field in streams only": [
        (RELATION, "- type_modifier: Int32\n", "- type_modifier: Int32\n      since: 2\n      when: streaming\n"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", [*CHANGES, "no protocol with blocks", "no other protocol"])
def test_what_is_accepted_works(name: str, tmp_path: Path) -> None:
    spec = tmp_path / "spec"
    shutil.copytree(ROOT / "spec", spec)
    if name == "no protocol with blocks":
        shutil.rmtree(spec / "logicalrep")
    elif name == "no other protocol":
        shutil.rmtree(spec / "walsender")
        shutil.rmtree(spec / "pgwire")
    for file, old, new in CHANGES.get(name, []):
        text = (spec / file).read_text(encoding="utf-8")
        assert old in text
        (spec / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    with suppress(SpecError), generate_from(spec, tmp_path / "out") as package:
        _use(package)


def _use(package: ModuleType) -> None:
    """Write messages with both codecs of every version, and read them back."""
    modules = [sys.modules[parse.__module__] for parse in package.versions.PARSE.values()]
    for module in modules:
        row = module.TupleData(kinds=b"tnub", values=(b"1", None, None, b"22"))
        column = module.Column(flags=1, name="a", type_id=23, type_modifier=-1)
        for name in ("Insert", "Update", "Delete", "Relation", "Truncate", "Message", "Origin"):
            owner = getattr(module, name)
            attributes = {
                key: _value(key, row, column, module)
                for key in owner.__dataclass_fields__
                if key not in ("tag", "struct", "xid")
            }
            message = owner(**attributes)
            data = message.build()
            assert module.parse(data) == message
            assert owner.struct.parse(data) == message
            assert owner.struct.build(message) == data


def _value(name: str, row: Any, column: Any, module: ModuleType) -> Any:
    values = {
        "new": row,
        "old": row,
        "old_kind": "K",
        "columns": (column,),
        "relation_ids": (1, 2),
        "namespace": "s",
        "name": "t",
        "prefix": "p",
        "content": b"c",
        "replica_identity": "n",
    }
    return values.get(name, 1)


def test_flags_may_be_absent(tmp_path: Path) -> None:
    """None unless a bit is given, whose names are attributes and parameters all the same."""
    shutil.copytree(ROOT / "spec", tmp_path / "spec")
    path = tmp_path / "spec" / INSERT
    more = "    - more: Int8\n      since: 2\n      when: streaming\n      bits: {2: urgent}\n      doc: More.\n"
    path.write_text(path.read_text("utf-8").replace("    - relation_id:", f"{more}    - relation_id:"), "utf-8")
    with generate_from(tmp_path / "spec", tmp_path / "out") as package:
        module = package.v2
        row = module.TupleData(kinds=b"n", values=(None,))
        outside = module.Insert(relation_id=1, new=row)
        assert (outside.more, outside.urgent) == (None, False)
        assert module.parse(outside.build()) == module.message.parse(outside.build()) == outside
        for urgent, flags in ((True, 2), (False, 0)):
            inside = module.Insert(xid=7, urgent=urgent, relation_id=1, new=row)
            assert (inside.more, inside.urgent) == (flags, urgent)
            data = inside.build()
            assert module.message.build(inside) == data
            assert module.parse(data, streaming=True) == module.message.parse(data, streaming=True) == inside
