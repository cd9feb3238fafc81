"""The generated Structs contain the documentation's rows, which `documented.py` has independently of the YAML."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import logicalrep_protocol
from logicalrep_protocol import layouts
from logicalrep_runtime.operations import (
    Bytes,
    Choose,
    Conditional,
    Constant,
    Group,
    Integer,
    Measure,
    Operation,
    Operations,
    Repeat,
    Take,
    Text,
)
from tests.codegen.model.generation import generate_from
from tests.conftest import ROOT
from tests.protocol.agreement import VERSIONS
from tests.protocol.documented import LOGICALREP, PAGES, WALSENDER, Row, Table, tables
from tests.protocol.struct_reading import describe


def _tables_of(module: str) -> dict[str, Table]:
    page, version = PAGES[module]
    return {table.name: table for table in tables(page) if table.since <= version}


def _rows_of(table: Table, version: int) -> list[Row]:
    return [row for row in table.rows if row.since <= version]


def _differences(package: ModuleType) -> set[str]:
    """Every row, as `v1.Begin.xid`, that a package's Structs lack, have too much, elsewhere or otherwise."""
    differences: set[str] = set()
    for name, (_, version) in PAGES.items():
        module = getattr(package, name)
        documented = _tables_of(name)
        classes = {key: getattr(module, key) for key in module.__all__ if hasattr(getattr(module, key), "struct")}
        differences |= {f"{name}.{key}" for key in classes.keys() ^ documented.keys()}
        for key in classes.keys() & documented.keys():
            wanted = [(row.name, row.holds, frozenset(row.remarks)) for row in _rows_of(documented[key], version)]
            described = describe(classes[key], module)
            differences |= {f"{name}.{key}.{row[0]}" for row in set(wanted) ^ set(described)}
            order = [row[0] for row in wanted if row in described], [row[0] for row in described if row in wanted]
            differences |= {f"{name}.{key}.{a}" for a, b in zip(*order, strict=True) if a != b}
    return differences


def test_every_version_is_written_down_by_hand() -> None:
    modules = {module.__name__.rpartition(".")[2] for module in VERSIONS.values()} | {"walsender"}
    missing = ", ".join(sorted(modules ^ PAGES.keys()))
    assert not missing, f"tests/protocol/documented.py has no transcription of the documentation's tables for {missing}"


@pytest.mark.parametrize("module", PAGES)
def test_a_module_has_the_messages_of_its_version(module: str) -> None:
    exported = getattr(logicalrep_protocol, module)
    classes = [name for name in exported.__all__ if hasattr(getattr(exported, name), "struct")]
    assert sorted(classes) == sorted(_tables_of(module))


@pytest.mark.parametrize("module", PAGES)
def test_structs_have_the_documented_rows(module: str) -> None:
    exported = getattr(logicalrep_protocol, module)
    for name, table in _tables_of(module).items():
        wanted = [(row.name, row.holds, frozenset(row.remarks)) for row in _rows_of(table, PAGES[module][1])]
        assert describe(getattr(exported, name), exported) == wanted, name


def test_classes_are_shared_between_versions_until_one_changes_them() -> None:
    versions = list(VERSIONS.values())
    for table in tables(LOGICALREP):
        brought = {table.since, *(row.since for row in table.rows)}
        for older, newer in pairwise(versions):
            if hasattr(older, table.name):
                changed = versions.index(newer) + 1 in brought
                assert (getattr(older, table.name) is getattr(newer, table.name)) is not changed


def test_layouts_have_the_documented_rows() -> None:
    """The rows as data, which the walker reads, are the same rows."""
    for protocol, page in (
        (layouts.LOGICALREP, LOGICALREP),
        (layouts.WALSENDER, WALSENDER),
    ):
        specified: dict[str, Any] = {_class_name(message.name): message for message in protocol.messages}
        for part in protocol.parts.values():
            specified |= {layout.name: layout for layout in (part.alternatives or (part,))}
        documented = {table.name: table for table in tables(page)}
        assert sorted(specified) == sorted(documented)
        for name, layout in specified.items():
            table = documented[name]
            assert getattr(layout, "since", 1) == table.since
            assert [(field.name, field.type) for field in layout.fields] == [
                (row.name, row.printed) for row in table.rows
            ]
            for field, row in zip(layout.fields, table.rows, strict=True):
                assert field.since == max(row.since, table.since), (name, row.name)
                assert _held_by(field) == row.holds, (name, row.name)
                assert _remarked(field, layout.operations) == row.remarks, (name, row.name)


def _class_name(name: str) -> str:
    return "".join(word[0].upper() + word[1:] for word in name.split())


def _held_by(field: Operation) -> str:
    match field:
        case Repeat():
            return _held_by(field.body)
        case Text():
            return "text"
        case Bytes():
            return "bytes"
        case Choose():
            return "NullValue | UnchangedToast | Text | Binary"
        case Group():
            return field.part
    assert isinstance(field, Integer)
    integer = f"{'' if field.signed else 'u'}int{8 * field.width}"
    codes = (field.code,) if isinstance(field, Constant) else field.allowed if isinstance(field, Take) else ()
    if field.is_character:
        assert integer == "uint8"
        return " | ".join(f"'{chr(code)}'" for code in codes)
    return f"{codes[0]} as {integer}" if isinstance(field, Constant) else integer


def _remarked(operation: Operation, operations: Operations) -> set[str]:
    branch = next((other for other in operations if isinstance(other, Conditional) and operation in other.body), None)
    is_tag = branch is not None and bool(branch.ahead) and operation is branch.body[0]
    remarks = {
        f"if {branch and branch.name}": branch is not None and not is_tag,
        f"size {getattr(operation, 'count', '') or 'rest'}": isinstance(operation, Bytes),
        f"times {getattr(operation, 'count', '')}": isinstance(operation, Repeat),
        "optional": is_tag,
        "not zero": isinstance(operation, Take) and operation.refused == (0,),
        "0 or 1": isinstance(operation, Take) and operation.wrapper is bool and operation.allowed == (0, 1),
        f"length of {getattr(operation, 'of', '')}": isinstance(operation, Measure),
    }
    return {remark for remark, applies in remarks.items() if applies}


# Copies of the spec with wrong rows, and the rows that the comparison must then name. Each line is one mistake in one
# file: what is replaced, by what, and where it shows.
MISTAKES = [
    {
        "logicalrep/begin.yaml": (
            "    - xid: Int32 (TransactionId)\n",
            "    - xid: Int32\n      batch column: begin_xid\n",
            "v1-4 Begin.xid",
        ),
        "logicalrep/message.yaml": ("Int64 (XLogRecPtr)", "Int64 (TimestampTz)", "v1-4 Message.message_lsn"),
        "logicalrep/commit.yaml": ("Int8(0)", "Int8(1)", "v1-4 Commit.flags"),
        "logicalrep/relation.yaml": ("i: index", "x: index", "v1-4 Relation.replica_identity"),
        "logicalrep/type.yaml": ("      when: streaming\n", "", "v2-4 Type.xid"),
        "logicalrep/insert.yaml": ("Byte1('N')", "Byte1('O')", "v1-4 Insert.new_kind"),
        "logicalrep/update.yaml": ("Byte1('K') | Byte1('O')", "Byte1('K') | Byte1('P')", "v1-4 Update.old_kind"),
        "logicalrep/delete.yaml": ("      since: 2\n", "      since: 3\n", "v2 Delete.xid"),
        "logicalrep/stream_start.yaml": ("      boolean: true\n", "", "v2-4 StreamStart.first_segment"),
        "logicalrep/stream_stop.yaml": ("Byte1('E')", "Byte1('e')", "v2-4 StreamStop.tag"),
        "logicalrep/stream_commit.yaml": ("- commit_lsn:", "- final_lsn:", "v2-4 StreamCommit.commit_lsn final_lsn"),
        "logicalrep/stream_abort.yaml": ("when: parallel", "when: streaming", "v4 StreamAbort.abort_lsn"),
        "logicalrep/prepare.yaml": ("      nonzero: true\n", "", "v3-4 Prepare.prepare_lsn"),
        "logicalrep/tuple_data.yaml": ("column_count: Int16", "column_count: Int32", "v1-4 TupleData.column_count"),
        "walsender/xlog_data.yaml": ("is: TimestampTz", "is: XLogRecPtr", "walsender XLogData.send_timestamp"),
        "walsender/primary_keepalive.yaml": (
            "    - reply_requested: Byte1\n      boolean: true\n",
            "    - reply_requested: Int8\n",
            "walsender PrimaryKeepaliveMessage.reply_requested",
        ),
    },
    {
        "logicalrep/truncate.yaml": (
            "    - options: Int8\n",
            "    - more: Int8\n      doc: Too much.\n    - options: Int8\n",
            "v1-4 Truncate.more",
        ),
        "logicalrep/origin.yaml": (
            "    - name: String\n      doc: The origin's name.\n",
            "",
            "v1-4 Origin.name",
        ),
        "logicalrep/update.yaml": (
            "    - tag: Byte1('U')\n    - xid: Int32 (TransactionId)\n      since: 2\n",
            "    - tag: Byte1('U')\n    - xid: Int32 (TransactionId)\n      since: 4\n",
            "v2-3 Update.xid",
        ),
        "logicalrep/relation.yaml": (
            "    - type_modifier: Int32\n",
            "    - type_modifier: Int16\n",
            "v1-4 Column.type_modifier",
        ),
        "logicalrep/begin_prepare.yaml": ("  since: 3\n", "  since: 4\n", "v3 BeginPrepare"),
        "logicalrep/tuple_data.yaml": ("Byte1('u')", "Byte1('v')", "v1-4 UnchangedToast.kind"),
        "types.yaml": (
            "  base: Int32\n  signed: false\n  python: logicalrep_runtime.scalars.Oid",
            "  base: Int32\n  signed: true\n  python: logicalrep_runtime.scalars.Oid",
            "",
        ),
        "walsender/hot_standby_feedback.yaml": (
            "    - xmin_epoch: Int32\n      is: Epoch\n",
            "    - xmin_epoch: Int32\n",
            "walsender HotStandbyFeedbackMessage.xmin_epoch",
        ),
    },
    {
        "logicalrep/stream_commit.yaml": (
            "    - xid: Int32 (TransactionId)\n      doc: The id of the top-level transaction.\n"
            "    - flags: Int8(0)\n      doc: Unused so far.\n",
            "    - flags: Int8(0)\n      doc: Unused so far.\n"
            "    - xid: Int32 (TransactionId)\n      doc: The id of the top-level transaction.\n",
            "v2-4 StreamCommit.xid flags",
        ),
    },
]
OID_ROWS = "v1-4 Relation.relation_id Type.type_id Insert.relation_id Update.relation_id Delete.relation_id "
OID_ROWS += "Truncate.relation_ids Column.type_id"


def _expected(line: str) -> Iterator[str]:
    if not line:
        yield from _expected(OID_ROWS)
        return
    where, *rows = line.split()
    numbers = re.fullmatch(r"v(\d)(?:-(\d))?", where)
    modules = [f"v{n}" for n in range(int(numbers[1]), int(numbers[2] or numbers[1]) + 1)] if numbers else [where]
    owner = ""
    for row in rows:
        owner, _, name = row.rpartition(".") if "." in row else (owner, "", row)
        for module in modules:
            yield f"{module}.{owner}.{name}" if owner else f"{module}.{name}"


@pytest.mark.parametrize("mistakes", MISTAKES, ids=["values", "rows", "order"])
def test_the_comparison_names_every_wrong_row(mistakes: dict[str, tuple[str, str, str]], tmp_path: Path) -> None:
    spec = tmp_path / "spec"
    shutil.copytree(ROOT / "spec", spec)
    expected: set[str] = set()
    for file, (old, new, rows) in mistakes.items():
        text = (spec / file).read_text(encoding="utf-8")
        assert old in text, file
        (spec / file).write_text(text.replace(old, new, 1), encoding="utf-8")
        expected |= set(_expected(rows))
    with generate_from(spec, tmp_path / "out") as package:
        assert _differences(package) == expected


def test_the_comparison_finds_nothing_wrong_with_the_package() -> None:
    assert _differences(logicalrep_protocol) == set()
