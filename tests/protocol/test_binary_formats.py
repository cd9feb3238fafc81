"""Files of COPY and messages of base backups, recorded from and sent by real servers of several versions."""

from __future__ import annotations

import io
import json
import random
import re
import tarfile
from collections.abc import Iterator

import pytest
from construct import ConstructError

from logicalrep_protocol import basebackup, copy_binary, v1, walsender
from logicalrep_protocol.basebackup import Session
from logicalrep_protocol.basebackup.layouts import BASEBACKUP
from logicalrep_protocol.basebackup.v1 import ArchiveOrManifestData, Manifest, NewArchive, ProgressReport
from logicalrep_protocol.copy_binary import CopyFile, CopyRow, CopyValue
from logicalrep_protocol.layouts import COPY_BINARY
from logicalrep_protocol.pgwire import v3_2
from logicalrep_runtime.errors import DecodeError, EncodeError
from logicalrep_runtime.layout_walk import walk
from tests.conftest import ROOT
from tests.postgres.servers import Database
from tests.protocol.recorded_formats import BACKUP, TABLE, TABLES, backed_up, copied, recorded

FILES = [
    pytest.param(bytes.fromhex(data), id=f"pg{major} {table}")
    for major, files in recorded("copy").items()
    for table, data in files.items()
]
BACKUPS = {major: [bytes.fromhex(data) for data in messages] for major, messages in recorded("basebackup").items()}
HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)


def copy_file(*rows: tuple[bytes | None, ...]) -> CopyFile:
    return CopyFile(
        flags=0,
        extension=b"",
        rows=tuple(CopyRow(columns=tuple(CopyValue(value=value) for value in row)) for row in rows),
    )


# -- COPY --------------------------------------------------------------------------------------------------------------


def test_servers_of_six_versions_were_recorded() -> None:
    assert list(recorded("copy")) == [13, 14, 15, 16, 17, 18]
    assert list(BACKUPS) == [15, 16, 17, 18]


@pytest.mark.parametrize("data", FILES)
def test_a_file_is_read_and_built_back_in_each_way(data: bytes) -> None:
    file = copy_binary.parse(data)
    assert file.build() == data
    assert CopyFile.struct.parse(data) == copy_binary.message.parse(data) == file
    assert CopyFile.struct.build(file) == copy_binary.message.build(file) == data
    assert b"".join(step.data for step in walk(COPY_BINARY, 1, data, facts={})) == data


def test_files_hold_the_rows_of_their_tables() -> None:
    for major, files in recorded("copy").items():
        first, second = copy_binary.parse(bytes.fromhex(files["kinds"])).rows
        values = [column.value for column in first.columns]
        assert values[:2] == [(1).to_bytes(4, "big"), "Zürich".encode()], major
        assert values[4:] == [b"\0\xff", None]
        assert [column.value for column in second.columns][1] == b""
        assert copy_binary.parse(bytes.fromhex(files["nothing"])).rows == (CopyRow(columns=()),)
        assert copy_binary.parse(bytes.fromhex(files["kinds WHERE false"])).rows == ()


def test_a_server_reads_what_is_built(db: Database) -> None:
    for statement in TABLE:
        db.execute(statement)
    for table in TABLES:
        data = copied(db.connection, f"SELECT * FROM {table}")
        assert copy_binary.parse(data).build() == data
    file = copy_binary.parse(copied(db.connection, "SELECT * FROM kinds ORDER BY id"))
    reversed_file = CopyFile(flags=5, extension=b"skipped", rows=file.rows[::-1])
    db.execute("CREATE TABLE read_back (LIKE kinds)")
    with db.connection.cursor().copy("COPY read_back FROM STDIN (FORMAT binary)") as copy:
        copy.write(reversed_file.build())
    read_back = db.rows("SELECT read_back::text FROM read_back ORDER BY id")
    assert read_back == db.rows("SELECT kinds::text FROM kinds ORDER BY id")


@pytest.mark.parametrize(
    ("data", "field", "offset"),
    [
        (b"", "signature", 0),
        (b"PGCOPY\n\xff\n\0" + bytes(12), "signature", 0),
        (HEADER[:11] + b"\0\1" + bytes(6) + b"\xff\xff", "critical_flags", 11),
        (HEADER[:15] + b"\xff\xff\xff\xff", "extension_length", 15),
        (HEADER[:15] + b"\x7f\xff\xff\xff", "extension", 19),
        (HEADER, "rows[0].column_count", 19),
        (HEADER + b"\xff\xfe", "rows[0].column_count", 19),
        (HEADER + b"\0\1\xff\xff\xff\xfe", "rows[0].columns[0].length", 21),
        (HEADER + b"\0\1\0\0\0\2a", "rows[0].columns[0].value", 25),
        (HEADER + b"\0\1\0\0\0\1a\xff", "rows[1].column_count", 26),
        (HEADER + b"\xff\xff!", "end", 21),
    ],
)
def test_a_damaged_file_is_refused_at_its_fault(data: bytes, field: str, offset: int) -> None:
    """OIDs, of PostgreSQL 10 and 11, set a critical flag."""
    with pytest.raises(DecodeError) as error:
        copy_binary.parse(data)
    assert (error.value.field, error.value.offset) == (field, offset)
    with pytest.raises(ConstructError):
        copy_binary.message.parse(data)


def test_values_that_do_not_fit_are_refused() -> None:
    many = CopyRow(columns=(CopyValue(value=None),) * 0x8000)
    for file, field in (
        (CopyFile(flags=0x10000, extension=b"", rows=()), "flags"),
        (CopyFile(flags=0, extension="x", rows=()), "extension"),  # type: ignore[arg-type]
        (CopyFile(flags=0, extension=b"", rows=(many,)), "rows[0].columns"),
        (copy_file(("text",)), "rows[0].columns[0].value"),  # type: ignore[arg-type]
    ):
        with pytest.raises(EncodeError) as error:
            file.build()
        assert error.value.field == field


# -- parse_from --------------------------------------------------------------------------------------------------------


def test_files_in_a_row_are_read_one_after_the_other() -> None:
    files = [copy_file(), copy_file((b"a", None), ()), copy_file((b"\xff\xff",))]
    data = b"?" + b"".join(file.build() for file in files) + b"?"
    offset, read = 1, []
    while offset < len(data) - 1:
        file, offset = copy_binary.parse_from(data, offset)
        read.append(file)
    assert read == files
    assert copy_binary.parse_from(memoryview(data), 1)[0] == files[0]  # type: ignore[arg-type]
    with pytest.raises(DecodeError) as error:
        copy_binary.parse_from(data, offset)
    assert (error.value.field, error.value.offset) == ("signature", 0)
    with pytest.raises(ValueError, match="the offset -1 is negative"):
        copy_binary.parse_from(data, -1)


def test_parse_from_ends_a_message_by_its_layout_its_length_or_the_data() -> None:
    begin = bytes.fromhex("4200000016b374d8480000000000000000000002db")
    assert v1.parse_from(b"x" + begin + b"y", 1) == (v1.parse(begin), len(begin) + 1)
    query, row = v3_2.Query(query="select 1"), v3_2.CopyData(data=b"row")
    both = query.build() + row.build() + b"more"
    assert v3_2.parse_from(both, sender="client", expected="messages") == (query, len(query.build()))
    assert v3_2.parse_from(both, len(query.build()), expected="messages") == (row, len(both) - 4)
    data = b"x" + b"w" + bytes(24) + b"payload"
    assert walsender.parse_from(data, 1) == (walsender.parse(data[1:]), len(data))


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (b"d\0\0\0\3", "length"),
        (b"d\0\0\0\x09row", "length"),
        (b"d\xff\xff\xff\xff", "length"),
        (b"S\0\0\0\x08a\0bc\0", "setting"),
        (b"S\0\0\0\x09a\0b\0c", "end"),
        (b"Z\0\0\0\5", "transaction_status"),
    ],
)
def test_parse_from_refuses_wrong_lengths(data: bytes, field: str) -> None:
    with pytest.raises(DecodeError) as error:
        v3_2.parse_from(data, expected="messages")
    assert error.value.field == field


# -- BASE_BACKUP -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("major", BACKUPS)
def test_a_recorded_backup_is_read_and_built_back(major: int) -> None:
    session = Session()
    messages = [session.decode(data, sender="server") for data in BACKUPS[major]]
    assert [message.build() for message in messages] == BACKUPS[major]
    assert {type(message) for message in messages} == {NewArchive, Manifest, ArchiveOrManifestData, ProgressReport}
    archives = [message for message in messages if isinstance(message, NewArchive)]
    assert archives[-1] == NewArchive(file_name="base.tar", tablespace_path="")
    # PostgreSQL 15 does not send tablespaces below the data directory.
    paths = [archive.tablespace_path[:10] for archive in archives]
    assert paths == ([""] if major == 15 else ["pg_tblspc/", ""])
    for data, message in zip(BACKUPS[major], messages, strict=True):
        assert basebackup.v1.message.parse(data) == message
        assert basebackup.v1.message.build(message) == data
        assert b"".join(step.data for step in walk(BASEBACKUP, 1, data, facts={})) == data


def test_data_belongs_to_an_archive_or_to_the_manifest() -> None:
    """Both begin the same block, and end the one before."""
    archive, manifest = NewArchive(file_name="a", tablespace_path=""), Manifest()
    data, progress = ArchiveOrManifestData(data=b"x"), ProgressReport(byte_count=1)
    session = Session()
    with pytest.raises(DecodeError, match="before the first archive"):
        session.decode(data.build(), sender="server")
    for message in (progress, archive, data, archive, progress, data, manifest, data):
        assert session.decode(message.build(), sender="server") == message
    assert session.block == "file of the backup"


def test_a_backup_is_whole(db: Database) -> None:
    session, archives, current = Session(), dict[str, io.BytesIO](), io.BytesIO()
    reported, sizes = 0, 0
    for data in backed_up(db.settings, BACKUP):
        message = session.decode(data, sender="server")
        assert message.build() == data
        match message:
            case NewArchive():
                current = archives[message.file_name] = io.BytesIO()
            case Manifest():
                current = archives["manifest"] = io.BytesIO()
            case ArchiveOrManifestData():
                current.write(message.data)
            case ProgressReport():
                assert message.byte_count >= reported
                reported = message.byte_count
    manifest = json.loads(archives.pop("manifest").getvalue())
    names: set[str] = set()
    for file in archives.values():
        sizes += len(file.getvalue())
        file.seek(0)
        with tarfile.open(fileobj=file) as tar:
            names |= set(tar.getnames())
    assert {entry["Path"] for entry in manifest["Files"] if not entry["Path"].startswith("pg_tblspc/")} <= names
    assert 0 < reported <= sizes


def _damaged(messages: list[bytes]) -> Iterator[bytes]:
    draw = random.Random(1)
    for data in messages:
        yield data[: draw.randrange(len(data))]
        yield data + b"\0"
        changed = bytearray(data)
        changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        yield bytes(changed)


def test_parse_structs_and_the_walk_refuse_the_same_bytes() -> None:
    files = [parameter.values[0] for parameter in FILES]
    accepted = 0
    for module, layouts, whole in (
        (basebackup.v1, BASEBACKUP, BACKUPS[18]),
        (copy_binary, COPY_BINARY, [data for data in files if isinstance(data, bytes)]),
    ):
        for data in _damaged(whole):
            try:
                message = module.parse(data)
            except DecodeError:
                with pytest.raises((ConstructError, LookupError)):
                    module.message.parse(data)
                with pytest.raises(DecodeError):
                    list(walk(layouts, 1, data, facts={}))
            else:
                accepted += 1
                assert module.message.parse(data) == message
                assert message.build() == data
    assert accepted > 5


def test_the_page_is_right() -> None:
    page = (ROOT / "docs/reference/binary-formats.md").read_text("utf-8")
    programs = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(programs) == 2
    for program in programs:
        exec(compile(program, "binary-formats.md", "exec"), {})
