"""The page of COPY, which describes its format in sentences."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from codegen.__main__ import main
from tests.codegen.pagecheck.pages import COPY_PAGE_15
from tests.codegen.single_edits import SPEC

CHANGES = [
    ("11-byte sequence", "12-byte sequence", "Copy file.signature"),
    (r"PGCOPY\n\377\r\n\0", r"PGCOPY\n\377\r\n\1", "Copy file.signature"),
    ("Bits 0\u201315", "Bits 0\u201314", "Copy file.flags"),
    ("32-bit integer, length in bytes", "64-bit integer, length in bytes", "Copy file.extension_length"),
    ("Bit 16</span>", "Bit 17</span>", "Copy file.flags"),
    ("16-bit integer count", "32-bit integer count", "CopyRow.column_count"),
    ("is a 32-bit length word", "is a 16-bit length word", "CopyValue.length"),
    ("repeated for each field", "once for all fields", "CopyRow.columns"),
    ("As a special case,\n-1 indicates a NULL", "As a special case,\n-2 indicates a NULL", "CopyValue.value"),
    ("integer word containing -1", "integer word containing -2", "Copy file.trailer"),
    ("There is no alignment padding", "A 32-bit checksum follows. There is no padding", "Binary Format of COPY"),
]


def test_the_page_agrees(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", str(COPY_PAGE_15)]) == 0
    assert capsys.readouterr().out == f"{COPY_PAGE_15}: agrees with copy_binary at version 1 (11 quotations)\n"


@pytest.mark.parametrize(("old", "new", "what"), CHANGES, ids=[new for _, new, _ in CHANGES])
def test_each_change_of_a_fact_is_seen(
    old: str, new: str, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = COPY_PAGE_15.read_text("utf-8")
    assert text.count(old) == 1
    page = tmp_path / "page.html"
    page.write_text(text.replace(old, new), "utf-8")
    assert main(["docs", str(page)]) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert f": {what}: the page has" in first


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("Int16(-1)", "Int16(-2)", "Copy file.trailer"),
        ("      may be null: true\n", "", "CopyValue.value"),
        ("- extension_length: Int32", "- extension_length: Int16", "Copy file.extension_length"),
        ("critical_flags: Int16(0)", "critical_flags: Int32(0)", "Copy file.critical_flags"),
        ("      printed as: Each tuple begins with a\n", "", "Copy file.rows"),
    ],
)
def test_each_change_of_a_row_is_seen(
    old: str, new: str, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "spec"
    shutil.copytree(SPEC, spec, ignore=shutil.ignore_patterns("pages", "pgwire", "walsender"))
    file = spec / "copy_binary" / "copy_file.yaml"
    text = file.read_text("utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), "utf-8")
    assert main(["docs", str(COPY_PAGE_15), "--spec", str(spec)]) == 1
    assert f": {what}: the page has" in capsys.readouterr().out
