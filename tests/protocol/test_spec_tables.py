"""The generated Structs contain the documentation's rows, which `documented.py` has independently of the YAML."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from enum import IntEnum
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import logicalrep_protocol
from codegen.pagecheck.reading import read_page
from logicalrep_protocol import layouts
from logicalrep_protocol.basebackup import layouts as basebackup_layouts
from logicalrep_protocol.pgwire import layouts as pgwire_layouts
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
from tests.protocol.documented import BASEBACKUP, COPY_BINARY, LOGICALREP, PAGES, PGWIRE, WALSENDER, Row, tables
from tests.protocol.documented_differences import classes_of, differences, in_struct, module_of, rows_of, tables_of
from tests.protocol.struct_reading import describe


def test_every_version_is_written_down_by_hand() -> None:
    modules = {module.__name__.rpartition(".")[2] for module in VERSIONS.values()} | {"walsender", "copy_binary"}
    modules |= {f"{path.parent.name}.{path.stem}" for path in Path(*logicalrep_protocol.__path__).glob("*/v*.py")}
    missing = ", ".join(sorted(modules ^ PAGES.keys()))
    assert not missing, f"tests/protocol/documented.py has no transcription of the documentation's tables for {missing}"


@pytest.mark.parametrize("module", PAGES)
def test_a_module_has_the_messages_of_its_version(module: str) -> None:
    assert sorted(classes_of(module_of(logicalrep_protocol, module))) == sorted(tables_of(module))


@pytest.mark.parametrize("module", PAGES)
def test_structs_have_the_documented_rows(module: str) -> None:
    exported = module_of(logicalrep_protocol, module)
    for name, table in tables_of(module).items():
        wanted = [in_struct(row) for row in rows_of(table, PAGES[module][1])]
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
        (layouts.COPY_BINARY, COPY_BINARY),
        (basebackup_layouts.BASEBACKUP, BASEBACKUP),
        (pgwire_layouts.PGWIRE, PGWIRE),
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
                assert field.until == (row.until or 0), (name, row.name)
                assert _held_by(field) == row.holds, (name, row.name)
                # The names of characters are in the modules alone.
                remarks = {remark for remark in row.remarks if not re.fullmatch(r"[A-Za-z] [a-z_]+", remark)}
                assert _remarked(field, layout.operations) == remarks, (name, row.name)


def test_the_transcription_has_every_row_of_its_page() -> None:
    """The page prints a part below the row that it belongs to; rows of older versions alone are not on the page."""
    documented = {table.name: table for table in tables(PGWIRE)}

    def printed(rows: list[Row]) -> list[str]:
        return [
            text
            for row in rows
            for text in (printed(documented[row.printed].rows) if row.printed in documented else [row.printed])
        ]

    page = read_page(ROOT / "spec" / "pages" / "postgresql-18-message-formats.html")
    rows = {message.name: [row.type for row in message.rows] for message in page.messages}
    assert sum(map(len, rows.values())) == 198
    assert {name: printed(rows_of(documented[str(name)], 2)) for name in rows} == rows


def _class_name(name: str) -> str:
    return "".join(word[0].upper() + word[1:] for word in name.split())


def _held_by(field: Operation) -> str:
    match field:
        case Repeat():
            return _held_by(field.body)
        case Text():
            return "text"
        case Bytes():
            return repr(field.constant) if field.constant else "bytes"
        case Choose():
            return "NullValue | UnchangedToast | Text | Binary"
        case Group():
            return field.part
    assert isinstance(field, Integer)
    if isinstance(field, Take) and field.refused == (0,) and field.is_character:
        return "any character"
    integer = f"{'' if field.signed else 'u'}int{8 * field.width}"
    codes = (field.code,) if isinstance(field, Constant) else field.allowed if isinstance(field, Take) else ()
    if field.is_character:
        assert integer == "uint8"
        return " | ".join(f"'{chr(code)}'" for code in sorted(codes))
    return f"{codes[0]} as {integer}" if isinstance(field, Constant) else integer


def _end_of(operation: Operation, operations: Operations) -> str:
    """Return the name of the constant that ends a list, or zero."""
    if not isinstance(operation, Repeat) or not operation.end:
        return "zero"
    following = operations[operations.index(operation) + 1]
    assert isinstance(following, Constant)
    assert following.code.to_bytes(following.width, "big", signed=following.signed) == operation.end
    return following.name


def _remarked(operation: Operation, operations: Operations) -> set[str]:
    item = operation.body if isinstance(operation, Repeat) else operation
    wrapper = item.wrapper if isinstance(item, Take) else None
    values = wrapper if isinstance(wrapper, type) and issubclass(wrapper, IntEnum) else ()
    is_length = isinstance(item, Constant) and item.is_length
    measures_message = isinstance(item, Measure) and not item.of and item.preceding == (operations[0].name == "tag")
    branch = next((other for other in operations if isinstance(other, Conditional) and operation in other.body), None)
    is_tag = branch is not None and bool(branch.ahead) and operation is branch.body[0]
    remarks = {
        f"if {branch and branch.name}": branch is not None and not is_tag,
        f"size {getattr(operation, 'count', '') or getattr(operation, 'size', '') or 'rest'}": isinstance(
            operation, Bytes
        )
        and not operation.constant,
        "or null": isinstance(operation, Bytes) and operation.nullable,
        f"times {getattr(operation, 'count', '')}": isinstance(operation, Repeat) and operation.count != "",
        f"until {_end_of(operation, operations)}": isinstance(operation, Repeat) and not operation.count,
        "length of message": is_length or measures_message,
        f"is {getattr(wrapper, '__name__', '')}": wrapper is not None and wrapper is not bool and not values,
        "optional": is_tag,
        "not zero": isinstance(operation, Take) and operation.refused == (0,) and not operation.is_character,
        "or any other": isinstance(operation, Take) and operation.refused == (0,) and operation.is_character,
        "0 or 1": isinstance(operation, Take) and operation.wrapper is bool and operation.allowed == (0, 1),
        f"length of {getattr(operation, 'of', '')}": isinstance(operation, Measure) and operation.of != "",
    }
    return {remark for remark, applies in remarks.items() if applies} | {
        f"{code} {code.name.lower()}" for code in values
    }


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
    {
        "pgwire/notification_response.yaml": (
            "    - channel: String\n      doc: The channel's name.\n    - payload: String\n      doc: The payload.\n",
            "    - payload: String\n      doc: The payload.\n    - channel: String\n      doc: The channel's name.\n",
            "pgwire NotificationResponse.channel payload",
        ),
        "pgwire/row_description.yaml": (
            "    - type_size: Int16\n",
            "    - type_size: Int16\n      is: Count\n",
            "pgwire FieldDescription.type_size",
        ),
        "pgwire/describe.yaml": ("{S: statement, P: portal}", "{P: statement, S: portal}", "pgwire Describe.described"),
        "pgwire/execute.yaml": (
            "    - row_limit: Int32\n",
            "    - row_limit: Int32\n      is: Epoch\n",
            "pgwire Execute.row_limit",
        ),
        "pgwire/backend_key_data.yaml": (
            "    - process_id: Int32\n",
            "    - process_id: Int32\n      is: Epoch\n",
            "pgwire BackendKeyData.process_id",
        ),
        "pgwire/error_response.yaml": (
            "        s: schema_name\n",
            "        x: schema_name\n",
            "pgwire ErrorField.code",
        ),
        "pgwire/function_call.yaml": ("      is: Oid\n", "", "pgwire FunctionCall.function_id"),
    },
    {
        "pgwire/row_description.yaml": (
            "    - column_number: Int16\n",
            "    - column_number: Int16\n      is: Count\n",
            "pgwire FieldDescription.column_number",
        ),
    },
    {
        "pgwire/row_description.yaml": (
            "    - table_id: Int32\n      is: Oid\n      doc: The OID of the column's table; zero for an expression.\n"
            "    - column_number: Int16\n      doc: The column's number in the table; zero for an expression.\n"
            "    - type_id: Int32\n      is: Oid\n      doc: The OID of its type.\n",
            "    - type_id: Int32\n      is: Oid\n      doc: The OID of its type.\n"
            "    - column_number: Int16\n      doc: The column's number in the table; zero for an expression.\n"
            "    - table_id: Int32\n      is: Oid\n      doc: The OID of the column's table; zero for an expression.\n",
            "pgwire FieldDescription.table_id type_id",
        ),
    },
]
OID_ROWS = "v1-4 Relation.relation_id Type.type_id Insert.relation_id Update.relation_id Delete.relation_id "
OID_ROWS += "Truncate.relation_ids Column.type_id"
PGWIRE_OID_ROWS = "pgwire FunctionCall.function_id ParameterDescription.parameter_types Parse.parameter_types "
PGWIRE_OID_ROWS += "FieldDescription.table_id type_id"


def _expected(line: str) -> Iterator[str]:
    if not line:
        yield from (*_expected(OID_ROWS), *_expected(PGWIRE_OID_ROWS))
        return
    where, *rows = line.split()
    numbers = re.fullmatch(r"v(\d)(?:-(\d))?", where)
    modules = [f"v{n}" for n in range(int(numbers[1]), int(numbers[2] or numbers[1]) + 1)] if numbers else [where]
    modules = ["pgwire.v3_0", "pgwire.v3_2"] if where == "pgwire" else modules
    owner = ""
    for row in rows:
        owner, _, name = row.rpartition(".") if "." in row else (owner, "", row)
        for module in modules:
            yield f"{module}.{owner}.{name}" if owner else f"{module}.{name}"


@pytest.mark.slow
@pytest.mark.parametrize("mistakes", MISTAKES, ids=["values", "rows", "order", "pgwire", "column number", "OIDs"])
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
        assert differences(package) == expected


def test_the_comparison_finds_nothing_wrong_with_the_package() -> None:
    assert differences(logicalrep_protocol) == set()
